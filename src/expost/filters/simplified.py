"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar

from expost.filters.account import Account, WorstCase
from expost.filters.filter import Filter
from expost.queries import Query

__all__ = ["SimplifiedFilter"]


class SimplifiedFilter(Filter):
    """Accept while loss + epsilon is within the budget (paper, Algorithm 3).

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "simplified"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.plus_epsilon(query, times, self.budget)
