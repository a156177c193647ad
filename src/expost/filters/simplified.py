"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar

from expost.domains import Box
from expost.filters.bayesian import worst_on_set
from expost.filters.filter import Filter, WorstCase
from expost.loss.odometer import Odometer
from expost.loss.worst_on_box import loss_plus_epsilon
from expost.queries import Query

__all__ = ["SimplifiedFilter"]


class SimplifiedFilter(Filter):
    """Accept while loss + epsilon is within the budget (paper, Algorithm 3).

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "simplified"

    def worst_case(self, odometer: Odometer, query: Query, times: int = 1) -> WorstCase:
        domain = odometer.transcript.domain
        if isinstance(domain, Box):
            return loss_plus_epsilon(odometer, query, self.budget, times)
        epsilon = query.on(domain).epsilon
        before = WorstCase(odometer.loss, exact=lambda: self.exact_loss(odometer))
        if times > 1:
            before = worst_on_set(odometer, query, times - 1)
        exact = before.exact
        assert exact is not None, "over a finite domain everything is exact"
        return WorstCase(before.loss + epsilon.enclosure, exact=lambda: exact() + epsilon)
