"""Linear queries on sets and on boxes."""

from __future__ import annotations

import json
import pickle
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.files.canonical import readable_tree
from expost.files.reading import parse
from expost.numbers import Nats, down, up
from expost.queries import OneBitGrid, query_from_json
from expost.transcript import Transcript
from support import oracles

PERSON = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
PLAIN = xp.Box([(-1, 1), (-1, 1)])
ROWS = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "sex"])


def sleep(**changes: Any) -> Any:
    arguments: dict[str, Any] = {"range": (0, 12), "clip": True, "epsilon": "1", **changes}
    return xp.linear({"age": 0.0855, "sex": 0.4617}, intercept=12.323, **arguments)


@pytest.mark.parametrize(
    "query",
    [
        sleep(),
        sleep(range=None, clip=False),
        sleep(epsilon="1/3"),
        xp.linear([1, -2.5], range=(-4, 4), epsilon=0.1),
    ],
)
def test_a_query_comes_back_from_its_file_as_it_was(query: Any) -> None:
    document = json.dumps(readable_tree({"kind": query.kind, **query.tree()}))
    again = query_from_json(parse(document))
    assert again == query
    assert repr(again) == repr(query)
    assert pickle.loads(pickle.dumps(query)) == query


def test_defaults_are_written_out_and_a_missing_range_is_not() -> None:
    query = query_from_json(parse('{"kind": "linear", "weights": {"age": 1}, "epsilon": "1"}'))
    assert query == xp.linear({"age": 1}, epsilon=1)
    assert query.tree() == {
        "weights": {"age": 1.0},
        "intercept": 0.0,
        "clip": False,
        "epsilon": Fraction(1),
    }
    assert xp.linear([1], range=(0, 2), epsilon=1).tree()["range"] == [0.0, 2.0]


def test_another_epsilon_changes_nothing_else() -> None:
    assert sleep().with_epsilon(Fraction(1, 2)) == sleep(epsilon="0.5")


def test_a_transcript_on_a_box_survives_its_file() -> None:
    transcript = Transcript(PERSON).add(sleep(), 12).add(sleep(), 0)
    again = Transcript.from_json(json.dumps(readable_tree(transcript.tree())))
    assert again.content_id == transcript.content_id


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (sleep(), "Linear(2 weights clipped to [0, 12], epsilon=1)"),
        (
            xp.linear([1], range=(0, 1.5), epsilon="0.1"),
            "Linear(1 weight in [0, 1.5], epsilon=0.1)",
        ),
        (xp.linear([1, 2], epsilon=2), "Linear(2 weights, epsilon=2)"),
    ],
)
def test_it_shows_what_it_is(query: Any, shown: str) -> None:
    assert repr(query) == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {}}, "weights: must not be empty"),
        ({"weights": []}, "weights: must not be empty"),
        ({"weights": "age"}, 'weights: must be weights by name, such as {"age": 2}, or a list'),
        ({"weights": {"age": float("nan")}}, "weights.age: must be a finite number"),
        ({"weights": [0, float("inf")]}, r"weights\[1\]: must be a finite number"),
        ({"weights": {"age": "1"}}, "weights.age: must be a number"),
        ({"weights": {1: 1}}, "weights: must be a string"),
        ({"intercept": float("inf")}, "intercept: must be a finite number"),
        ({"intercept": None}, "intercept: must be a number"),
        ({"range": (1, 1)}, "range: must be two ends, the lower one first"),
        ({"range": (0, float("nan"))}, r"range\[1\]: must be a finite number"),
        ({"clip": True}, "range: a clipped score needs one"),
        ({"clip": 1, "range": (0, 1)}, "clip: must be true or false"),
        ({"epsilon": 0}, "epsilon: must be greater than 0, not 0"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}$"):
        xp.linear(**{"weights": {"age": 1}, "epsilon": 1, **arguments})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('"epsilon": 1', "'weights' is missing"),
        ('"weights": 3, "epsilon": 1', "weights: must be an object"),
        ('"weights": {"a": 1, "a": 2}, "epsilon": 1', "weights.a: appears twice"),
        ('"weights": [1], "range": null, "epsilon": 1', "range: must be a list"),
        ('"weights": [1], "clip": "true", "epsilon": 1', "clip: must be true or false"),
        ('"weights": [1], "scale": 1, "epsilon": 1', "scale: unknown field.*"),
    ],
)
def test_bad_files_are_refused_with_their_place(fields: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}$"):
        query_from_json(parse(f'{{"kind": "linear", {fields}}}'))


