"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar

from expost.accounting.filter import Filter, WorstCase
from expost.accounting.odometer import Odometer
from expost.extrema import exact_spread
from expost.queries import Query
from expost.rounding import Enclosure, Nats

__all__ = ["SimplifiedFilter"]


class SimplifiedFilter(Filter):
    """Accept while loss + epsilon is within the budget (paper, Algorithm 3).

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "simplified"

    def loss(self, odometer: Odometer) -> Enclosure:
        return odometer.loss

    def exact_loss(self, odometer: Odometer) -> Nats:
        return exact_spread(odometer.log_likelihood)

    def worst_case(self, odometer: Odometer, query: Query) -> WorstCase:
        epsilon = query.on(odometer.transcript.domain).epsilon
        return WorstCase(
            odometer.loss + epsilon.enclosure, exact=lambda: self.exact_loss(odometer) + epsilon
        )
