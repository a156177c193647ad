"""Randomized response: the textbook probabilities in integers."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from support import oracles
from support.random_cases import columns

epsilons = st.fractions(min_value=Fraction(1, 10**9), max_value=400).filter(bool)


@given(st.integers(2, 6), epsilons)
def test_probabilities_are_the_textbook_ones(size: int, epsilon: Fraction) -> None:
    domain = xp.FiniteSet(range(size))
    table = columns(xp.randomized_response(epsilon=epsilon), domain)
    with mpmath.workdps(50):
        truth, lie = oracles.randomized_response(size, epsilon)
        for response, column in enumerate(table):
            for value, probability in enumerate(column):
                expected = truth if value == response else lie
                assert abs(oracles._mpf(probability) / expected - 1) < 1e-12


@given(st.integers(2, 6), epsilons)
def test_epsilon_is_exact_and_below_the_nominal_one(size: int, epsilon: Fraction) -> None:
    query, domain = xp.randomized_response(epsilon=epsilon), xp.FiniteSet(range(size))
    likelihood = query.on(domain)
    assert likelihood.epsilon.ratio == oracles.epsilon_of(columns(query, domain))
    assert likelihood.epsilon <= Nats(epsilon)


def test_every_response_uses_the_whole_budget() -> None:
    query = xp.randomized_response(epsilon="0.1")
    assert xp.loss.share_of_basic(query, xp.FiniteSet(list("abc"))) == xp.numbers.Enclosure(
        1.0, 1.0
    )


def test_over_a_million_values_the_loss_is_still_epsilon() -> None:
    domain = xp.FiniteSet(range(10**6))
    query = xp.randomized_response(epsilon="0.1")
    loss = xp.realized_loss(xp.Transcript(domain).add(query, 77))
    assert 0.0999999 < loss.lower <= loss.upper <= 0.1


def test_one_value_has_nothing_to_lose() -> None:
    domain = xp.FiniteSet(["only"])
    query = xp.randomized_response(epsilon=3)
    assert xp.realized_loss(xp.Transcript(domain).add(query, "only")) == xp.numbers.Enclosure(
        0.0, 0.0
    )
    assert xp.loss.worst_case_loss(query, domain).upper == 0


@pytest.mark.parametrize("epsilon", [0, -1, "x", True, "1e999"])
def test_bad_epsilons_are_refused(epsilon: object) -> None:
    with pytest.raises(xp.InvalidInput, match="epsilon"):
        xp.randomized_response(epsilon=epsilon)  # type: ignore[arg-type]
