"""The basic filter: charge every query its worst case. The baseline that everybody knows."""

from __future__ import annotations

from typing import ClassVar

from expost.filters.account import Account, WorstCase
from expost.filters.filter import Filter
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query

__all__ = ["BasicFilter"]


class BasicFilter(Filter):
    """Accept while the sum of the epsilons is within the budget.

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "basic"
    by_loss: ClassVar[bool] = False

    def loss(self, account: Account) -> Enclosure:
        return account.spent

    def exact_loss(self, account: Account) -> Nats:
        return account.exact_spent

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        charge = query.ceiling(account.domain)
        return WorstCase(
            (account.charged + Added.of(charge) * times).enclosure,
            exact=lambda: self.exact_loss(account) + charge * times,
        )
