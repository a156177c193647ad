"""The exact spread: doubles may misorder what is nearly tied, and it must not matter."""

from __future__ import annotations

import numpy as np
import pytest

import expost as xp
from expost.loss._query_marginal import _BLOCK
from expost.tally import Summand
from support import oracles
from support.random_cases import finite, nearly_tied, vectors


def test_doubles_misorder_near_ties_and_the_exact_spread_does_not() -> None:
    misordered = 0
    for seed in range(300):
        transcript = nearly_tied(seed)
        likelihoods = oracles.product(vectors(transcript), 6)
        total = finite(xp.Odometer(transcript))
        assert total.exact_loss.ratio == oracles.ratio(likelihoods)
        misordered += likelihoods[int(np.argmax(total.values))] != max(likelihoods)
        enclosure, exact = total.spread, total.exact_loss.enclosure
        assert enclosure.lower <= exact.lower
        assert exact.upper <= enclosure.upper
    assert misordered > 10  # else the cases would be too easy


@pytest.mark.parametrize("size", [1, 2, _BLOCK - 1, _BLOCK, _BLOCK + 1, 2 * _BLOCK + 3])
def test_blocks_cover_the_whole_domain(size: int) -> None:
    domain = xp.FiniteSet(range(size))
    odometer = xp.Odometer(xp.Transcript(domain))
    filter_ = xp.BayesianFilter(epsilon=5)
    for extreme in {0, size // 2, size - 1}:
        scores = np.full(size, 0.5)
        scores[extreme] = 1.0
        decision = filter_.decide(odometer, xp.perturbation(scores, epsilon=1))
        after = xp.realized_loss(xp.Transcript(domain).add(xp.perturbation(scores, epsilon=1), 0))
        assert decision.loss_at_worst.lower <= after.lower
        assert after.upper <= decision.loss_at_worst.upper


def test_a_large_tied_domain_is_compared_by_classes() -> None:
    domain = xp.FiniteSet(range(50_000))
    query = xp.randomized_response(epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(domain))
    for response in range(40):
        odometer = odometer.add(query, response)
    ratio = query.on(domain).epsilon.ratio
    assert odometer.exact_loss.ratio == ratio
    assert xp.BayesianFilter.of(xp.numbers.Nats(ratio=ratio) * 2).decide(odometer, query).accepted


@pytest.mark.parametrize("times", [1, 2, 3, 50, 1000])
def test_a_response_given_many_times_counts_as_often(times: int) -> None:
    for seed in range(20):
        transcript = nearly_tied(seed)
        total, query = finite(xp.Odometer(transcript)), transcript.exchanges[0].query
        (vector,) = vectors(
            xp.Transcript(transcript.domain).add(query, query.on(total.domain).responses[0])
        )
        likelihoods = oracles.product([*vectors(transcript), [p**times for p in vector]], 6)
        exact = total.exact_spread_with(Summand(query, 0, times))
        assert exact.ratio == oracles.ratio(likelihoods)
        enclosure = total.marginal.spread_with(query.on(total.domain).term(0), times)
        assert enclosure.lower <= exact.enclosure.lower
        assert exact.enclosure.upper <= enclosure.upper
        assert enclosure.width <= 1e-9
