"""The decision of a filter about a query, before anything is sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expost.cards import card
from expost.domains import Value
from expost.files.canonical import plain_tree, readable_tree
from expost.filters._outcomes import outcome_text, refusal_message
from expost.numbers import Enclosure, Nats, down
from expost.queries import Query

if TYPE_CHECKING:
    from expost.filters._account import Account
    from expost.filters._filter import Filter

__all__ = ["Decision", "remaining"]


@dataclass(frozen=True)
class Decision:
    """Whether a filter accepts a query, with the numbers; ``bool(decision)`` is ``accepted``.

    It is a pure function of transcript and query, so it can be published. The filter compares
    ``loss`` and ``loss_at_worst`` with its budget: the realized loss, the sum of the epsilons
    (basic filter) or the cost of a rule. ``worst_response`` is None if the filter ignores
    responses.

    >>> import expost as xp
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    >>> decision = xp.BayesianFilter(epsilon=1).decide(start, xp.randomized_response(epsilon=2))
    >>> decision.accepted, round(decision.loss_at_worst.upper, 6), decision.largest_epsilon
    (False, 2.0, Decimal('1'))
    """

    accepted: bool
    loss_at_worst: Enclosure
    worst_response: Value | None
    budget: Nats
    #: Refused because a search reached its node limit with the budget between its bounds.
    undecided: bool
    _filter: Filter = field(repr=False, compare=False)
    _account: Account = field(repr=False, compare=False)
    _query: Query = field(repr=False, compare=False)
    #: The decisions of all filters of an :class:`AllOf`; this one is among them.
    by_filter: tuple[Decision, ...] = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.accepted

    def _repr_html_(self) -> str:
        return card(
            "Decision",
            {
                "outcome": outcome_text(accepted=self.accepted, undecided=self.undecided),
                f"{self.label} at worst": self.loss_at_worst.shown(),
                "worst response": "" if self.worst_response is None else self.worst_response,
                "budget": self.limit,
            },
        )

    @cached_property
    def loss(self) -> Enclosure:
        """The amount that counts against the budget before the query; computed on first use."""
        return self._filter.loss(self._account)

    @property
    def filter(self) -> Filter:
        """The filter that decided; of an :class:`AllOf` the one that refused, if one did."""
        return self._filter

    @property
    def label(self) -> str:
        """The name of that amount in reports."""
        return "loss" if self._filter.by_loss else "cost"

    @property
    def limit(self) -> str:
        """The budget as people read it, with its delta if it has one."""
        return self._filter.limit

    @property
    def loss_of_person(self) -> Enclosure:
        """The realized loss about the person as a whole before the query, whatever counts."""
        return self._account.loss

    @property
    def searched(self) -> bool:
        """Whether every number costs a search, as on a box."""
        return self._account.searched

    @property
    def unbounded(self) -> bool:
        """Whether a response to the query is impossible for some value, which no budget covers."""
        infinite = self.loss_at_worst.lower == math.inf
        return infinite and self._query.charge(self._account.domain).is_infinite

    @property
    def remaining(self) -> float:
        """Budget minus loss, rounded down."""
        return remaining(self.budget, self.loss)

    @cached_property
    def largest_epsilon(self) -> Decimal | None:
        """The largest epsilon with which this query would be accepted.

        Over a finite domain it is exact to ten places. Over a box it is one that is accepted,
        found within a few thousand nodes, and mostly at most 1 % below the largest. For the
        exponential and the geometric mechanism it is the end of the accepted interval that starts
        at 0. None if no epsilon fits, or if the query is a fixed channel. Computed on first use.
        """
        if self.by_filter:
            largest = [decision.largest_epsilon for decision in self.by_filter]
            found = [epsilon for epsilon in largest if epsilon is not None]
            return min(found) if len(found) == len(largest) else None
        return self._filter.largest_epsilon(self._account, self._query)

    @cached_property
    def largest_cap(self) -> Decimal | None:
        """The largest cap at which a saturating query, made now, would be accepted.

        None if no cap would be, or if the filter does not compare losses after responses.
        """
        return self._filter.largest_cap(self._account)

    @property
    def fits(self) -> Decimal | None:
        """The largest epsilon found with which this query is accepted; None if none was.

        For a saturating query it is the largest cap at which one that is made now is accepted.
        """
        return self.largest_epsilon if self.cap is None else self.largest_cap

    @property
    def refusal_message(self) -> str:
        """Why the query was refused, with the numbers, and what would be accepted."""
        return refusal_message(self)

    @property
    def cap(self) -> Fraction | None:
        """The cap on losses, if the query is saturating."""
        return self._query.cap

    def tree(self) -> dict[str, Any]:
        """Return the decision as JSON. This computes everything that it shows."""
        tree: dict[str, Any] = {
            "accepted": self.accepted,
            "undecided": self.undecided,
            "loss": self.loss,
            "loss_at_worst": self.loss_at_worst,
            "worst_response": self.worst_response,
            "remaining": self.remaining,
            "largest_epsilon": self._largest_epsilon_text,
            **self._levels_tree(),
        }
        return plain_tree(tree)

    def refusal(self) -> dict[str, Any]:
        """Return the refusal of a query as JSON: why, and what would work."""
        tree = {
            "answered": False,
            "undecided": self.undecided,
            "loss": self.loss,
            "loss_at_worst": self.loss_at_worst,
            "budget": self.budget.nearest,
            "largest_epsilon": self._largest_epsilon_text,
            **self._levels_tree(),
        }
        return plain_tree(tree)

    def _levels_tree(self) -> dict[str, Any]:
        """Return which filter decided, if there are several, and the loss about the person."""
        tree: dict[str, Any] = {}
        if self._filter.is_at_level or any(one.filter.is_at_level for one in self.by_filter):
            tree["loss_of_person"] = self.loss_of_person
        if self.by_filter:
            tree["filter"] = self._filter_tree
            tree["filters"] = [
                {
                    "filter": decision._filter_tree,
                    "accepted": decision.accepted,
                    "undecided": decision.undecided,
                    "loss": decision.loss,
                    "loss_at_worst": decision.loss_at_worst,
                    "remaining": decision.remaining,
                }
                for decision in self.by_filter
            ]
        return tree

    @property
    def _filter_tree(self) -> Any:
        return readable_tree({"kind": self._filter.kind, **self._filter.tree()})

    @property
    def _largest_epsilon_text(self) -> str | None:
        return None if self.largest_epsilon is None else str(self.largest_epsilon)


def remaining(budget: Nats, loss: Enclosure) -> float:
    """Return budget minus loss, rounded down; never below zero."""
    if loss.upper == 0:
        return budget.enclosure.lower
    return max(0.0, down(budget.enclosure.lower - loss.upper))
