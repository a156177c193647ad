"""The account of the responses so far, which filters decide on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from expost.domains import Domain, Value
from expost.errors import InvalidInput, expect
from expost.filters._levels import EVERYTHING, Level
from expost.filters.rules import UNAFFORDABLE, Rule, Total
from expost.numbers import INFINITE, Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort

__all__ = ["OVER_ANY_BUDGET", "Account", "WorstCase", "account_of", "largest_case", "sum_after"]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """A bound on the loss that a query can lead to: in doubles, and exactly where needed.

    Over a box nothing is exact, and a loss that is not known to be within the budget counts as
    above it.
    """

    loss: Enclosure
    exact: Callable[[], Nats] | None = None
    response: Value | None = None
    #: The budget it was computed for. A larger one does not accept more.
    limit: Nats | None = None

    def _smaller(self, budget: Nats) -> Nats:
        return budget if self.limit is None or self.limit is budget else min(self.limit, budget)

    def within(self, budget: Nats) -> bool:
        """Return whether the loss is certainly at most the budget."""
        budget = self._smaller(budget)
        if self.loss.upper <= budget.enclosure.lower:
            return True
        if self.loss.lower > budget.enclosure.upper or self.exact is None:
            return False
        return self.exact() <= budget

    def needs_exact(self, budget: Nats) -> bool:
        """Return whether only an exact comparison with the budget decides."""
        limit = self._smaller(budget).enclosure
        return (
            self.exact is not None
            and self.loss.lower <= limit.upper
            and self.loss.upper > limit.lower
        )

    def undecided(self, budget: Nats) -> bool:
        """Return whether the loss may be on either side of the budget."""
        if self.exact is not None or self.within(budget) or self.loss.lower == math.inf:
            return False
        return Nats(Fraction(self.loss.lower)) <= self._smaller(budget)


#: The worst case of a query that is refused whatever the budget.
OVER_ANY_BUDGET = WorstCase(UNAFFORDABLE, exact=lambda: INFINITE)


def largest_case(cases: Sequence[WorstCase]) -> WorstCase:
    """Return the largest of some amounts that are exact where needed; zero if there are none."""
    if len(cases) < 2:
        return cases[0] if cases else WorstCase(Enclosure(0.0, 0.0), exact=Nats)
    lower = max(case.loss.lower for case in cases)
    worst = max(cases, key=lambda case: case.loss.upper)

    def exact() -> Nats:
        # An amount that is surely below another one is not the largest.
        return max(case.exact() for case in cases if case.exact and case.loss.upper >= lower)

    return WorstCase(Enclosure(lower, worst.loss.upper), exact, worst.response)


def sum_after(
    spent: RunningSum, exact_spent: Callable[[], Nats], charge: Nats, times: int
) -> WorstCase:
    """Return a sum of epsilons after a charge is added several times."""
    return WorstCase(
        (spent + RunningSum.of(charge) * times).enclosure,
        exact=lambda: exact_spent() + charge * times,
    )


class Account(ABC):
    """The responses so far, as far as a filter needs them. Immutable.

    It is a class and not a structural protocol, because a filter must reject other objects without
    reading their properties: each of these may be a search.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain of the subject's value."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many queries were answered."""

    @property
    @abstractmethod
    def effort(self) -> Effort:
        """The limits of a search, if losses are searched for."""

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
        """The realized loss exactly, unless it is searched for."""

    @property
    @abstractmethod
    def charged(self) -> RunningSum:
        """The sum of the epsilons now: the bound of basic composition."""

    @property
    @abstractmethod
    def exact_spent(self) -> Nats:
        """The sum of the epsilons, exactly."""

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons, enclosed by doubles."""
        return self.charged.enclosure

    def spent_after(self, query: Query, times: int) -> WorstCase:
        """Return the sum of the epsilons after a query is asked several times."""
        charge = query.ceiling(self.domain)
        return sum_after(self.charged, lambda: self.exact_spent, charge, times)

    def at_level(self, level: Level) -> Account:
        """Return the account of the pairs of values that a level protects.

        Its losses and sums of epsilons are about these pairs.
        """
        if level != EVERYTHING:
            raise InvalidInput(f"this account knows no loss about {level.about}", "protects")
        return self

    def losses_by_unit(self) -> dict[str, Enclosure]:
        """Return the losses about the units of a level that queries have touched, by name."""
        return {}

    def sums_by_unit(self) -> dict[str, Enclosure]:
        """Return the sums of epsilons about the units of a level that queries have touched."""
        return {}

    @property
    @abstractmethod
    def distinct_exchanges(self) -> int:
        """How many different exchanges an exact loss reads."""

    @abstractmethod
    def total(self, rule: Rule) -> Total:
        """Return the sums of a composition rule over all queries."""

    @abstractmethod
    def exact_total(self, rule: Rule) -> Nats:
        """Return the exact sum of the epsilons that a rule counts."""

    @abstractmethod
    def loss_against(self, limit: float) -> Enclosure:
        """Enclose the realized loss now; a search ends when it is on one side of a limit."""

    @abstractmethod
    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        """Bound the realized loss after a query is asked several times, at worst over responses.

        A search ends when it is on one side of the budget. The result is within no larger budget
        unless it is within this one.
        """

    @abstractmethod
    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        """Bound the realized loss before the last of these queries, and add its epsilon.

        A search ends when it is on one side of the budget. The result is within no larger budget
        unless it is within this one.
        """

    @abstractmethod
    def without_last(self) -> tuple[Self, Query]:
        """Return the account before the last query, and that query."""

    @abstractmethod
    def with_effort(self, effort: Effort) -> Self:
        """Return this account with another effort."""


def account_of(history: object) -> Account:
    """Return the account of a transcript, a session or a replay; an account is its own.

    Raises:
        InvalidInput: The argument is none of these.
    """
    # Packages above this one may be imported by their public names only, when they are needed.
    import expost

    if isinstance(history, expost.Transcript):
        return expost.Odometer(history)
    account = history if isinstance(history, Account) else getattr(history, "odometer", history)
    expect(account, Account, "a transcript, a session or an odometer")
    assert isinstance(account, Account)
    return account
