"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar, final

from expost.filters.account import Account, WorstCase
from expost.filters.filter import Filter, fits_by_its_epsilon
from expost.queries import Query

__all__ = ["SimplifiedFilter"]


@final
class SimplifiedFilter(Filter):
    """Accept while loss + epsilon is within the budget (paper, Algorithm 3).

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "simplified"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.plus_epsilon(query, times, self.budget)

    def surely_accepts(self, account: Account, query: Query) -> bool:
        return fits_by_its_epsilon(self.budget, account, query)