@pytest.mark.parametrize(
    ("arguments", "domain", "message"),
    [
        (
            {"weights": {"hgt": 1}},
            PERSON,
            "weights.hgt: the domain has no such coordinate; it has age, sex",
        ),
        ({"weights": [1, 1]}, PERSON, "weights: must name the coordinates: age, sex"),
        ({"weights": [1, 1]}, ROWS, "weights: must name the coordinates: age, sex"),
        ({"weights": [1]}, xp.FiniteSet([1, 2]), "weights: must name the coordinates: value"),
        ({"weights": [1, 2, 3]}, PLAIN, "weights: 3 weights for 2 coordinates"),
        (
            {"weights": {"a": 1}},
            PLAIN,
            "weights: must be a list: the coordinates of this box have no names",
        ),
        (
            {"weights": {"value": 1}},
            xp.FiniteSet([1, "b"]),
            r"a score needs numbers, and values\[1\] is a label",
        ),
        (
            {"weights": {"age": 0.1, "sex": 3.2}, "range": (0, 12)},
            PERSON,
            "range: the score reaches 13.2 at age=100, sex=1, 1.2 above the range",
        ),
        (
            {"weights": {"age": -1}, "range": (-99, 0)},
            PERSON,
            "range: the score reaches -100 at age=100, 1 below the range",
        ),
        (
            {"weights": [1, 0], "range": (-1, 0)},
            PLAIN,
            r"range: the score reaches 1 at \[0\]=1, 1 above the range",
        ),
        (
            {"weights": {"age": 0}, "intercept": 5, "range": (0, 1)},
            PERSON,
            "range: the score reaches 5 at every point, 4 above the range",
        ),
        (
            {"weights": {"age": 1}, "range": (0, 50)},
            ROWS,
            r"range: the score reaches 52 at rows\[1\], 2 above the range",
        ),
        (
            {"weights": {"value": 1}, "range": (0, 1)},
            xp.FiniteSet([0, 3, -1]),
            r"range: the score reaches 3 at values\[1\], 2 above the range",
        ),
        ({"weights": {"age": 0}}, PERSON, "range: the score is the same everywhere"),
        ({"weights": {"sex": 0}}, ROWS, "range: the score is the same everywhere"),
        ({"weights": {"age": 1e307}}, PERSON, "weights: the score is too large for a double"),
        ({"weights": {"age": -1e308}}, ROWS, "weights: the score is too large for a double"),
    ],
)
def test_a_domain_that_does_not_fit_is_refused_with_the_reason(
    arguments: dict[str, Any], domain: Any, message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}$"):
        xp.linear(epsilon=1, **arguments).on(domain)


def test_what_decimals_lose_as_doubles_is_no_reason_to_leave_the_range() -> None:
    # As a double 0.1 is above 1/10, so the score is 5.6e-16 above 10 at age 100.
    query = xp.linear({"age": 0.1}, range=(0, 10), epsilon=1)
    assert query.on(PERSON).responses == (0, 10)
    with pytest.raises(xp.InvalidInput, match=r"10 at age=100, 1e-10 above the range"):
        xp.linear({"age": 0.1}, intercept=1e-10, range=(0, 10), epsilon=1).on(PERSON)


def test_a_range_that_is_not_given_is_that_of_the_domain_rounded_outward() -> None:
    assert xp.linear({"age": 2, "sex": -1}, epsilon=1).on(PERSON).responses == (19, 200)
    assert xp.linear({"age": 2, "sex": -1}, epsilon=1).on(ROWS).responses == (68, 103)
    for domain in (PERSON, xp.FiniteSet([(10, 0), (55, 1), (100, 1)], names=["age", "sex"])):
        low, high = xp.linear({"age": 0.1, "sex": 0.7}, epsilon=1).on(domain).responses
        exact_low = Fraction(0.1) * 10
        exact_high = Fraction(0.1) * 100 + Fraction(0.7)
        assert isinstance(low, (int, float))
        assert isinstance(high, (int, float))
        assert low <= exact_low < up(low)
        assert down(high) < exact_high <= high


