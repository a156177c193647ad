"""What every ℓ has: the counted responses, and what was charged for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from expost.domains import Attributes, Box, FiniteSet
from expost.loss.shares import PartLoss
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query
from expost.transcript import Tally

__all__ = ["Tallied"]

D = TypeVar("D", FiniteSet, Attributes, Box)


@dataclass(frozen=True, eq=False)
class Tallied(Generic[D]):
    """Counted responses over a domain, and the sum of their epsilons, which bounds the loss."""

    domain: D
    tally: Tally
    _charged: Added | None = field(repr=False)
    """If it is known from the exchange before; otherwise it is summed when first needed."""

    @cached_property
    def charged(self) -> Added:
        if self._charged is not None:
            return self._charged
        total = Added()
        for part in self.tally:
            total += Added.of(part.query.ceiling(self.domain)) * part.times
        return total

    def _charged_with(self, query: Query, times: int = 1) -> Added:
        return self.charged + Added.of(query.ceiling(self.domain)) * times

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        return ()

    @cached_property
    def spent(self) -> Enclosure:
        return self.charged.enclosure

    @property
    def exact_spent(self) -> Nats:
        return Nats.total((part.query.ceiling(self.domain), part.times) for part in self.tally)
