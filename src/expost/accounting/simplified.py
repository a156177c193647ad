"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar

from expost.accounting.filter import Filter, WorstCase
from expost.accounting.odometer import Odometer
from expost.accounting.on_box import loss_plus_epsilon
from expost.domains import Box
from expost.queries import Query

__all__ = ["SimplifiedFilter"]


class SimplifiedFilter(Filter):
    """Accept while loss + epsilon is within the budget (paper, Algorithm 3).

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "simplified"

    def worst_case(self, odometer: Odometer, query: Query) -> WorstCase:
        domain = odometer.transcript.domain
        if isinstance(domain, Box):
            return loss_plus_epsilon(odometer, query, self.budget)
        epsilon = query.on(domain).epsilon
        return WorstCase(
            odometer.loss + epsilon.enclosure, exact=lambda: self.exact_loss(odometer) + epsilon
        )