def test_exact_extremes_are_found_among_scores_that_are_one_double() -> None:
    rows = [(1e16, 1.0, x) for x in range(50)]
    rows += [(1e16, 1.0 + 2.0**-20, x) for x in range(50)]
    query = xp.linear({"a": 1, "b": 1}, epsilon=1)
    low, high = query.on(xp.FiniteSet(rows, names=["a", "b", "c"])).responses
    assert (low, high) == (10**16, 10**16 + 2)


def test_the_ends_of_the_range_have_the_end_weights() -> None:
    grid = OneBitGrid.at(Fraction(1))
    ends = grid.light, grid.light + grid.span
    query = xp.linear([1], range=(-3, 5), clip=True, epsilon=1)
    box = query.on(xp.Box([(-100, 100)]))
    for x, weights in [(-3, ends[::-1]), (-50, ends[::-1]), (5, ends), (99, ends)]:
        pmf = box.pmf((x,))
        assert [pmf.probability(i) * pmf.total for i in (0, 1)] == [*weights]


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.floats(-2, 2),
    st.fractions(min_value=Fraction(1, 10**9), max_value=30).filter(bool),
)
def test_probabilities_are_the_formula(
    point: list[float], intercept: float, epsilon: Fraction
) -> None:
    query = xp.linear([1, -0.5], intercept=intercept, range=(-4, 3), clip=True, epsilon=epsilon)
    pmf = query.on(xp.Box([(-3, 3), (-3, 3)])).pmf(tuple(point))
    with mpmath.workdps(50):
        score = oracles.affine([1, -0.5], intercept, point)
        share = oracles._mpf(max(Fraction(0), min(Fraction(1), (score + 4) / 7)))
        assert abs(oracles._mpf(pmf.probability(1)) - oracles.one_bit(share, epsilon)) < 1e-12


def test_a_point_of_a_box_and_a_row_of_a_set_have_the_same_weights() -> None:
    generator = random.Random(7)
    names = ["a", "b", "c"]
    box = xp.Box(a=(-5, 5), b=(-1e6, 1e6), c=xp.integers(-9, 9))
    for epsilon in ("1e-30", "0.1", "3", "40", "499"):
        rows = [
            (generator.uniform(-5, 5), generator.uniform(-1e6, 1e6), generator.randint(-9, 9))
            for _ in range(50)
        ]
        weights = {name: generator.gauss(0, 1) for name in names}
        for query in (
            xp.linear(weights, intercept=0.3, range=(-10, 1e5), clip=True, epsilon=epsilon),
            xp.logistic(weights, intercept=0.3, epsilon=epsilon),
        ):
            on_box, on_set = query.on(box), query.on(xp.FiniteSet(rows, names=names))
            assert on_box.responses == on_set.responses
            for index, row in enumerate(rows):
                location = box.locate(row)
                assert location is not None
                one, other = on_box.pmf(location), on_set.pmf(index)
                assert [one.probability(i) for i in (0, 1)] == [
                    other.probability(i) for i in (0, 1)
                ]


def test_the_worst_case_is_at_most_epsilon_exactly() -> None:
    for epsilon in map(Fraction, ("1e-300", "1e-30", "0.1", "1", "8", "40", "499")):
        query = xp.linear([1, 1], epsilon=epsilon).on(PLAIN)
        for position in (0, 1):
            weights = [query.pmf(x).probability(position) for x in ((-1, -1), (1, 1))]
            assert Nats(ratio=max(weights) / min(weights)) <= Nats(epsilon)
            assert Nats(epsilon * (1 - Fraction(1, 10**11))) < Nats(
                ratio=max(weights) / min(weights)
            )


def test_scores_too_far_for_a_difference_are_clipped_all_the_same() -> None:
    query = xp.linear([1], range=(-1.7e308, -1.6e308), clip=True, epsilon=1)
    assert query.on(xp.Box([(-1, 8e307)])).pmf((8e307,)).probability(1) > Fraction(7, 10)


def test_responses_are_found_by_value() -> None:
    box = sleep().on(PERSON)
    assert [box.position(r) for r in (0, 12, 12.0, 5, "12", True, None)] == [
        0, 1, 1, None, None, None, None,
    ]  # fmt: skip


def test_what_basic_composition_charges_is_the_nominal_epsilon() -> None:
    assert sleep(epsilon="0.3").charge(PERSON) == Nats(Fraction(3, 10))


def test_the_likelihood_on_a_box_is_worked_out_once() -> None:
    query = sleep()
    assert query.on(PERSON) is query.on(PERSON)
    assert query.on(PERSON).term(1) is query.on(PERSON).term(1)
