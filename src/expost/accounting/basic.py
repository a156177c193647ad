"""The basic filter: charge every query its worst case. The baseline that everybody knows."""

from __future__ import annotations

from typing import ClassVar

from expost.accounting.filter import Filter, WorstCase
from expost.accounting.odometer import Odometer
from expost.loss import basic_loss
from expost.queries import Query
from expost.rounding import Enclosure

__all__ = ["BasicFilter"]


class BasicFilter(Filter):
    """Accept while the sum of the epsilons is within the budget.

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "basic"

    def loss(self, odometer: Odometer) -> Enclosure:
        return odometer.spent

    def worst_case(self, odometer: Odometer, query: Query) -> WorstCase:
        charge = query.charge(odometer.transcript.domain)
        return WorstCase(
            odometer.spent + charge.enclosure,
            exact=lambda: basic_loss(odometer.transcript) + charge,
        )
