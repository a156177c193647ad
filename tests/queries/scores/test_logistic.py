"""Logistic queries on sets and on boxes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.files.reading import parse
from expost.numbers import Nats
from expost.queries import OneBitGrid, query_from_json
from support import oracles

PERSON = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
HEART = xp.logistic({"age": -0.059, "sex": -1.456}, intercept=6.177, epsilon="1")


def test_defaults_are_written_out() -> None:
    query = query_from_json(parse('{"kind": "logistic", "weights": [1], "epsilon": "2"}'))
    assert query.tree() == {"weights": [1.0], "intercept": 0.0, "epsilon": Fraction(2)}
    assert query.with_epsilon(Fraction(1)) == xp.logistic([1], epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {}}, "weights: must not be empty"),
        ({"weights": {"age": float("-inf")}}, "weights.age: must be a finite number"),
        ({"intercept": float("nan")}, "intercept: must be a finite number"),
        ({"epsilon": 501}, "epsilon: must be at most 500, not 501"),
        ({"weights": {"bmi": 1}}, "weights.bmi: the domain has no such coordinate; it has .*"),
        ({"weights": [1, 1]}, "weights: must name the coordinates: age, sex"),
        ({"weights": {"age": 1e308}}, "weights: the score is too large for a double"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}$"):
        xp.logistic(**{"weights": {"age": 1}, "epsilon": 1, **arguments}).on(PERSON)


def test_a_file_with_a_range_is_refused() -> None:
    document = '{"kind": "logistic", "weights": [1], "range": [0, 1], "epsilon": 1}'
    with pytest.raises(xp.InvalidInput, match="range: unknown field"):
        query_from_json(parse(document))


@given(
    st.floats(-40, 40),
    st.fractions(min_value=Fraction(1, 10**9), max_value=30).filter(bool),
)
def test_probabilities_are_the_formula(x: float, epsilon: Fraction) -> None:
    likelihood = xp.logistic({"value": 1}, epsilon=epsilon).on(xp.FiniteSet([x]))
    assert likelihood.responses == (0, 1)
    with mpmath.workdps(50):
        expected = oracles.one_bit(oracles.sigmoid(x), epsilon)
        assert abs(oracles._mpf(likelihood.pmf(0).probability(1)) - expected) < 1e-12


@pytest.mark.parametrize("epsilon", ["1e-30", "1", "40", "499"])
def test_far_scores_have_the_end_weights_and_the_loss_is_at_most_epsilon(epsilon: str) -> None:
    grid = OneBitGrid.at(Fraction(epsilon))
    likelihood = xp.logistic([1], epsilon=epsilon).on(xp.Box([(-1e300, 1e300)]))
    low, high = likelihood.pmf((-1e300,)), likelihood.pmf((1e300,))
    for position, most, least in [(1, high, low), (0, low, high)]:
        assert most.probability(position) * most.total == grid.light + grid.span
        assert least.probability(position) * least.total == grid.light
        ratio = most.probability(position) / least.probability(position)
        assert Nats(ratio=ratio) <= Nats(Fraction(epsilon))


def test_a_filter_takes_it_on_a_finite_set() -> None:
    subjects = xp.FiniteSet([(34, 0), (52, 1), (80, 1)], names=["age", "sex"])
    transcript = xp.Transcript(subjects).add(HEART, 1).add(HEART, 0)
    assert 0 < xp.realized_loss(transcript).upper < 2
    assert xp.loss.worst_case_loss(HEART, subjects).upper <= 1
