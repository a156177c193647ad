"""Two ways of accounting for the same responses: as a whole, and in groups as the paper did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from expost.filters.filter import Filter
from expost.loss.odometer import Odometer
from expost.loss.realized import worst_case_loss
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from expost.transcript import Transcript

__all__ = ["GROUP", "Account", "Groups", "Whole"]

GROUP = 10
_GROUP_GAP = 0.002
_ZERO = Enclosure(0.0, 0.0)


class Account(Protocol):
    """The loss so far, and what filters would hold against their budgets."""

    @property
    def loss(self) -> Enclosure: ...

    def add(self, query: Query, response: Any) -> Self: ...

    def held(self, query: Query) -> dict[str, Enclosure]:
        """For each kind of filter, what it would hold against its budget after the query."""
        ...

    def settle(self, guard: Filter, query: Query) -> tuple[bool, bool]:
        """If that does not decide: whether the query is accepted, and whether it is undecided."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """The loss of all responses together."""

    odometer: Odometer

    @property
    def loss(self) -> Enclosure:
        return self.odometer.loss

    def add(self, query: Query, response: Any) -> Whole:
        return Whole(self.odometer.add(query, response))

    def held(self, query: Query) -> dict[str, Enclosure]:
        most = self.loss + worst_case_loss(query, self.odometer.transcript.domain)
        # Some response does not lower the loss, and none adds more than epsilon.
        return {"simplified": most, "bayesian": Enclosure(self.loss.lower, most.upper)}

    def settle(self, guard: Filter, query: Query) -> tuple[bool, bool]:
        decision = guard.decide(self.odometer, query)
        return decision.accepted, decision.undecided


@dataclass(frozen=True, slots=True)
class Groups:
    """The sum of the losses of groups of queries, which is an upper bound (paper, appendix C)."""

    full: Enclosure
    spent: Nats
    current: Odometer

    @classmethod
    def start(cls, empty: Odometer) -> Groups:
        # The gaps of the groups add up, so each must be smaller.
        effort = replace(empty.effort, gap=min(_GROUP_GAP, empty.effort.gap))
        return cls(_ZERO, Nats(), Odometer(empty.transcript, effort=effort))

    @property
    def loss(self) -> Enclosure:
        return self.full + self.current.loss

    def add(self, query: Query, response: Any) -> Groups:
        domain = self.current.transcript.domain
        spent, current = self.spent + query.charge(domain), self.current.add(query, response)
        if len(current) < GROUP:
            return Groups(self.full, spent, current)
        empty = Odometer(Transcript(domain), effort=current.effort)
        return Groups(self.full + current.loss, spent, empty)

    def held(self, query: Query) -> dict[str, Enclosure]:
        domain = self.current.transcript.domain
        after = [self.add(query, response).loss for response in query.on(domain).responses]
        worst = Enclosure(max(loss.lower for loss in after), max(loss.upper for loss in after))
        return {"simplified": self.loss + worst_case_loss(query, domain), "bayesian": worst}

    def settle(self, guard: Filter, query: Query) -> tuple[bool, bool]:
        # The bound is too large, but a filter never does worse than basic composition.
        charge = query.charge(self.current.transcript.domain)
        return self.spent + charge <= guard.budget, False
