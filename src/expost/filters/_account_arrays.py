"""What a filter asks of many subjects at once: accounts in arrays, and what it gets back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._types import Bools, Floats, Indices
from expost.filters._account import Account, WorstCase
from expost.numbers import Nats
from expost.queries import Query

__all__ = ["Accounts", "Amounts", "Case", "Settled"]

Case = Callable[[Account], WorstCase]
"""What a filter makes of the account of one subject."""


@dataclass(frozen=True, slots=True)
class Settled:
    """For each of some subjects, whether an amount is within a budget."""

    within: Bools
    unknown: Bools
    """Where a search could not tell; never where it is within."""

    @classmethod
    def surely(cls, within: Bools) -> Settled:
        """Where it is known of everybody."""
        return cls(within, np.zeros(len(within), dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount for each of some subjects: between two doubles, and settled where that is close.

    ``settle`` takes the places of subjects whose ends have the budget between them.
    """

    lower: Floats
    upper: Floats
    settle: Callable[[Indices, Nats], Settled]

    def against(self, budget: Nats) -> Settled:
        """Whether each amount is within a budget."""
        limit = budget.enclosure
        within = self.upper <= limit.lower
        close = ~within & (self.lower <= limit.upper)
        unknown = np.zeros(len(within), dtype=np.bool_)
        if close.any():
            places = np.flatnonzero(close)
            settled = self.settle(places, budget)
            within[places], unknown[places] = settled.within, settled.unknown
        return Settled(within, unknown)

    def where(self, chosen: Bools, other: Amounts) -> Amounts:
        """These amounts where they are chosen; ``other`` has those of all the rest, in order."""
        numbers = np.where(chosen, np.cumsum(chosen), np.cumsum(~chosen)) - 1
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[~chosen], upper[~chosen] = other.lower, other.upper

        def settle(places: Indices, budget: Nats) -> Settled:
            own = chosen[places]
            first = self.settle(places[own], budget)
            second = other.settle(numbers[places[~own]], budget)
            within, unknown = np.empty((2, len(places)), dtype=np.bool_)
            within[own], within[~own] = first.within, second.within
            unknown[own], unknown[~own] = first.unknown, second.unknown
            return Settled(within, unknown)

        return Amounts(lower, upper, settle)


class Accounts(ABC):
    """What was answered so far by each of some subjects, who are asked one and the same query."""

    @abstractmethod
    def __len__(self) -> int:
        """How many subjects."""

    @abstractmethod
    def loss(self) -> Amounts:
        """The realized losses now."""

    @abstractmethod
    def spent(self, query: Query | None = None) -> Amounts:
        """The sums of the epsilons now, or with one more query."""

    @abstractmethod
    def worst_after(self, query: Query, budget: Nats) -> Amounts:
        """The realized losses after one more query, at worst over its responses."""

    @abstractmethod
    def plus_epsilon(self, query: Query, budget: Nats) -> Amounts:
        """The realized losses now, plus the epsilon of the query."""

    @abstractmethod
    def by_queries(self, key: Any, case: Case) -> Amounts:
        """What depends on the queries that were asked, and on no response.

        It is worked out once for every collection of queries, and kept by its key.
        """

    @abstractmethod
    def one_by_one(self, case: Case) -> Amounts:
        """What may depend on anything: once for all subjects who gave the same responses."""

    @abstractmethod
    def some(self, chosen: Bools) -> Accounts:
        """Those of some of the subjects."""
