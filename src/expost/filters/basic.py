"""The basic filter: charge every query its worst case. The baseline that everybody knows."""

from __future__ import annotations

from typing import ClassVar

from expost.filters.filter import Filter, WorstCase
from expost.loss.odometer import Odometer
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query
from expost.transcript import Transcript

__all__ = ["BasicFilter", "basic_prefix"]


class BasicFilter(Filter):
    """Accept while the sum of the epsilons is within the budget.

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "basic"
    by_loss: ClassVar[bool] = False

    def loss(self, odometer: Odometer) -> Enclosure:
        return odometer.spent

    def exact_loss(self, odometer: Odometer) -> Nats:
        return odometer.exact_spent

    def worst_case(self, odometer: Odometer, query: Query, times: int = 1) -> WorstCase:
        charge = query.ceiling(odometer.transcript.domain)
        return WorstCase(
            (odometer.charged + Added.of(charge) * times).enclosure,
            exact=lambda: self.exact_loss(odometer) + charge * times,
        )


def basic_prefix(transcript: Transcript, budget: Nats) -> int:
    """How many of these exchanges basic composition would have allowed on this budget."""
    guard = BasicFilter.of(budget)
    prefix = Odometer(Transcript(transcript.domain))
    for exchange in transcript.exchanges:
        if not guard.accepts(prefix, exchange.query):
            break
        prefix = prefix.add(exchange.query, exchange.response)
    return len(prefix)
