"""Filters on many subjects at once: their accounts in arrays, and what counts against a budget.

A filter is defined by what it makes of the account of one subject. The functions here do the same
for many. For the filters of this package they work on arrays; any other filter, even one that
extends these, is asked about one subject after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from expost._types import Bools, Floats, Indices
from expost.filters._account import Account, WorstCase
from expost.filters._approximate import ApproximateFilter
from expost.filters._basic import BasicFilter
from expost.filters._bayesian import BayesianFilter
from expost.filters._composition import CompositionFilter
from expost.filters._filter import Filter
from expost.filters._simplified import SimplifiedFilter
from expost.numbers import Nats
from expost.queries import Query

__all__ = ["Accounts", "Amounts", "Case", "Settled", "amounts_held", "worst_amounts"]

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

    def or_else(self, budget: Nats, alternative: Callable[[Bools], Amounts]) -> Amounts:
        """Return these amounts where they are within a budget, and an alternative elsewhere."""
        within = self.against(budget).within
        return self if within.all() else self.where(within, alternative(~within))

    def where(self, chosen: Bools, other: Amounts) -> Amounts:
        """Return these amounts where chosen; ``other`` has those of the others, in order."""
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


def worst_amounts(filter_: Filter, accounts: Accounts, query: Query) -> Amounts:
    """Bound what would count against the budget of each subject after a query, at worst."""
    kind = type(filter_)  # a subclass may count otherwise
    if kind is BayesianFilter:
        return accounts.worst_after(query, filter_.budget)
    if kind is SimplifiedFilter:
        return accounts.plus_epsilon(query, filter_.budget)
    if kind is BasicFilter:
        return accounts.spent(query)
    if kind is CompositionFilter:
        return accounts.by_queries(query, partial(filter_.worst_case, query=query))
    if kind is ApproximateFilter:
        assert isinstance(filter_, ApproximateFilter)
        composed = accounts.by_queries(
            query, partial(CompositionFilter.worst_case, filter_, query=query)
        )
        return composed.or_else(
            filter_.budget,
            lambda others: worst_amounts(filter_.bayesian, accounts.some(others), query),
        )
    return accounts.one_by_one(partial(filter_.worst_case, query=query))


def amounts_held(filter_: Filter, accounts: Accounts) -> Amounts:
    """Bound what counts against the budget of each subject so far."""
    kind = type(filter_)  # a subclass may count otherwise
    if kind in (BayesianFilter, SimplifiedFilter):
        return accounts.loss()
    if kind is BasicFilter:
        return accounts.spent()
    if kind is CompositionFilter:
        return accounts.by_queries(None, filter_.held)
    if kind is ApproximateFilter:
        assert isinstance(filter_, ApproximateFilter)
        composed = accounts.by_queries(None, partial(CompositionFilter.held, filter_))
        return composed.or_else(filter_.budget, lambda others: accounts.some(others).loss())
    return accounts.one_by_one(filter_.held)
