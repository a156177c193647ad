"""What a filter asks: an account of what was answered so far."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from expost.domains import Domain, Value
from expost.errors import expect
from expost.filters.rules import UNAFFORDABLE, Rule, Total
from expost.numbers import INFINITE, Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort

__all__ = ["OVER_ANY_BUDGET", "Account", "WorstCase", "account_of"]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The loss that a query can lead to: in doubles, and exactly if that is needed.

    Over a box nothing is exact, and a loss that is not known to be within the budget counts as
    above it.
    """

    loss: Enclosure
    exact: Callable[[], Nats] | None = None
    response: Value | None = None

    def within(self, budget: Nats) -> bool:
        """Whether the loss is at most the budget."""
        if self.loss.upper <= budget.enclosure.lower:
            return True
        if self.loss.lower > budget.enclosure.upper or self.exact is None:
            return False
        return self.exact() <= budget

    def close(self, budget: Nats) -> bool:
        """Whether only an exact comparison can tell."""
        limit = budget.enclosure
        return (
            self.exact is not None
            and self.loss.lower <= limit.upper
            and self.loss.upper > limit.lower
        )

    def undecided(self, budget: Nats) -> bool:
        """Whether the loss may be on either side of the budget."""
        return self.exact is None and not self.within(budget) and not self._surely_over(budget)

    def _surely_over(self, budget: Nats) -> bool:
        lower = self.loss.lower
        return lower == math.inf or Nats(Fraction(lower)) > budget


OVER_ANY_BUDGET = WorstCase(UNAFFORDABLE, exact=lambda: INFINITE)
"""The worst case of what is refused whatever the budget."""


class Account(ABC):
    """What a filter needs to know of what was answered so far. Immutable.

    It is a class and not a structural protocol, so that a filter can reject other objects without
    looking at their properties, each of which may be a search.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What the subject's value can be."""

    @abstractmethod
    def __len__(self) -> int:
        """How many queries were answered."""

    @property
    @abstractmethod
    def effort(self) -> Effort:
        """How hard to search, if losses are searched for."""

    @property
    @abstractmethod
    def searched(self) -> bool:
        """Whether every loss costs a search, and is never exact, as over a box."""

    @property
    @abstractmethod
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""

    @property
    @abstractmethod
    def exact_loss(self) -> Nats:
        """The same, exactly, unless it is searched for."""

    @property
    @abstractmethod
    def charged(self) -> RunningSum:
        """The sum of the epsilons now, which is what basic composition says."""

    @property
    @abstractmethod
    def exact_spent(self) -> Nats:
        """The same, exactly."""

    @property
    def spent(self) -> Enclosure:
        """The same, in doubles."""
        return self.charged.enclosure

    @property
    @abstractmethod
    def different(self) -> int:
        """How many different exchanges an exact loss goes through."""

    @abstractmethod
    def total(self, rule: Rule) -> Total:
        """What a composition rule sums up over all queries."""

    @abstractmethod
    def exact_total(self, rule: Rule) -> Nats:
        """The epsilons that the rule counts, added up exactly."""

    @abstractmethod
    def loss_against(self, limit: float) -> Enclosure:
        """The realized loss now, searched for until it is on one side of a limit."""

    @abstractmethod
    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        """The realized loss after some more queries, at worst over responses.

        A search ends when it is on one side of the budget.
        """

    @abstractmethod
    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        """The same before the last of these queries, plus its epsilon."""

    @abstractmethod
    def without_last(self) -> tuple[Self, Query]:
        """The account before the last query, and that query."""

    @abstractmethod
    def with_effort(self, effort: Effort) -> Self:
        """The same account with another effort."""


def account_of(given: object) -> Account:
    """The account that is meant: itself, that of a session or a replay, or one of a transcript."""
    # What a room above makes of a transcript is known here by its public name only.
    import expost

    if isinstance(given, expost.Transcript):
        return expost.Odometer(given)
    account = given if isinstance(given, Account) else getattr(given, "odometer", given)
    expect(account, Account, "a transcript, a session or an odometer")
    assert isinstance(account, Account)
    return account
