"""Filters on many subjects at once: their accounts in arrays, and what counts against a budget.

A filter is defined by what it makes of the account of one subject. The functions here do the same
for many. For the filters of this package they work on arrays; any other filter, even one that
extends these, is asked about one subject after the other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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

__all__ = [
    "Accounts",
    "BudgetComparison",
    "Case",
    "LossBounds",
    "current_loss_bounds",
    "worst_loss_bounds",
]

_PURE = (BasicFilter, SimplifiedFilter, BayesianFilter)

#: A filter's bound for the account of one subject.
Case = Callable[[Account], WorstCase]


@dataclass(frozen=True, slots=True)
class BudgetComparison:
    """Whether each of many losses is within a budget."""

    within: Bools
    #: True where a search ended undecided; never where the loss is within the budget.
    unknown: Bools

    @classmethod
    def decided(cls, within: Bools) -> BudgetComparison:
        """Return a comparison that is decided for every subject."""
        return cls(within, np.zeros(len(within), dtype=np.bool_))

    @classmethod
    def of_cases(cls, cases: Sequence[WorstCase], budget: Nats) -> BudgetComparison:
        """Compare each of these cases with a budget."""
        within = np.array([case.within(budget) for case in cases], dtype=np.bool_)
        unknown = np.array([case.undecided(budget) for case in cases], dtype=np.bool_)
        return cls(within, unknown)


@dataclass(frozen=True, slots=True)
class LossBounds:
    """Bounds on the loss of each of many subjects, in doubles.

    Where a budget lies between the two bounds, ``settle`` compares: it takes the indices of these
    subjects.
    """

    lower: Floats
    upper: Floats
    settle: Callable[[Indices, Nats], BudgetComparison]
    #: The budgets that losses were computed for, rounded down. Larger ones do not accept more.
    limits: Floats | float = math.inf

    @classmethod
    def of_cases(cls, cases: Sequence[WorstCase], index_of: Indices) -> LossBounds:
        """Return the bounds of the case of each subject, by the index of the case."""

        def settle(rows: Indices, budget: Nats) -> BudgetComparison:
            needed, needed_of = np.unique(index_of[rows], return_inverse=True)
            compared = BudgetComparison.of_cases([cases[i] for i in needed.tolist()], budget)
            return BudgetComparison(compared.within[needed_of], compared.unknown[needed_of])

        lower = np.array([case.loss.lower for case in cases], dtype=np.float64)
        upper = np.array([case.loss.upper for case in cases], dtype=np.float64)
        limits = [math.inf if case.limit is None else case.limit.enclosure.lower for case in cases]
        return cls(lower[index_of], upper[index_of], settle, np.array(limits)[index_of])

    def against(self, budget: Nats) -> BudgetComparison:
        """Compare each loss with a budget."""
        limit = budget.enclosure
        within = self.upper <= np.minimum(limit.lower, self.limits)
        unknown = np.zeros(len(within), dtype=np.bool_)
        indices = np.flatnonzero(~within & (self.lower <= limit.upper))
        if len(indices):
            settled = self.settle(indices, budget)
            within[indices], unknown[indices] = settled.within, settled.unknown
        return BudgetComparison(within, unknown)

    def or_else(self, budget: Nats, alternative: Callable[[Bools], LossBounds]) -> LossBounds:
        """Return these bounds where they are within a budget, and an alternative elsewhere."""
        within = self.against(budget).within
        return self if within.all() else self.where(within, alternative(~within))

    def where(self, mask: Bools, alternative: LossBounds) -> LossBounds:
        """Return these bounds where the mask is true, and elsewhere an alternative, in order."""
        alternative_index = np.cumsum(~mask) - 1
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[~mask], upper[~mask] = alternative.lower, alternative.upper

        def settle(indices: Indices, budget: Nats) -> BudgetComparison:
            masked = mask[indices]
            first = self.settle(indices[masked], budget)
            second = alternative.settle(alternative_index[indices[~masked]], budget)
            within, unknown = np.empty((2, len(indices)), dtype=np.bool_)
            within[masked], within[~masked] = first.within, second.within
            unknown[masked], unknown[~masked] = first.unknown, second.unknown
            return BudgetComparison(within, unknown)

        limits = np.broadcast_to(self.limits, mask.shape).copy()
        limits[~mask] = alternative.limits
        return LossBounds(lower, upper, settle, limits)


class Accounts(ABC):
    """The accounts of many subjects who are asked one and the same query, in arrays."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of subjects."""

    @abstractmethod
    def loss(self) -> LossBounds:
        """Bound the realized losses now."""

    @abstractmethod
    def spent(self, query: Query | None = None) -> LossBounds:
        """Bound the sums of the epsilons now, or with one more query."""

    @abstractmethod
    def worst_after(self, query: Query, budget: Nats) -> LossBounds:
        """Bound the realized losses after one more query, at worst over its responses."""

    @abstractmethod
    def plus_epsilon(self, query: Query, budget: Nats) -> LossBounds:
        """Bound the realized losses now, plus the epsilon of the query."""

    @abstractmethod
    def by_queries(self, key: Any, case: Case) -> LossBounds:
        """Apply a case that depends on the queries that were asked, and on no response.

        It is computed once for every multiset of queries, and cached by ``key``.
        """

    @abstractmethod
    def one_by_one(self, case: Case) -> LossBounds:
        """Apply any case, once for all subjects who gave the same responses."""

    def at_level(self, filter_: Filter, query: Query | None) -> LossBounds:
        """Bound what counts against a budget at a level now, or after one more query."""
        raise AssertionError("levels are for records")

    @abstractmethod
    def subset(self, mask: Bools) -> Accounts:
        """Return the accounts of the subjects where the mask is true."""


