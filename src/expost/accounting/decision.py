"""What a filter says about a query, before anything is sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from expost.domains import Value
from expost.rounding import Enclosure, Nats, decimal_text, down

__all__ = ["Decision", "remaining"]


@dataclass(frozen=True)
class Decision:
    """A pure function of transcript and query; it can be published.

    ``loss`` and ``loss_at_worst`` are what the filter compares with its budget: the realized loss,
    or the sum of the epsilons for the basic filter. ``worst_response`` is None where the filter
    does not look at responses.
    """

    accepted: bool
    loss: Enclosure
    loss_at_worst: Enclosure
    worst_response: Value | None
    budget: Nats
    undecided: bool = False
    _largest: Callable[[], Fraction | None] = field(
        default=lambda: None, repr=False, compare=False, kw_only=True
    )

    def __bool__(self) -> bool:
        return self.accepted

    @property
    def remaining(self) -> float:
        """Budget minus loss, rounded down."""
        return remaining(self.budget, self.loss)

    @cached_property
    def largest_epsilon(self) -> str | None:
        """The largest epsilon, to ten places, with which this query would be accepted.

        None if no epsilon fits, or if the query is a fixed channel. Worked out when asked for.
        """
        largest = self._largest()
        return None if largest is None else decimal_text(largest)

    def tree(self) -> dict[str, Any]:
        """The JSON shape of the command line."""
        return {
            "accepted": self.accepted,
            "undecided": self.undecided,
            "loss": self.loss,
            "loss_at_worst": self.loss_at_worst,
            "worst_response": self.worst_response,
            "remaining": self.remaining,
            "largest_epsilon": self.largest_epsilon,
        }


def remaining(budget: Nats, loss: Enclosure) -> float:
    """Budget minus loss, rounded down; never below zero."""
    if loss.upper == 0:
        return budget.enclosure.lower
    return max(0.0, down(budget.enclosure.lower - loss.upper))
