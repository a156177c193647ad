"""The conjunction of filters: a query is accepted if all of them accept it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar, Self, final

import numpy as np

from expost._types import Bools, Floats
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters._acceptance_limits import Repeats
from expost.filters._account import Account, WorstCase
from expost.filters._decision import Decision
from expost.filters._filter import Filter
from expost.numbers import Nats
from expost.queries import Query

__all__ = ["AllOf"]

_MOST_FILTERS = 16


@final
@dataclass(frozen=True, init=False, repr=False)
class AllOf(Filter):
    """Several filters that all have to accept a query; each of their guarantees holds.

    A refusal names the filter that refused. Proof: docs/theory/levels.md.

    Args:
        filters: The filters.

    >>> import expost as xp
    >>> week = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
    >>> both = xp.AllOf(week, xp.BayesianFilter(epsilon=8))
    >>> both.limit
    '1 about any one step, and 8 about the person as a whole'
    """

    kind: ClassVar[str] = "all"
    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter) -> None:
        if not filters:
            raise InvalidInput("needs at least one filter", "filters")
        if len(filters) > _MOST_FILTERS:
            reason = f"{len(filters)} filters; at most {_MOST_FILTERS} are supported"
            raise InvalidInput(reason, "filters")
        for filter_ in filters:
            expect(filter_, Filter, "a filter, such as BayesianFilter(epsilon=1)", "filters")
            if isinstance(filter_, AllOf):
                raise InvalidInput("one AllOf cannot be inside another", "filters")
        object.__setattr__(self, "filters", filters)
        # The budget that bounds the loss about the person, if there is one.
        budget = self.loss_limit or min(filter_.budget for filter_ in filters)
        object.__setattr__(self, "budget", budget)

    @classmethod
    def of(cls, budget: Nats) -> Self:
        raise InvalidInput("each of the filters has a budget of its own", "filters")

    def tree(self) -> dict[str, Any]:
        return {"filters": [{"kind": one.kind, **one.tree()} for one in self.filters]}

    @property
    def members(self) -> tuple[Filter, ...]:
        return self.filters

    # A class of filters has these four as constants; here they depend on the filters.
    @property
    def pure(self) -> bool:  # type: ignore[override]
        """Whether some filter accepts no query with a delta."""
        return any(filter_.pure for filter_ in self.filters)

    @property
    def by_loss(self) -> bool:  # type: ignore[override]
        """Whether the realized loss counts against some budget."""
        return any(filter_.by_loss for filter_ in self.filters)

    @property
    def by_responses(self) -> bool:  # type: ignore[override]
        """Whether responses change what is accepted next."""
        return any(filter_.by_responses for filter_ in self.filters)

    @property
    def compares(self) -> str:  # type: ignore[override]
        """The quantities that are compared with the budgets, for reports."""
        return ", and ".join(dict.fromkeys(filter_.compares for filter_ in self.filters))

    @property
    def limit(self) -> str:
        return ", and ".join(
            f"{one.limit}" if " about " in one.limit or not one.pure
            else f"{one.limit} about the person as a whole"
            for one in self.filters
        )  # fmt: skip

    @property
    def loss_limit(self) -> Nats | None:
        limits = [one.loss_limit for one in self.filters if one.loss_limit is not None]
        return min(limits, default=None)

    @property
    def is_at_level(self) -> bool:
        return any(filter_.is_at_level for filter_ in self.filters)

    def check_domain(self, domain: Domain) -> None:
        for index, filter_ in enumerate(self.filters):
            with at(f"filters[{index}]"):
                filter_.check_domain(domain)

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        cases = [(one.budget, one.worst_case(account, query, times)) for one in self.filters]
        return min(cases, key=lambda case: case[0].enclosure.lower - case[1].loss.upper)[1]

    def binding(self, account: Account) -> Filter:
        """Return the filter with the least remaining."""
        return min(self.filters, key=lambda filter_: filter_.remaining(account))

    def current_case(self, account: Account) -> WorstCase:
        return self.binding(account).current_case(account)

    def holds(self, account: Account) -> bool | None:
        verdicts = [filter_.holds(account) for filter_ in self.filters]
        return False if False in verdicts else None if None in verdicts else True

    def verdict(self, account: Account, query: Query) -> bool | None:
        verdicts = []
        for filter_ in self.filters:
            verdicts.append(filter_.verdict(account, query))
            if verdicts[-1] is False:
                return False
        return None if None in verdicts else True

    def surely_accepts(self, account: Account, query: Query) -> bool:
        return all(filter_.surely_accepts(account, query) for filter_ in self.filters)

    def remaining(self, account: Account) -> float:
        return min(filter_.remaining(account) for filter_ in self.filters)

    def remaining_text(self, account: Account) -> str:
        return self.binding(account).remaining_text(account)

    def cap_spent(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        caps = [filter_.cap_spent(lower, upper, accepted) for filter_ in self.filters]
        return np.asarray(np.minimum.reduce(caps))

    def count_repeats(self, history: object, query: Query) -> Repeats:
        repeats = [filter_.count_repeats(history, query) for filter_ in self.filters]
        return min(repeats, key=lambda repeated: repeated.count)

    def decide(self, history: object, query: Query) -> Decision:
        return conjunction([filter_.decide(history, query) for filter_ in self.filters])

    def largest_epsilon(self, account: Account, query: Query) -> Decimal | None:
        largest = [filter_.largest_epsilon(account, query) for filter_ in self.filters]
        found = [epsilon for epsilon in largest if epsilon is not None]
        return min(found) if len(found) == len(largest) else None

    def __repr__(self) -> str:
        return f"AllOf({', '.join(map(repr, self.filters))})"


def conjunction(decisions: Sequence[Decision]) -> Decision:
    """Return the decision of the filter that refuses, or else of the one closest to its budget."""

    def order(decision: Decision) -> tuple[bool, bool, float]:
        room = decision.budget.enclosure.lower - decision.loss_at_worst.upper
        return decision.accepted, decision.undecided, room

    return replace(min(decisions, key=order), by_filter=tuple(decisions))
