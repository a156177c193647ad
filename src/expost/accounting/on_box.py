"""Worst cases over a box: searches that stop as soon as the budget is known to be kept or broken.

What is found depends on transcript, query, budget and effort alone. Proof: docs/theory/filters.md.
"""

from __future__ import annotations

from dataclasses import replace

from expost.accounting.filter import WorstCase
from expost.accounting.odometer import Odometer
from expost.domains import Box
from expost.extrema import compared
from expost.likelihood import BoxLogLikelihood
from expost.loss import worst_case_loss
from expost.queries import Query
from expost.rounding import Enclosure, Nats, down
from expost.transcript import Exchange

__all__ = ["loss_after_responses", "loss_plus_epsilon"]

# Enough to see that a budget is far away.
_GLANCE = 16


def loss_plus_epsilon(odometer: Odometer, query: Query, budget: Nats, times: int = 1) -> WorstCase:
    """The realized loss before the last of some queries, at worst, plus its epsilon."""
    if times == 1 or query.on(_box(odometer)).sufficient is None:
        return _loss_plus_epsilons(odometer, query, budget, times)
    simple = _loss_plus_epsilons(odometer, query, budget, times, _GLANCE)
    if simple.within(budget):
        return simple
    epsilon = worst_case_loss(query, _box(odometer))
    limit = down(budget.enclosure.lower - epsilon.upper)
    before = _after_responses(odometer, query, times - 1, limit, simple.loss.upper)
    return WorstCase(before.loss + epsilon)


def loss_after_responses(
    odometer: Odometer, query: Query, budget: Nats, times: int = 1
) -> WorstCase:
    """The realized loss after some more queries, at worst over responses, against a budget."""
    if query.on(_box(odometer)).sufficient is None:
        return _loss_plus_epsilons(odometer, query, budget, times)
    # No response adds more than epsilon, and that is often enough.
    simple = _loss_plus_epsilons(odometer, query, budget, times, _GLANCE)
    if simple.within(budget):
        # Some response leaves the loss where it is, or above: no less is sure.
        added = query.ceiling(_box(odometer)).enclosure * times
        lower = max(0.0, down(simple.loss.lower - added.upper))
        return WorstCase(Enclosure(lower, simple.loss.upper), exact=simple.exact)
    return _after_responses(odometer, query, times, budget.enclosure.lower, simple.loss.upper)


def _loss_plus_epsilons(
    odometer: Odometer, query: Query, budget: Nats, times: int, nodes: int | None = None
) -> WorstCase:
    """The realized loss plus the epsilon of each query, against a budget."""
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    epsilon = worst_case_loss(query, total.domain) * times
    most = odometer.exact_spent + query.ceiling(total.domain) * times
    if most <= budget:
        return WorstCase(Enclosure(0.0, most.enclosure.upper), exact=lambda: most)
    limit = down(budget.enclosure.lower - epsilon.upper)
    effort = odometer.effort if nodes is None else replace(odometer.effort, nodes=nodes)
    return WorstCase(compared(total, limit, odometer.spent, effort) + epsilon)


def _after_responses(
    odometer: Odometer, query: Query, times: int, limit: float, ceiling: float
) -> WorstCase:
    """The realized loss after one of the sufficient responses, given so many times."""
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    likelihood = query.on(total.domain)
    assert likelihood.sufficient is not None
    most = odometer.spent + query.ceiling(total.domain).enclosure * times
    responses = [likelihood.responses[position] for position in likelihood.sufficient]
    losses: list[Enclosure] = []
    for response in responses:
        after = total.add(Exchange(query, response), times)
        losses.append(compared(after, limit, most, odometer.effort))
        if losses[-1].lower > limit:
            # One response that breaks the budget is enough, and the others may be worse still.
            upper = max(losses[-1].lower, min(most.upper, ceiling))
            return WorstCase(Enclosure(losses[-1].lower, upper), response=response)
    upper = max(loss.upper for loss in losses)
    worst = next(i for i, loss in enumerate(losses) if loss.upper == upper)
    return WorstCase(
        Enclosure(max(loss.lower for loss in losses), upper), response=responses[worst]
    )


def _box(odometer: Odometer) -> Box:
    assert isinstance(odometer.log_likelihood, BoxLogLikelihood)
    return odometer.log_likelihood.domain
