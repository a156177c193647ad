"""Realized losses, worst cases and shares, against the paper's formulas in rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings

import expost as xp
from expost.loss._realized import basic_loss
from expost.numbers import INFINITE, Nats
from support import oracles
from support.paper_example import ELEVEN, power
from support.random_cases import transcripts, vectors


@settings(max_examples=1000, deadline=None)
@given(transcripts())
def test_the_loss_is_that_of_the_definition(transcript: xp.Transcript) -> None:
    assert isinstance(transcript.domain, xp.FiniteSet)
    expected = oracles.ratio(oracles.product(vectors(transcript), len(transcript.domain)))
    assert xp.Odometer(transcript).exact_loss.ratio == expected
    assert expected is not None
    enclosure, running = xp.realized_loss(transcript), xp.Odometer(transcript).loss
    with mpmath.workdps(60):
        assert enclosure.lower <= oracles.log(expected) <= enclosure.upper
        assert running.lower <= oracles.log(expected) <= running.upper
    assert running.width < 1e-12


def test_example_1_nothing_is_learned_from_0_1_1_0() -> None:
    query = xp.randomized_response(epsilon="0.7")
    transcript = xp.Transcript(xp.FiniteSet([0, 1]))
    for response in (0, 1, 1, 0):
        transcript = transcript.add(query, response)
    assert xp.Odometer(transcript).exact_loss == Nats()
    assert xp.realized_loss(transcript) == xp.numbers.Enclosure(0.0, 0.0)
    assert xp.loss.share_of_basic(transcript) == xp.numbers.Enclosure(0.0, 0.0)
    assert basic_loss(transcript) == Nats(Fraction(28, 10))


def test_example_2_the_loss_is_ln_3_2_a_third_of_the_guarantee() -> None:
    transcript = xp.Transcript(ELEVEN).add(power(1), 1).add(power(2), 0).add(power(3), 1)
    likelihoods = oracles.product(vectors(transcript), 11)
    assert (likelihoods[0], likelihoods[10]) == (Fraction(96, 1000), Fraction(144, 1000))
    assert xp.Odometer(transcript).exact_loss.ratio == Fraction(3, 2)
    assert basic_loss(transcript).ratio == Fraction(27, 8)
    share = xp.loss.share_of_basic(transcript)
    assert share.lower <= Fraction(1, 3) <= share.upper
    assert share.width < 1e-15


def test_the_odometer_can_fall_but_need_not_when_the_leader_loses() -> None:
    first = xp.channel([["1/2", "1/2"], ["49/100", "51/100"], ["1/10", "9/10"]])
    second = xp.channel([["1/5", "4/5"], ["4/5", "1/5"], ["3/10", "7/10"]])
    transcript = xp.Transcript(xp.FiniteSet(list("abc"))).add(first, 0)
    assert xp.Odometer(transcript).exact_loss.ratio == 5
    # Response 0 is likelier for the current minimum than for the current maximum, and yet:
    assert xp.Odometer(transcript.add(second, 0)).exact_loss.ratio == Fraction(196, 15)


def test_a_zero_likelihood_is_an_infinite_loss() -> None:
    query = xp.channel([[0, 1], ["1/2", "1/2"]])
    transcript = xp.Transcript(xp.FiniteSet(list("ab")))
    assert xp.Odometer(transcript.add(query, 0)).exact_loss == INFINITE
    assert xp.realized_loss(transcript.add(query, 0)).lower == math.inf
    assert xp.Odometer(transcript.add(query, 1)).exact_loss.ratio == 2
    assert xp.loss.worst_case_loss(query, xp.FiniteSet(list("ab"))).upper == math.inf
    assert xp.loss.share_of_basic(query, xp.FiniteSet(list("ab"))) == xp.numbers.Enclosure(0.0, 0.0)
    everywhere = transcript.add(xp.channel([[0, 1], [1, 0]]), 0).add(query, 0)
    assert xp.Odometer(everywhere).exact_loss == INFINITE
    assert xp.Odometer(everywhere).loss.upper == math.inf


def test_a_thousand_exactly_tied_values_have_one_loss() -> None:
    domain = xp.FiniteSet(range(1000))
    rows = [["1/3", "2/3"] if x % 2 else ["3/7", "4/7"] for x in range(1000)]
    swapped = [["3/7", "4/7"] if x % 2 else ["1/3", "2/3"] for x in range(1000)]
    transcript = xp.Transcript(domain)
    for table in (rows, swapped, swapped, rows, rows):
        transcript = transcript.add(xp.channel(table), 0)
    assert xp.Odometer(transcript).exact_loss.ratio == Fraction(9, 7)


def test_an_infinite_loss_is_no_share_of_an_infinite_sum() -> None:
    domain, query = xp.FiniteSet([0, 1]), xp.channel([[1, 0], [0, 1]])
    transcript = xp.Transcript(domain).add(query, 0)
    assert xp.loss.share_of_basic(transcript) == xp.numbers.Enclosure(0.0, 1.0)
    assert xp.loss.share_of_basic(query, domain) == xp.numbers.Enclosure(0.0, 1.0)
    half = xp.channel([["1/2", "1/2", 0], ["1/4", "1/4", "1/2"]])
    assert xp.loss.share_of_basic(xp.Transcript(domain).add(half, 0)) == xp.numbers.Enclosure(
        0.0, 0.0
    )


def test_least_share_of_basic_a_query_is_the_least_loss_over_the_worst() -> None:
    domain = xp.FiniteSet(list("ab"))
    query = xp.channel([["1/2", "1/2"], ["1/4", "3/4"]])
    share = xp.loss.share_of_basic(query, domain)
    with mpmath.workdps(40):
        expected = oracles.log(Fraction(3, 2)) / oracles.log(Fraction(2))
        assert share.lower <= expected <= share.upper
    with pytest.raises(xp.InvalidInput, match="needs a domain"):
        xp.loss.share_of_basic(query)  # type: ignore[call-overload]
    useless = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]])
    assert xp.loss.share_of_basic(useless, domain) == xp.numbers.Enclosure(0.0, 0.0)


def test_thousands_of_exchanges_keep_a_tight_and_true_enclosure() -> None:
    domain = xp.FiniteSet(range(7))
    query = xp.randomized_response(epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(domain))
    for step in range(5000):
        odometer = odometer.add(query, step * step % 7)
    exact = xp.realized_loss(odometer.transcript)
    assert odometer.loss.lower <= exact.lower
    assert exact.upper <= odometer.loss.upper
    assert odometer.loss.width < 1e-8
