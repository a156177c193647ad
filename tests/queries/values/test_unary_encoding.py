"""Unary encoding: independent bits, in integers, and never written out."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.queries.values.unary_encoding import NoisyBits
from support import oracles
from support.random_cases import table

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=40).filter(bool)
SIXTY_FOUR = xp.FiniteSet(range(64))
VARIANTS = ["symmetric", "optimized"]


@pytest.mark.parametrize("variant", VARIANTS)
@given(st.integers(1, 4), epsilons)
def test_probabilities_are_those_of_the_papers(variant: str, size: int, epsilon: Fraction) -> None:
    query = xp.unary_encoding(variant=variant, epsilon=epsilon)
    if variant == "symmetric":
        odds = oracles.odds(epsilon / 2)
        p, q = odds / (odds + 1), 1 / (odds + 1)
    else:
        p, q = Fraction(1, 2), 1 / (oracles.odds(epsilon) + 1)
    assert table(query, xp.FiniteSet(range(size))) == oracles.unary_encoding(size, p, q)


@pytest.mark.parametrize("variant", VARIANTS)
@given(st.integers(2, 4), epsilons)
def test_the_worst_case_is_just_below_epsilon(variant: str, size: int, epsilon: Fraction) -> None:
    query, domain = xp.unary_encoding(variant=variant, epsilon=epsilon), xp.FiniteSet(range(size))
    likelihood = query.on(domain)
    assert likelihood.epsilon.ratio == oracles.epsilon_of(list(table(query, domain).values()))
    assert Nats(epsilon * (1 - Fraction(1, 10**11))) < likelihood.epsilon <= Nats(epsilon)
    assert likelihood.least_loss == Nats()


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.data())
def test_every_uniform_integer_gives_the_bits_their_share(
    size: int, one: int, zero: int, data: st.DataObject
) -> None:
    other_one = data.draw(st.integers(1, one + zero - 1))
    true, other = (zero, one), (one + zero - other_one, other_one)
    for spike in range(size):
        pmf = NoisyBits(size, spike, true, other)
        counts = Counter(pmf.pick(uniform) for uniform in range(pmf.total))
        p, q = Fraction(one, one + zero), Fraction(other_one, one + zero)
        for text, likelihoods in oracles.unary_encoding(size, p, q).items():
            position = int(text, 2)
            assert Fraction(counts[position], pmf.total) == likelihoods[spike]
            assert pmf.probability(position) == likelihoods[spike]


def test_sixty_four_values_are_asked_about_without_2_to_the_64_responses() -> None:
    session = xp.Session(SIXTY_FOUR, 7, filter=xp.BayesianFilter(epsilon="3"))
    query = xp.unary_encoding(epsilon="1")
    for _ in range(3):
        response = session.ask(query)
        assert isinstance(response, str)
        assert len(response) == 64
        assert response in query.on(SIXTY_FOUR).responses
    decision = session.decide(query)
    assert decision.worst_response in query.on(SIXTY_FOUR).responses
    again = xp.Transcript.from_json(session.transcript.to_json())
    assert again == session.transcript
    assert again.content_id == session.transcript.content_id
    assert xp.realized_loss(again).upper <= 3


def test_the_worst_response_attains_the_loss_at_worst() -> None:
    query = xp.unary_encoding(epsilon="1/2")
    odometer = (
        xp.Odometer(xp.Transcript(SIXTY_FOUR)).add(query, "01" * 32).add(query, "1" + "0" * 63)
    )
    decision = xp.BayesianFilter(4).decide(odometer, query)
    after = odometer.add(query, decision.worst_response)
    assert after.exact_loss == odometer.exact_loss + query.on(SIXTY_FOUR).epsilon
    assert decision.loss_at_worst.lower <= after.loss.upper
    assert after.loss.lower <= decision.loss_at_worst.upper


@pytest.mark.parametrize("bits", ["", "0" * 63, "0" * 65, "0" * 63 + "2", "0" * 63 + "١", 0, None])
def test_other_responses_are_refused_with_a_line_that_shows_some(bits: Any) -> None:
    query = xp.unary_encoding(epsilon=1)
    with pytest.raises(xp.InvalidInput, match="it has '0000000000") as error:
        xp.Transcript(SIXTY_FOUR).add(query, bits)
    assert len(str(error.value)) < 400


def test_position_and_response_are_inverse_to_each_other() -> None:
    likelihood = xp.unary_encoding(epsilon=1).on(xp.FiniteSet(range(5)))
    texts = ["".join(bits) for bits in itertools.product("01", repeat=5)]
    assert list(likelihood.responses) == texts
    assert [likelihood.position(text) for text in texts] == list(range(32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "plain", "epsilon": 1}, "variant: must be one of symmetric, optimized"),
        ({"variant": 1, "epsilon": 1}, "variant: must be a string"),
        ({"epsilon": 0}, "epsilon: must be greater than 0"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.unary_encoding(**arguments)


def test_more_values_than_can_be_drawn_for_are_refused() -> None:
    with pytest.raises(xp.InvalidInput, match="got 10001 values; expected at most 10000"):
        xp.unary_encoding(epsilon=1).on(xp.FiniteSet(range(10_001)))