def worst_loss_bounds(filter_: Filter, accounts: Accounts, query: Query) -> LossBounds:
    """Bound what would count against the budget of each subject after a query, at worst."""
    kind = type(filter_)  # a subclass may count otherwise
    if filter_.is_at_level and kind in _PURE:
        return accounts.at_level(filter_, query)
    if kind is BayesianFilter:
        return accounts.worst_after(query, filter_.budget)
    if kind is SimplifiedFilter:
        return accounts.plus_epsilon(query, filter_.budget)
    if kind is BasicFilter:
        return accounts.spent(query)
    if kind is CompositionFilter:
        return accounts.by_queries((filter_, query), partial(filter_.worst_case, query=query))
    if kind is ApproximateFilter:
        assert isinstance(filter_, ApproximateFilter)
        composed = accounts.by_queries(
            (filter_, query), partial(CompositionFilter.worst_case, filter_, query=query)
        )
        return composed.or_else(
            filter_.budget,
            lambda over: worst_loss_bounds(filter_.bayesian, accounts.subset(over), query),
        )
    return accounts.one_by_one(partial(filter_.worst_case, query=query))


def current_loss_bounds(filter_: Filter, accounts: Accounts) -> LossBounds:
    """Bound what counts against the budget of each subject so far."""
    kind = type(filter_)  # a subclass may count otherwise
    if filter_.is_at_level and kind in _PURE:
        return accounts.at_level(filter_, None)
    if kind in (BayesianFilter, SimplifiedFilter):
        return accounts.loss()
    if kind is BasicFilter:
        return accounts.spent()
    if kind is CompositionFilter:
        return accounts.by_queries((filter_, None), filter_.current_case)
    if kind is ApproximateFilter:
        assert isinstance(filter_, ApproximateFilter)
        composed = accounts.by_queries(
            (filter_, None), partial(CompositionFilter.current_case, filter_)
        )
        return composed.or_else(filter_.budget, lambda over: accounts.subset(over).loss())
    return accounts.one_by_one(filter_.current_case)
