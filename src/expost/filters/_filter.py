"""The base class of filters: a budget, and a decision that is pure and exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np

from expost._format import format_remaining
from expost._types import Bools, Floats
from expost.cards import card
from expost.domains import Domain
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
from expost.filters._decision import Decision, remaining
from expost.filters._large_budgets import warn_if_large
from expost.filters._levels import EVERYTHING, Level
from expost.numbers import Enclosure, ExactLike, Nats, decimal_text
from expost.queries import Query, check_query

__all__ = ["Filter", "budget_from_json", "checked_budget", "fits_by_its_epsilon"]

_NODES_FOR_EPSILON = 4_000


@dataclass(frozen=True, init=False, repr=False)
class Filter(ABC):
    """A filter that accepts a query only if its worst case stays within the budget.

    A filter is a frozen description, as a query is, and part of a transcript file. The budget is
    ``epsilon`` in nats or ``ratio`` = e^epsilon; both are exact. A filter of your own extends this
    class and implements :meth:`worst_case`.
    """

    kind: ClassVar[str]
    #: Whether neither the budget nor the accepted queries have a delta.
    pure: ClassVar[bool] = True
    #: Whether the realized loss counts against the budget, rather than a sum or a cost.
    by_loss: ClassVar[bool] = True
    #: Whether responses change what is accepted next.
    by_responses: ClassVar[bool] = True
    #: The quantity that is compared with the budget before the next query, for reports.
    compares: ClassVar[str] = "its own count"
    budget: Nats

    def __init__(self, epsilon: ExactLike | None = None, *, ratio: ExactLike | None = None) -> None:
        object.__setattr__(self, "budget", Nats.budget(epsilon, ratio))
        warn_if_large(self.budget)

    @classmethod
    def of(cls, budget: Nats) -> Self:
        """Return the filter with an exact budget."""
        result = object.__new__(cls)
        object.__setattr__(result, "budget", checked_budget(budget))
        return result

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Filter:
        """Read the parameters, without ``kind``, strictly."""
        return cls.of(budget_from_json(cls.kind, fields))

    def tree(self) -> dict[str, Any]:
        """Return the parameters in their JSON shape."""
        if self.budget.rational:
            return {"epsilon": self.budget.rational}
        return {"ratio": self.budget.ratio}

    @property
    def limit(self) -> str:
        """The budget as people read it."""
        return str(self.budget)

    @property
    def budget_of_person(self) -> Nats | None:
        """The smallest budget about the person as a whole, with a delta or without."""
        budgets = [one.budget for one in self.members if not one.is_at_level]
        return min(budgets, default=None)

    @property
    def loss_limit(self) -> Nats | None:
        """The budget, if it bounds the realized loss about the person as a whole."""
        return self.budget if self.pure else None

    @property
    def level(self) -> Level:
        """The pairs of values that the budget is about."""
        return EVERYTHING

    @property
    def is_at_level(self) -> bool:
        """Whether a budget protects less than the person as a whole."""
        return self.level != EVERYTHING

    @property
    def members(self) -> tuple[Filter, ...]:
        """The filters that all have to accept a query: this one."""
        return (self,)

    def binding(self, account: Account) -> Filter:
        """Return the filter with the least remaining: this one."""
        return self

    def check_domain(self, domain: Domain) -> None:  # noqa: B027  # most accept every domain
        """Refuse a domain on which the budget would promise nothing; by default none.

        Raises:
            InvalidInput: With the reason.
        """

    @abstractmethod
    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        """Bound what would count against the budget after a query, at worst over its responses.

        Args:
            account: What was answered so far.
            query: The query that is decided.
            times: How often it is asked in a row; the result never falls with it.
        """

    def current_case(self, account: Account) -> WorstCase:
        """Bound what counts against the budget so far; by default the realized loss."""
        exact = None if account.searched else lambda: account.exact_loss
        return WorstCase(self.realized(account), exact)

    def loss(self, account: Account) -> Enclosure:
        """Enclose what counts against the budget so far."""
        return self.current_case(account).loss

    def exact_loss(self, account: Account) -> Nats:
        """Return what counts against the budget so far exactly, unless it is searched for."""
        exact = self.current_case(account).exact
        assert exact is not None, "a loss that is searched for is not exact"
        return exact()

    def realized(self, account: Account) -> Enclosure:
        """Enclose the realized loss now, on one side of a pure filter's budget if possible.

        On a box the budget may lie between the bounds of a search. Then it is enough that this
        filter accepts the last query after those before it; otherwise the search continues.
        """
        loss = account.loss
        if self.loss_limit is None:
            return loss
        limit = self.loss_limit.enclosure
        if not loss.lower <= limit.upper < loss.upper:
            return loss
        if self._last_was_accepted(account):
            return self.capped(loss)
        return account.loss_against(limit.lower)

    def capped(self, loss: Enclosure) -> Enclosure:
        """Cap the loss about a person whose queries were accepted, whatever a search found."""
        if self.loss_limit is None:
            return loss
        return Enclosure(loss.lower, min(loss.upper, self.loss_limit.enclosure.upper))

    def cap_accepted(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        """Cap the upper ends of many losses at the budget where all responses were accepted."""
        if self.loss_limit is None:
            return upper
        limit = self.loss_limit.enclosure.upper
        return np.where(accepted & (lower <= limit), np.minimum(upper, limit), upper)

    def cap_spent(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        """Cap the upper ends of many sums of epsilons if the filter compares these."""
        return upper

    def _last_was_accepted(self, account: Account) -> bool:
        if not account.searched:
            return account.exact_loss <= self.budget
        return self.accepts(*account.without_last())

    def holds(self, account: Account) -> bool | None:
        """Return whether what counts so far is within the budget; None if unknown.

        This is about the end; :func:`replay` reports whether the budget was respected throughout.
        """
        current, limit = self.current_case(account), self.budget.enclosure
        if current.exact is not None:
            return current.within(self.budget)
        if current.loss.upper <= limit.lower or account.exact_spent <= self.budget:
            return True
        if current.loss.lower > limit.upper:
            return False
        return self._last_was_accepted(account) or None

    def accepts(self, account: Account, query: Query) -> bool:
        """Return whether the query is certainly accepted."""
        return self.verdict(account, query) is True

    def verdict(self, account: Account, query: Query) -> bool | None:
        """Return whether this filter accepts the query; None if a search ended undecided."""
        if self.pure and query.approximate:
            return False
        if self.surely_accepts(account, query):
            return True
        worst = self.worst_case(account, query)
        if worst.needs_exact(self.budget):
            # An exact comparison reads every response, so it is charged as a search is.
            account.effort.charge(1 + account.distinct_exchanges // 4)
        return None if worst.undecided(self.budget) else worst.within(self.budget)

    def surely_accepts(self, account: Account, query: Query) -> bool:
        """Return whether the query is accepted, if a cheap bound shows it.

        A filter that overrides this saves a pass over the domain.
        """
        return False

    def count_repeats(self, history: object, query: Query) -> Repeats:
        """Count how many times in a row a query would be accepted, whatever the responses.

        Args:
            history: A transcript, a session or an odometer.
            query: The query that is repeated.
        """
        account = self._checked_account(history, query)
        if self.pure and query.approximate:
            return Repeats(0)
        return most_repeats(lambda times: self.worst_case(account, query, times), self.budget)

    def remaining(self, account: Account) -> float:
        """Return budget minus loss, rounded down."""
        return remaining(self.budget, self.loss(account))

    def remaining_text(self, account: Account) -> str:
        """Return what remains as people read it: 0 if only roundings remain."""
        return format_remaining(self.remaining(account), self.budget.nearest)

    def decide(self, history: object, query: Query) -> Decision:
        """Decide whether a query is accepted. This changes nothing and needs no secret.

        Args:
            history: A transcript, a session or an odometer. An odometer is the fastest, because
                it stores what it has computed.
            query: The query to decide.

        Raises:
            InvalidInput: The query does not suit the domain, or needs a delta.
        """
        account = self._checked_account(history, query)
        if self.pure and query.approximate:
            raise InvalidInput("needs a filter with a delta, such as ApproximateFilter", "query")
        worst = self.worst_case(account, query)
        return Decision(
            accepted=worst.within(self.budget),
            loss_at_worst=worst.loss,
            worst_response=worst.response,
            budget=self.budget,
            undecided=worst.undecided(self.budget),
            _filter=self,
            _account=account,
            _query=query,
        )

    def largest_epsilon(self, account: Account, query: Query) -> Decimal | None:
        """Find the largest epsilon with which the query would be accepted."""

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
            nodes = min(account.effort.node_limit, _NODES_FOR_EPSILON)
            effort = account.effort.sharing_nodes(nodes)
            account = account.with_effort(effort)
            guess = self.remaining(account)
            largest = nearly_largest_epsilon(query, attempt, guess, lambda: effort.used_up)
        return None if largest is None else Decimal(decimal_text(largest))

    def largest_cap(self, account: Account) -> Decimal | None:
        """Return the largest cap at which a saturating query, made now, would be accepted.

        None if no cap would be, or if the filter does not compare losses after responses.
        """
        return None

    def _checked_account(self, history: object, query: Query) -> Account:
        account = account_of(history)
        check_query(query)
        self.check_domain(account.domain)
        # A sum of epsilons may fit whatever the query is about, so check that it suits the domain.
        query.on(account.domain)
        return account

    def __repr__(self) -> str:
        rational, ratio = self.budget.rational, self.budget.ratio
        shown = f"epsilon={decimal_text(rational)}" if rational else f"ratio={ratio}"
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._card_facts())

    def _card_facts(self) -> dict[str, object]:
        return {"budget": self.limit}


def fits_by_its_epsilon(budget: Nats, account: Account, query: Query) -> bool:
    """Return whether loss + epsilon is surely within a budget, if the loss takes no search.

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


def budget_from_json(
    kind: str, fields: dict[str, Any], *required_fields: str, optional: Sequence[str] = ()
) -> Nats:
    """Read the budget of a file, its epsilon or its ratio, next to other fields."""
    required = ("kind", *required_fields)  # an error lists all of them
    members({"kind": kind, **fields}, required=required, optional=("epsilon", "ratio", *optional))
    for name in ("epsilon", "ratio"):
        if name in fields and fields[name] is None:
            raise InvalidInput("must be a number", name)
    return Nats.budget(fields.get("epsilon"), fields.get("ratio"))
