"""Which queries were asked how often, of many subjects: a number for each collection of queries.

The cost of a composition rule depends on nothing else, and subjects share most collections.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.domains import Domain
from expost.filters._account import Account, WorstCase
from expost.filters.rules import Rule, Total
from expost.numbers import Enclosure, Nats, RunningSum
from expost.panel.log import Log
from expost.panel.places import Chosen
from expost.panel.question import Question
from expost.queries import Query
from expost.solver import Effort

__all__ = ["Asked", "Collections"]


class Asked(Account):
    """An account of queries alone: how often each was asked. It knows of no response."""

    __slots__ = ("_before", "_count", "_domain", "_last", "_totals")

    def __init__(self, domain: Domain, before: Asked | None, last: Query | None) -> None:
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

    def _back_to(self, rule: Rule) -> Iterable[Asked]:
        """This and what came before, as far as it is not known."""
        each: Asked | None = self
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
        each: Asked | None = self
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


class Collections:
    """The collections of queries that occur, by numbers, and whose is which."""

    def __init__(self, domain: Domain, count: int) -> None:
        self.of_subject = np.zeros(count, dtype=np.int32)
        self.accounts = [Asked(domain, None, None)]
        self._domain = domain
        self._known: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        self._counts: list[tuple[tuple[int, int], ...]] = [()]
        self._next: dict[int, NDArray[np.int32]] = {}
        self.cases: dict[Any, list[WorstCase | None]] = {}

    @classmethod
    def of(cls, domain: Domain, count: int, log: Log) -> Collections:
        """Those of a log."""
        collections = cls(domain, count)
        for question, places, _ in log.turns:
            collections.add(question, Chosen(count, places))
        return collections

    def add(self, question: Question, chosen: Chosen) -> None:
        """Some subjects were asked one more question."""
        before = self.of_subject[chosen.index]
        following = self._next.get(question.number, np.empty(0, dtype=np.int32))
        missing = len(self.accounts) - len(following)
        following = np.append(following, np.full(missing, -1, dtype=np.int32))
        after = following[before]
        if (after < 0).any():
            for number in np.unique(before[after < 0]).tolist():
                following[number] = self._after(number, question)
            after = following[before]
        self._next[question.number] = following
        self.of_subject[chosen.index] = after

    def _after(self, number: int, question: Question) -> int:
        counts = dict(self._counts[number])
        counts[question.number] = counts.get(question.number, 0) + 1
        key = tuple(sorted(counts.items()))
        found = self._known.setdefault(key, len(self.accounts))
        if found == len(self.accounts):
            self._counts.append(key)
            self.accounts.append(Asked(self._domain, self.accounts[number], question.query))
        return found

    def numbers(self, places: Indices | slice) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The collections of some subjects: those that occur, and for each subject which one."""
        own, each = np.unique(self.of_subject[places], return_inverse=True)
        return own.astype(np.intp), each
