"""Finite sets and boxes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost.domains import domain_from_json
from expost.reading import parse


def test_labels_and_numbers_are_different_values_and_one_is_one() -> None:
    domain = xp.FiniteSet([0, 1, "1", 2.5])
    assert len(domain) == 4
    assert domain.locate(1) == domain.locate(1.0) == domain.locate(np.int64(1)) == 1
    assert domain.locate("1") == 2
    assert domain.locate(2.5) == domain.locate(Decimal("2.5")) == 3


@pytest.mark.parametrize("value", [5, "a", True, None, [7], float("nan"), 10**400, object()])
def test_what_is_outside_is_none_and_never_an_error(value: Any) -> None:
    assert xp.FiniteSet([0, 1]).locate(value) is None
    assert xp.Box(age=(0, 4)).locate(value) is None


def test_vectors_have_named_coordinates() -> None:
    domain = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "sex"])
    assert domain == xp.FiniteSet([{"age": 34, "sex": 0}, {"sex": 1, "age": 52.0}])
    assert domain.locate({"sex": 1, "age": 52}) == domain.locate([52, 1]) == 1
    assert domain.locate({"age": 52}) is None
    assert repr(domain) == "FiniteSet(2 values of age, sex)"


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        ([], None, "at least one value"),
        ([0, 1, 1.0], None, r"values\[2\]: repeats an earlier value"),
        ([0, float("nan")], None, r"values\[1\]: must be a finite number"),
        ([0, True], None, r"values\[1\]: must be a label or a number"),
        ([0, 2**60], None, r"values\[1\]: integer too large"),
        ([(1, 2)], None, r"values\[0\]: is a vector, and vectors need named"),
        ([(1, 2), (1, 2)], ["a", "b"], r"rows\[1\]: repeats an earlier value"),
        ([(1, 2), (1,)], ["a", "b"], r"rows\[1\]: must have 2 coordinates"),
        ([(1, "x")], ["a", "b"], r"rows\[0\]: must be a number"),
        ([(1, 2)], ["a", "a"], "named twice"),
    ],
)
def test_bad_finite_sets_are_refused_with_their_place(
    values: Any, names: Any, message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.FiniteSet(values, names=names)


def test_a_box_has_real_and_integer_sides() -> None:
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    assert box.locate({"age": 34.5, "sex": 1}) == (34.5, 1)
    assert box.locate({"age": 34.5, "sex": 0.5}) is None
    assert box.locate({"age": 101, "sex": 1}) is None
    assert xp.Box([(-1, 1), (-1, 1)]).locate([0.5, -1]) == (0.5, -1)


def test_boxes_are_equal_exactly_if_their_content_ids_are() -> None:
    boxes = [
        xp.Box(a=(0, 1), b=xp.integers(0, 1)),
        xp.Box(b=xp.integers(0, 1), a=(0, 1)),
        xp.Box(a=(0, 1), b=(0, 1)),
        xp.Box(b=(0, 1), c=xp.integers(0, 1)),
        xp.Box([(0, 1), xp.integers(0, 1)]),
        xp.Box([xp.integers(0, 1), (0, 1)]),
    ]
    for first in boxes:
        for second in boxes:
            same = xp.Transcript(first).content_id == xp.Transcript(second).content_id
            assert (first == second) is same
            assert hash(first) == hash(second) or not same
    assert len(set(boxes)) == 5


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({}, "needs sides"),
        ({"a": (1, 0)}, "a: the lower bound is above"),
        ({"a": (0, float("inf"))}, "a: must be a finite number"),
        ({"a": (0,)}, "a: must be a pair"),
        ({"a": (False, True)}, "a: must be a number"),
    ],
)
def test_bad_boxes_are_refused_with_their_place(sides: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.Box(**sides)


def test_an_integer_side_needs_an_integer() -> None:
    with pytest.raises(xp.InvalidInput, match="must be integers"):
        xp.integers(0.2, 0.8)  # type: ignore[arg-type]
    with pytest.raises(xp.InvalidInput, match="no integer"):
        xp.integers(2, 1)


@pytest.mark.parametrize(
    "document",
    [
        '{"values": [0, 1, "a"]}',
        '{"points": {"names": ["age", "sex"], "rows": [[34, 0], [52, 1]]}}',
        '{"box": {"age": [10, 100], "sex": {"integers": [0, 1]}}}',
        '{"box": [[-1, 1], {"integers": [0, 9]}]}',
    ],
)
def test_domains_survive_json(document: str) -> None:
    domain = domain_from_json(parse(document))
    assert domain_from_json(domain.tree()) == domain


def test_no_query_of_this_version_takes_a_box() -> None:
    with pytest.raises(xp.InvalidInput, match="needs a finite domain, not a box"):
        xp.Transcript(xp.Box(age=(0, 1))).add(xp.randomized_response(epsilon=1), 0)


def test_nothing_is_learned_about_a_box_before_the_first_question() -> None:
    assert xp.realized_loss(xp.Transcript(xp.Box(age=(0, 1)))) == xp.Enclosure(0.0, 0.0)


@pytest.mark.parametrize("values", ["yes", {"a", "b"}, {"a": 1}, 5, None])
def test_what_has_no_order_is_not_a_domain(values: Any) -> None:
    with pytest.raises(xp.InvalidInput, match="must be a list"):
        xp.FiniteSet(values)


def test_a_frame_is_a_set_of_rows() -> None:
    expected = xp.FiniteSet([{"age": 34, "sex": 0}, {"age": 52, "sex": 1}])
    assert xp.FiniteSet(pd.DataFrame({"age": [34, 52], "sex": [0, 1]})) == expected
    assert xp.FiniteSet(pl.DataFrame({"age": [34, 52], "sex": [0, 1]})) == expected
    assert (
        xp.FiniteSet(pl.DataFrame({"x": [34, 52], "y": [0, 1]}), names=["age", "sex"]) == expected
    )


class Hostile:
    """Raises whatever is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError("my secret is 7")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("my secret is 7")


@pytest.mark.parametrize(
    "value",
    [Hostile(), np.array([1]), np.array(1), np.True_, b"1", {1: 2}, 1 + 0j, np.complex128(1)],
)
def test_no_value_makes_locate_raise(value: Any) -> None:
    for domain in (xp.FiniteSet([0, 1]), xp.FiniteSet([[1]], names=["a"]), xp.Box(a=(0, 0.5))):
        assert domain.locate(value) is None or isinstance(value, np.ndarray)
