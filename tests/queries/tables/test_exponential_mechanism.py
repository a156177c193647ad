"""The exponential mechanism: close to its formula, and never above its epsilon."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries.tables.exponential_mechanism import UtilityLevels, exponential_weights
from support import oracles
from support.random_cases import columns

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=60).filter(bool)
entries = st.fractions(-3, 3, max_denominator=50)
tables = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(entries, min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


def sensitivity_of(utility: list[list[Fraction]]) -> Fraction:
    least = max(max(row) - min(row) for row in utility) / 20
    ranges = (max(column) - min(column) for column in zip(*utility, strict=True))
    return max(*ranges, least) or Fraction(1)


@settings(max_examples=200)
@given(tables, epsilons)
def test_probabilities_are_the_formula_and_the_worst_case_is_within_epsilon(
    utility: list[list[Fraction]], epsilon: Fraction
) -> None:
    sensitivity = sensitivity_of([*utility, utility[0]])
    epsilon = min(epsilon, Fraction(50))  # no more where utilities reach over 20 sensitivities
    query = xp.exponential_mechanism(utility, sensitivity=sensitivity, epsilon=epsilon)
    domain = xp.FiniteSet(range(len(utility)))
    probabilities = columns(query, domain)
    with mpmath.workdps(60):
        expected = oracles.exponential_mechanism(utility, sensitivity, epsilon)
        for x, row in enumerate(expected):
            for y, probability in enumerate(row):
                assert abs(oracles._mpf(probabilities[y][x]) / probability - 1) < 1e-11
    likelihood = query.on(domain)
    assert likelihood.epsilon.ratio == oracles.epsilon_of(probabilities)
    assert likelihood.epsilon <= Nats(epsilon)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1", "30", "500"])
def test_utilities_that_come_close_to_epsilon_stay_below_it(epsilon: str) -> None:
    # The ratio is e^(ε/2) (1 + (m-1) e^(ε/2)) / (e^(ε/2) + m - 1): nearly e^ε with many responses.
    width = 1000
    rows = [[1] + [0] * (width - 1), [0] + [1] * (width - 1)]
    query = xp.exponential_mechanism(rows, sensitivity=1, epsilon=epsilon)
    worst = query.on(xp.FiniteSet(["a", "b"])).epsilon
    assert worst <= Nats(query.epsilon)
    assert Nats(query.epsilon * Fraction(1, 2)) < worst


@given(
    st.lists(
        st.lists(st.fractions(-5, 5, max_denominator=9), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.fractions(min_value=Fraction(1, 100), max_value=9),
)
def test_all_rows_of_weights_have_the_same_sum(
    exponents: list[list[Fraction]], epsilon: Fraction
) -> None:
    levels = UtilityLevels.of(tuple(map(tuple, exponents)))
    weights, total = exponential_weights(levels, Fraction(1), epsilon)
    assert {sum(row) for row in weights} == {total}
    assert min(itertools.chain(*weights)) > 0


def test_equal_rows_tell_nothing() -> None:
    query = xp.exponential_mechanism([["1/3", 2, 0]] * 3, sensitivity=1, epsilon=5)
    assert query.on(xp.FiniteSet(["a", "b", "c"])).epsilon == Nats()


def test_numbers_mean_what_they_say() -> None:
    exact = xp.exponential_mechanism([["1/10", 0], [0, "1/10"]], sensitivity="0.1", epsilon=1)
    floats = xp.exponential_mechanism(np.array([[0.1, 0], [0, 0.1]]), sensitivity=0.1, epsilon=1)
    assert floats == exact
    assert exact.responses == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"utility": []}, "utility: must be rows of numbers"),
        ({"utility": [[]]}, "utility: must be rows of numbers"),
        ({"utility": [1, 2]}, r"utility\[0\]: must be a list"),
        ({"utility": [[1, 0], [1]]}, r"utility\[1\]: has 1 entries, the first row 2"),
        ({"utility": [[1, "x"]]}, r"utility\[0\]\[1\]: 'x' is not a number"),
        ({"utility": [[1, float("nan")]]}, r"utility\[0\]\[1\]: must be a finite number"),
        ({"utility": [[0, 1], [0, "2.5"]]}, "column 1 differs between values by 0.5 more than the"),
        ({"utility": [[0, 21]]}, r"utility\[0\]: .* more than 20 sensitivities"),
        ({"sensitivity": 0}, "sensitivity: must be greater than 0"),
        ({"epsilon": 501}, "epsilon: must be at most 500, not 501"),
        ({"responses": ["a"]}, "responses: 1 responses for 2 columns"),
        ({"responses": ["a", "a"]}, "responses: a response is listed twice"),
        ({"utility": [[0, 0]] * 3}, "utility: 3 rows for a domain of 2 values"),
    ],
)
def test_what_is_not_fit_is_refused_with_a_line(arguments: dict[str, Any], message: str) -> None:
    fit = {"utility": [[1, 0], [0, 1]], "sensitivity": 1, "epsilon": 1, **arguments}
    with pytest.raises(xp.InvalidInput, match=message):
        xp.exponential_mechanism(fit.pop("utility"), **fit).on(xp.FiniteSet(["a", "b"]))


def test_a_session_of_meals() -> None:
    meals = ["soup", "salad", "cake"]
    domain = xp.FiniteSet(meals)
    rows = [[1 if meal == liked else 0 for meal in meals] for liked in meals]
    query = xp.exponential_mechanism(rows, responses=meals, sensitivity=1, epsilon="1")
    session = xp.Session(domain, "cake", filter=xp.BayesianFilter(epsilon="2"))
    assert {session.ask(query), session.ask(query)} <= set(meals)
    again = xp.Transcript.from_json(session.transcript.to_json())
    assert again == session.transcript
    assert again.content_id == session.transcript.content_id


def test_the_largest_epsilon_is_the_end_of_what_is_accepted_from_zero_on() -> None:
    # Pr(0 | a) / Pr(0 | b) is (1 + t) / (1 + t²), t = e^(-ε/2): a hump between ε = 0 and ε = ∞.
    query = xp.exponential_mechanism([[0, -2], [0, -1]], sensitivity=1, epsilon=1)
    so_far = xp.channel([["9/10", "1/10"], ["1/10", "9/10"]])
    odometer = Odometer(xp.Transcript(xp.FiniteSet(["a", "b"]))).add(so_far, 0)
    guard = xp.BayesianFilter(ratio=10)

    def accepted(epsilon: Fraction) -> bool:
        return guard.decide(odometer, query.with_epsilon(epsilon)).accepted

    assert accepted(Fraction(1, 2))
    assert not accepted(Fraction(1))
    assert accepted(Fraction(5))
    largest = guard.decide(odometer, query).largest_epsilon
    assert largest is not None
    assert float(largest) == pytest.approx(-2 * math.log((9 + math.sqrt(41)) / 20), abs=1e-8)
    assert all(accepted(Fraction(largest) * step / 50) for step in range(1, 51))
    assert not accepted(Fraction(largest) + Fraction(1, 10**10))
