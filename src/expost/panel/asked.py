"""Which queries were asked how often, of many subjects: a number for each collection of queries.

The cost of a composition rule depends on nothing else, and subjects share most collections.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from expost.domains import Domain
from expost.filters._account import Account, WorstCase
from expost.filters.rules import Rule, Total
from expost.numbers import Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort

__all__ = ["QueryOnlyAccount"]


class QueryOnlyAccount(Account):
    """An account of queries alone: how often each was asked. It knows of no response."""

    __slots__ = ("_before", "_count", "_domain", "_last", "_totals")

    def __init__(self, domain: Domain, before: QueryOnlyAccount | None, last: Query | None) -> None:
        self._domain = domain
        self._before = before
        self._last = last
        self._count: int = 0 if before is None else before._count + 1
        self._totals: dict[Rule, Total] = {}

    @property
    def domain(self) -> Domain:
        return self._domain

    def __len__(self) -> int:
        return self._count

    def total(self, rule: Rule) -> Total:
        total = self._totals.get(rule)
        if total is None:
            total = Total()
            for before in reversed(list(self._back_to(rule))):
                if before._last is not None:
                    assert before._before is not None
                    total = before._before._totals[rule] + rule.price(before._last, self._domain)
                before._totals[rule] = total
        return total

    def _back_to(self, rule: Rule) -> Iterable[QueryOnlyAccount]:
        """This and what came before, as far as it is not known."""
        each: QueryOnlyAccount | None = self
        while each is not None and rule not in each._totals:
            yield each
            each = each._before

    def exact_total(self, rule: Rule) -> Nats:
        return Nats.total((rule.charge(query, self._domain)[0], 1) for query in self._queries)

    @property
    def exact_spent(self) -> Nats:
        return Nats.total((query.ceiling(self._domain), 1) for query in self._queries)

    @property
    def charged(self) -> RunningSum:
        total = RunningSum()
        for query in self._queries:
            total += RunningSum.of(query.ceiling(self._domain))
        return total

    @property
    def _queries(self) -> Iterable[Query]:
        each: QueryOnlyAccount | None = self
        while each is not None and each._last is not None:
            yield each._last
            each = each._before

    @property
    def effort(self) -> Effort:
        return Effort()

    @property
    def searched(self) -> bool:
        return False

    @property
    def different(self) -> int:
        return self._count

    @property
    def loss(self) -> Enclosure:
        raise AssertionError("what depends on responses is not asked here")

    @property
    def exact_loss(self) -> Nats:
        raise AssertionError("what depends on responses is not asked here")

    def loss_against(self, limit: float) -> Enclosure:
        return self.loss

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return WorstCase(self.loss)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return WorstCase(self.loss)

    def without_last(self) -> tuple[Self, Query]:
        raise AssertionError("collections have no order")

    def with_effort(self, effort: Effort) -> Self:
        return self
