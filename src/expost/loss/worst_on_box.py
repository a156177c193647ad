"""Worst cases over a box: searches that stop as soon as the budget is known to be kept or broken.

What is found depends on transcript, query, budget and effort alone. Proof: docs/theory/filters.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from expost.domains import Box
from expost.filters.account import WorstCase
from expost.loss.choose import all_compared, compared
from expost.loss.log_likelihood import BoxLogLikelihood
from expost.loss.realized import worst_case_loss
from expost.numbers import Added, Enclosure, Nats, down
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Exchange

if TYPE_CHECKING:
    from expost.loss.odometer import Odometer

__all__ = ["loss_after_responses", "loss_plus_epsilon"]

# Enough to see that a budget is far away.
_GLANCE = 16


def loss_plus_epsilon(odometer: Odometer, query: Query, budget: Nats, times: int = 1) -> WorstCase:
    """The realized loss before the last of some queries, at worst, plus its epsilon."""
    enough = _sum_of_epsilons(odometer, query, budget, times)
    if enough is not None:
        return enough
    epsilon = worst_case_loss(query, _box(odometer))
    limit, effort = down(budget.enclosure.lower - epsilon.upper), odometer.effort.deciding()
    if times == 1:
        return WorstCase(_loss_against(odometer, limit, effort) + epsilon)
    return WorstCase(_after_responses(odometer, query, times - 1, limit, effort).loss + epsilon)


def loss_after_responses(
    odometer: Odometer, query: Query, budget: Nats, times: int = 1
) -> WorstCase:
    """The realized loss after some more queries, at worst over responses, against a budget."""
    enough = _sum_of_epsilons(odometer, query, budget, times)
    if enough is not None:
        return enough
    effort = odometer.effort.deciding()
    return _after_responses(odometer, query, times, budget.enclosure.lower, effort)


def _sum_of_epsilons(
    odometer: Odometer, query: Query, budget: Nats, times: int
) -> WorstCase | None:
    """What basic composition says, if that is enough; it costs no search."""
    charge = query.ceiling(_box(odometer))
    # An exact sum goes through all of the transcript, and is seldom needed.
    sums = WorstCase(
        (odometer.charged + Added.of(charge) * times).enclosure,
        exact=lambda: odometer.exact_spent + charge * times,
    )
    if not sums.within(budget):
        return None
    most = budget.enclosure if sums.close(budget) else sums.loss
    return replace(sums, loss=Enclosure(0.0, min(sums.loss.upper, most.upper)))


def _after_responses(
    odometer: Odometer, query: Query, times: int, limit: float, effort: Effort
) -> WorstCase:
    """The realized loss after so many responses, at worst, against a limit."""
    # No response adds more than epsilon, and that is often enough.
    glance = replace(effort, nodes=min(_GLANCE, effort.most))
    simple = _at_most_epsilons(odometer, query, times, limit, glance)
    if simple.upper <= limit:
        return WorstCase(simple)
    worst = _after_some(odometer, query, times, limit, effort)
    if worst.loss.lower <= limit < worst.loss.upper and not effort.used_up:
        # What the Simplified filter accepts is accepted here too.
        simple = _at_most_epsilons(odometer, query, times, limit, effort)
    lower = max(worst.loss.lower, simple.lower)
    return replace(worst, loss=Enclosure(lower, min(worst.loss.upper, simple.upper)))


def _at_most_epsilons(
    odometer: Odometer, query: Query, times: int, limit: float, effort: Effort
) -> Enclosure:
    """The realized loss after some queries, at worst, by the loss now and their epsilons.

    It is at most the sum of the two, and at least their difference, whichever is larger.
    """
    epsilons = worst_case_loss(query, _box(odometer)) * times
    loss = _loss_against(odometer, down(limit - epsilons.upper), effort)
    lower = max(loss.lower, down(epsilons.lower - loss.upper))
    return Enclosure(lower, (loss + epsilons).upper)


def _loss_against(odometer: Odometer, limit: float, effort: Effort) -> Enclosure:
    """The realized loss, searched for until it is on one side of a limit."""
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    return compared(total, limit, odometer.spent, effort)


def _after_some(
    odometer: Odometer, query: Query, times: int, limit: float, effort: Effort
) -> WorstCase:
    """The realized loss after one of the sufficient responses, given so many times.

    Where it would take too many of them, after a loud one: then there is no upper end.
    """
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    likelihood = query.on(total.domain)
    most = odometer.spent + query.ceiling(total.domain).enclosure * times
    positions = likelihood.sufficient
    tried = [
        Exchange(query, likelihood.responses[position], position)
        for position in (likelihood.loudest if positions is None else positions)
    ]
    after = [total.add(exchange, times) for exchange in tried]
    losses = all_compared(after, limit, most, effort)
    for exchange, loss in zip(tried, losses, strict=True):
        if loss.lower > limit:
            # One response that breaks the budget is enough, and the others may be worse still.
            return WorstCase(Enclosure(loss.lower, math.inf), response=exchange.response)
    lower = max(loss.lower for loss in losses)
    if positions is None:
        return WorstCase(Enclosure(lower, math.inf))
    upper = max(loss.upper for loss in losses)
    worst = next(i for i, loss in enumerate(losses) if loss.upper == upper)
    return WorstCase(Enclosure(lower, upper), response=tried[worst].response)


def _box(odometer: Odometer) -> Box:
    assert isinstance(odometer.log_likelihood, BoxLogLikelihood)
    return odometer.log_likelihood.domain
