"""What all filters share: a budget, and a decision that is pure and exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np

from expost._types import Bools, Floats
from expost.cards import card
from expost.errors import InvalidInput
from expost.files.reading import members
from expost.filters._acceptance_limits import (
    Repeats,
    Trial,
    largest_epsilon,
    most_repeats,
    nearly_largest_epsilon,
)
from expost.filters._account import Account, WorstCase, account_of
from expost.filters._decision import Decision, remaining, remaining_text
from expost.filters._large_budgets import warn_if_large
from expost.numbers import Enclosure, ExactLike, Nats, decimal_text
from expost.queries import Query, check_query

__all__ = ["Filter", "budget_from_json", "checked_budget", "fits_by_its_epsilon"]

_NODES_FOR_EPSILON = 4_000


@dataclass(frozen=True, init=False, repr=False)
class Filter(ABC):
    """Accepts a query only if its worst case stays within the budget.

    A filter is a frozen description, as a query is, and part of a transcript file. The budget is
    ``epsilon`` in nats or ``ratio`` = e^epsilon; both are exact. A filter of your own extends this
    class and implements :meth:`worst_case`.
    """

    kind: ClassVar[str]
    pure: ClassVar[bool] = True
    """Whether there is no delta, neither in the budget nor in the queries that may be asked."""
    by_loss: ClassVar[bool] = True
    """Whether the realized loss counts against the budget, rather than a sum or a cost."""
    by_responses: ClassVar[bool] = True
    """Whether what was responded changes what is accepted next."""
    compares: ClassVar[str] = "its own count"
    """What it compares with the budget before the next query, for reports."""
    budget: Nats

    def __init__(self, epsilon: ExactLike | None = None, *, ratio: ExactLike | None = None) -> None:
        object.__setattr__(self, "budget", Nats.budget(epsilon, ratio))
        warn_if_large(self.budget)

    @classmethod
    def of(cls, budget: Nats) -> Self:
        """The filter with an exact budget."""
        result = object.__new__(cls)
        object.__setattr__(result, "budget", checked_budget(budget))
        return result

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Filter:
        """Read the parameters, without ``kind``, strictly."""
        return cls.of(budget_from_json(cls.kind, fields))

    def tree(self) -> dict[str, Any]:
        """The parameters in their JSON shape."""
        if self.budget.rational:
            return {"epsilon": self.budget.rational}
        return {"ratio": self.budget.ratio}

    @property
    def limit(self) -> str:
        """The budget for people."""
        return str(self.budget)

    @abstractmethod
    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        """Bound what would count against the budget after a query, at worst over its responses.

        Args:
            account: What was answered so far.
            query: The query that is decided.
            times: How often it is asked in a row; the result never falls with it.
        """

    def held(self, account: Account) -> WorstCase:
        """Bound what counts against the budget so far; by default the realized loss."""
        exact = None if account.searched else lambda: account.exact_loss
        return WorstCase(self.realized(account), exact)

    def loss(self, account: Account) -> Enclosure:
        """Enclose what counts against the budget so far."""
        return self.held(account).loss

    def exact_loss(self, account: Account) -> Nats:
        """Return what counts against the budget so far exactly, unless it is searched for."""
        exact = self.held(account).exact
        assert exact is not None, "a loss that is searched for is not exact"
        return exact()

    def realized(self, account: Account) -> Enclosure:
        """The realized loss now, on one side of a pure filter's budget if that can be shown.

        On a box the budget may be between the bounds that a search found. Then it is enough that
        this filter accepts the last query on what came before; otherwise the search continues.
        """
        loss, limit = account.loss, self.budget.enclosure
        if not self.pure or not loss.lower <= limit.upper < loss.upper:
            return loss
        if self._last_was_accepted(account):
            return self.capped(loss)
        return account.loss_against(limit.lower)

    def capped(self, loss: Enclosure) -> Enclosure:
        """A loss that is known to be within the budget, whatever a search for it found."""
        return Enclosure(loss.lower, min(loss.upper, self.budget.enclosure.upper))

    def cap_accepted(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        """Upper ends of many losses: at most the budget where all responses were accepted."""
        if not self.pure:
            return upper
        limit = self.budget.enclosure.upper
        return np.where(accepted & (lower <= limit), np.minimum(upper, limit), upper)

    def cap_spent(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        """Upper ends of many sums of epsilons, which few filters compare with the budget."""
        return upper

    def _last_was_accepted(self, account: Account) -> bool:
        if not account.searched:
            return account.exact_loss <= self.budget
        return self.accepts(*account.without_last())

    def holds(self, account: Account) -> bool | None:
        """Whether what counts so far is within the budget; None if that is not known.

        This is about the end; :func:`replay` says whether the budget was respected on the way.
        """
        held, limit = self.held(account), self.budget.enclosure
        if held.exact is not None:
            return held.within(self.budget)
        if held.loss.upper <= limit.lower or account.exact_spent <= self.budget:
            return True
        if held.loss.lower > limit.upper:
            return False
        return self._last_was_accepted(account) or None

    def accepts(self, account: Account, query: Query) -> bool:
        """Whether the query is accepted, and nothing else."""
        return self.verdict(account, query) is True

    def verdict(self, account: Account, query: Query) -> bool | None:
        """Whether the condition of this filter holds; None if a search could not tell."""
        if self.pure and query.approximate:
            return False
        if self.surely_accepts(account, query):
            return True
        worst = self.worst_case(account, query)
        if worst.close(self.budget):
            # It goes through everything that was summed up, so it is charged as a search is.
            account.effort.charge(1 + account.different // 4)
        return None if worst.undecided(self.budget) else worst.within(self.budget)

    def surely_accepts(self, account: Account, query: Query) -> bool:
        """Whether the worst case is known to be within the budget without working it out.

        By default that is never known. A filter that knows it saves a pass over the domain.
        """
        return False

    def more(self, asked: object, query: Query) -> Repeats:
        """How many times in a row the query would be accepted, whatever the responses.

        ``asked`` is a transcript, a session or an odometer.
        """
        account = _asked(asked, query)
        if self.pure and query.approximate:
            return Repeats(0)
        return most_repeats(lambda times: self.worst_case(account, query, times), self.budget)

    def remaining(self, account: Account) -> float:
        """Budget minus loss, rounded down."""
        return remaining(self.budget, self.loss(account))

    def remaining_text(self, account: Account) -> str:
        """The same for people: 0 if only roundings are left."""
        return remaining_text(self.remaining(account), self.budget)

    def decide(self, asked: object, query: Query) -> Decision:
        """Decide whether the query is accepted. It changes nothing and needs no secret.

        ``asked`` is what was asked so far: a transcript, a session or an odometer. An odometer
        costs least, because it keeps what it worked out.
        """
        account = _asked(asked, query)
        if self.pure and query.approximate:
            raise InvalidInput("needs a filter with a delta, such as ApproximateFilter", "query")
        worst = self.worst_case(account, query)
        return Decision(
            accepted=worst.within(self.budget),
            loss_at_worst=worst.loss,
            worst_response=worst.response,
            budget=self.budget,
            undecided=worst.undecided(self.budget),
            _asked=(self, account, query),
        )

    def largest_epsilon(self, account: Account, query: Query) -> Decimal | None:
        """The largest epsilon found with which the query would be accepted."""

        def attempt(variant: Query) -> Trial:
            variant.on(account.domain)
            worst = self.worst_case(account, variant)
            middle = (worst.loss.lower + worst.loss.upper) / 2
            excess = worst.loss.upper if worst.exact else middle
            return worst.within(self.budget), excess - self.budget.enclosure.upper

        if not account.searched:
            largest = largest_epsilon(query, attempt, self.remaining(account))
        else:
            # Every attempt is a search, and all attempts share one limit.
            effort = account.effort.sharing_nodes(
                min(account.effort.node_limit, _NODES_FOR_EPSILON)
            )
            account = account.with_effort(effort)
            guess = self.remaining(account)
            largest = nearly_largest_epsilon(query, attempt, guess, lambda: effort.used_up)
        return None if largest is None else Decimal(decimal_text(largest))

    def largest_cap(self, account: Account) -> Decimal | None:
        """The largest cap at which a saturating query, made now, would be accepted.

        None if no cap is, or if the filter does not compare losses after responses.
        """
        return None

    def __repr__(self) -> str:
        rational, ratio = self.budget.rational, self.budget.ratio
        shown = f"epsilon={decimal_text(rational)}" if rational else f"ratio={ratio}"
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())

    def _facts(self) -> dict[str, object]:
        return {"budget": self.limit}


def _asked(given: object, query: Query) -> Account:
    account = account_of(given)
    check_query(query)
    # A sum of epsilons may fit whatever the query is about, so check that it suits the domain.
    query.on(account.domain)
    return account


def fits_by_its_epsilon(budget: Nats, account: Account, query: Query) -> bool:
    """Whether loss + epsilon is surely within a budget, where the loss takes no search.

    No response adds more than the nominal epsilon, and that is most often enough.
    """
    if account.searched:
        return False
    most = account.loss + query.ceiling(account.domain).enclosure
    return most.upper <= budget.enclosure.lower


def checked_budget(budget: Nats) -> Nats:
    """Refuse a budget that no file could hold."""
    if not budget > Nats() or (budget.rational and budget.ratio != 1):
        raise InvalidInput("a budget is either an epsilon or a ratio, and positive")
    return budget


def budget_from_json(kind: str, fields: dict[str, Any], *others: str) -> Nats:
    """The budget in a file, its epsilon or its ratio, beside other required fields."""
    required = ("kind", *others)  # which an error lists with the others
    members({"kind": kind, **fields}, required=required, optional=("epsilon", "ratio"))
    for name in ("epsilon", "ratio"):
        if name in fields and fields[name] is None:
            raise InvalidInput("must be a number", name)
    return Nats.budget(fields.get("epsilon"), fields.get("ratio"))
