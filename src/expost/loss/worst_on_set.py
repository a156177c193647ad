"""Worst cases over a finite set, exactly where doubles are too coarse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.filters.account import WorstCase
from expost.loss.choose import capped
from expost.loss.log_likelihood import LogLikelihood
from expost.loss.on_set import exact_spread, spread_with
from expost.loss.pairs import exact_spread_apart, spread_of_pair, widest_pair
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from expost.queries.likelihood import BySufficientTerms
from expost.queries.values.pairwise import Pairwise
from expost.transcript import Summand

if TYPE_CHECKING:
    from expost.loss.odometer import Odometer

__all__ = ["epsilon_on_set", "worst_on_set"]


def epsilon_on_set(odometer: Odometer, query: Query, times: int) -> WorstCase:
    """The realized loss before the last of some queries, at worst, plus its epsilon."""
    total = odometer.log_likelihood
    assert isinstance(total, LogLikelihood)
    epsilon = query.on(total.domain).epsilon
    before = WorstCase(odometer.loss, exact=lambda: odometer.exact_loss)
    if times > 1:
        before = worst_on_set(odometer, query, times - 1)
    exact = before.exact
    assert exact is not None, "over a finite domain everything is exact"
    return WorstCase(before.loss + epsilon.enclosure, exact=lambda: exact() + epsilon)


def worst_on_set(odometer: Odometer, query: Query, times: int) -> WorstCase:
    """The realized loss over a finite domain after so many responses, at worst.

    D of several responses is the sum of theirs, so the worst that can happen is one response over
    and over.
    """
    total = odometer.log_likelihood
    assert isinstance(total, LogLikelihood)
    likelihood = query.on(total.domain)
    if isinstance(likelihood, Pairwise):
        return _by_pairs(odometer.loss, total, likelihood, times)
    assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
    return _by_terms(query, total, likelihood, times)


def _by_pairs(now: Enclosure, total: LogLikelihood, likelihood: Pairwise, times: int) -> WorstCase:
    # D is epsilon for values that can be told apart, and zero for others.
    pair, epsilon = widest_pair(total, likelihood.told_from), likelihood.epsilon
    apart = capped(spread_of_pair(total, pair), now) + epsilon.enclosure * times
    return WorstCase(
        Enclosure(max(now.lower, apart.lower), max(now.upper, apart.upper)),
        exact=lambda: exact_spread_apart(total, likelihood.told_from, epsilon * times),
        response=likelihood.responses[likelihood.telling(*pair)],
    )


def _by_terms(
    query: Query, total: LogLikelihood, likelihood: BySufficientTerms, times: int
) -> WorstCase:
    losses = {i: spread_with(total, likelihood.term(i), times) for i in likelihood.sufficient}
    lower = max(loss.lower for loss in losses.values())
    upper = max(loss.upper for loss in losses.values())

    def exact() -> Nats:
        # A response whose loss is surely below that of another one need not be looked at.
        candidates = [i for i, loss in losses.items() if loss.upper >= lower]
        return max(exact_spread(total, Summand(query, i, times)) for i in candidates)

    worst = next(i for i, loss in losses.items() if loss.upper == upper)
    return WorstCase(Enclosure(lower, upper), exact, likelihood.responses[worst])
