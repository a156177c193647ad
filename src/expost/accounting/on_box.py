"""Worst cases over a box: searches that stop as soon as the budget is known to be kept or broken.

What is found depends on transcript, query, budget and effort alone. Proof: docs/theory/filters.md.
"""

from __future__ import annotations

from dataclasses import replace

from expost.accounting.filter import WorstCase
from expost.accounting.odometer import Odometer
from expost.extrema import compared
from expost.likelihood import BoxLogLikelihood
from expost.loss import worst_case_loss
from expost.queries import Query
from expost.rounding import Enclosure, Nats, down
from expost.transcript import Exchange

__all__ = ["loss_after_response", "loss_plus_epsilon"]

# Enough to see that a budget is far away.
_GLANCE = 16


def loss_plus_epsilon(
    odometer: Odometer, query: Query, budget: Nats, nodes: int | None = None
) -> WorstCase:
    """The realized loss plus the epsilon of the query, against a budget."""
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    epsilon = worst_case_loss(query, total.domain)
    most = odometer.exact_spent + query.charge(total.domain)
    if most <= budget:
        return WorstCase(Enclosure(0.0, most.enclosure.upper), exact=lambda: most)
    limit = down(budget.enclosure.lower - epsilon.upper)
    effort = odometer.effort if nodes is None else replace(odometer.effort, nodes=nodes)
    return WorstCase(compared(total, limit, odometer.spent, effort) + epsilon)


def loss_after_response(odometer: Odometer, query: Query, budget: Nats) -> WorstCase:
    """The realized loss after the query, at worst over its responses, against a budget."""
    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    likelihood = query.on(total.domain)
    if likelihood.sufficient is None:
        return loss_plus_epsilon(odometer, query, budget)
    # No response adds more than epsilon, and that is often enough.
    simple = loss_plus_epsilon(odometer, query, budget, _GLANCE)
    if simple.within(budget):
        # Some response leaves the loss where it is, or above: no less is sure.
        lower = max(0.0, down(simple.loss.lower - query.charge(total.domain).enclosure.upper))
        return WorstCase(Enclosure(lower, simple.loss.upper), exact=simple.exact)
    most = odometer.spent + query.charge(total.domain).enclosure
    limit = budget.enclosure.lower
    responses = [likelihood.responses[position] for position in likelihood.sufficient]
    losses: list[Enclosure] = []
    for response in responses:
        after = total.add(Exchange(query, response))
        losses.append(compared(after, limit, most, odometer.effort))
        if losses[-1].lower > limit:
            # One response that breaks the budget is enough, and the others may be worse still.
            upper = max(losses[-1].lower, min(most.upper, simple.loss.upper))
            return WorstCase(Enclosure(losses[-1].lower, upper), response=response)
    upper = max(loss.upper for loss in losses)
    worst = next(i for i, loss in enumerate(losses) if loss.upper == upper)
    return WorstCase(
        Enclosure(max(loss.lower for loss in losses), upper), response=responses[worst]
    )
