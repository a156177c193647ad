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
from expost.files.reading import parse


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
        ([0, 1, 1.0], None, r"values\[2\]: .* appears twice"),
        ([0, float("nan")], None, r"values\[1\]: must be a finite number"),
        ([0, True], None, r"values\[1\]: must be a label or a number"),
        ([0, 2**60], None, r"values\[1\]: integer too large"),
        ([(1, 2)], None, r"values\[0\]: is a vector, and vectors need named"),
        ([(1, 2), (1, 2)], ["a", "b"], r"rows\[1\]: .* appears twice"),
        ([(1, 2), (1,)], ["a", "b"], r"rows\[1\]: must have 2 coordinates"),
        ([(1, "x")], ["a", "b"], r"rows\[0\]: must be a number"),
        ([(1, 2)], ["a", "a"], "appears twice"),
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
        ({"a": (1, 0)}, "a: the lower bound, 1, is above"),
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
    assert xp.realized_loss(xp.Transcript(xp.Box(age=(0, 1)))) == xp.numbers.Enclosure(0.0, 0.0)


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


# -- categories ----------------------------------------------------------------------------------

REGION = xp.categories("north", "south", "islands")


def test_a_category_is_a_column_of_its_own() -> None:
    box = xp.Box(age=(0, 90), region=REGION, sex=xp.categories("f"))
    assert (
        repr(box) == "Box(age=[0, 90], region=categories[north, south, islands], sex=categories[f])"
    )
    assert box.locate({"region": "south", "age": 34, "sex": "f"}) == (34, 0, 1, 0, 1)
    assert box.locate([34, "islands", "f"]) == (34, 0, 0, 1, 1)
    assert box.value((34, 0, 0, 1, 1)) == (34, "islands", "f")
    assert [len(place) for place in box.column_slices] == [1, 3, 1]
    assert [list(group) for group in box.groups] == [[1, 2, 3], [4]]


@pytest.mark.parametrize("region", ["west", "", 0, None, True, ["north"], {"north": 1}, "North"])
def test_no_other_category_is_inside(region: Any) -> None:
    assert xp.Box(region=REGION).locate({"region": region}) is None


def test_categories_in_a_file() -> None:
    document = '{"box": {"age": [0, 90], "region": {"categories": ["north", "south", "islands"]}}}'
    box = xp.Box(region=REGION, age=(0, 90))
    assert domain_from_json(parse(document)) == box
    assert hash(domain_from_json(parse(document))) == hash(box)
    assert box != xp.Box(region=xp.categories("south", "north", "islands"), age=(0, 90))
    plain = domain_from_json(parse('{"box": [[0, 1], {"categories": ["a", "b"]}]}'))
    assert plain == xp.Box([(0, 1), xp.categories("a", "b")])
    query = xp.logistic({"age": 0.1, "region": {"south": 2}}, epsilon="1")
    transcript = xp.Transcript(box).add(query, 1)
    again = xp.Transcript.from_json(transcript.to_json())
    assert again == transcript
    assert again.content_id == transcript.content_id


@pytest.mark.parametrize(
    ("side", "message"),
    [
        ('{"categories": []}', "must have labels, and none that is empty"),
        ('{"categories": ["a", ""]}', "must have labels, and none that is empty"),
        ('{"categories": ["a", "b", "a"]}', "a category appears twice"),
        ('{"categories": ["a", 1]}', "[1]: must be a string"),
        ('{"categories": "ab"}', "must be a list"),
    ],
)
def test_bad_categories_are_one_line(side: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        domain_from_json(parse(f'{{"box": {{"region": {side}}}}}'))
    place = "box.region.categories"
    assert str(caught.value) == (
        f"{place}{message}" if message[0] == "[" else f"{place}: {message}"
    )


def test_a_side_is_of_one_kind() -> None:
    with pytest.raises(xp.InvalidInput, match="exactly one of integers, categories"):
        domain_from_json(parse('{"box": [{"integers": [0, 1], "categories": ["a"]}]}'))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"region": 2}, "weights.region: needs a weight for each category: north, south, islands"),
        ({"age": {"old": 1}}, "weights.age: this coordinate has no categories"),
        (
            {"region": {"west": 1}},
            "weights.region.west: the domain has no such category; it has north, south, islands",
        ),
        ({"region": {}}, "weights.region: must not be empty"),
        ({"region": {"north": "2"}}, "weights.region.north: must be a number"),
        ({"region": {"north": float("nan")}}, "weights.region.north: must be a finite number"),
    ],
)
def test_weights_that_do_not_fit_categories_are_one_line(weights: Any, message: str) -> None:
    box = xp.Box(age=(0, 90), region=REGION)
    with pytest.raises(xp.InvalidInput) as caught:
        xp.logistic(weights, epsilon=1).on(box)
    assert str(caught.value) == message


def test_where_a_score_leaves_its_range_is_said_by_category() -> None:
    box = xp.Box(age=(0, 90), region=REGION)
    query = xp.linear({"age": 0.1, "region": {"south": 2}}, range=(0, 10), epsilon=1)
    with pytest.raises(xp.InvalidInput, match=r"reaches 11 at age=90, region=south, 1 above the r"):
        query.on(box)


def test_a_session_with_a_category_and_its_account() -> None:
    box = xp.Box(age=(0, 90), region=REGION)
    query = xp.logistic({"age": 0.1, "region": {"south": 2}}, intercept=-4, epsilon="1")
    session = xp.Session(box, {"age": 61, "region": "islands"}, filter=xp.BayesianFilter("3"))
    for _ in range(2):
        session.ask(query)
    with pytest.raises(xp.errors.OutsideDomain):
        xp.Session(box, {"age": 61, "region": "west"}, filter=xp.BayesianFilter("3"))
