"""The exception tree, and the place in the input that an error names."""

from __future__ import annotations

from decimal import Decimal
from types import UnionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.filters.decision import Decision
    from expost.numbers import Enclosure, Nats

__all__ = [
    "BudgetExceeded",
    "ExpostError",
    "InvalidInput",
    "OutsideDomain",
    "at",
    "expect",
    "printable",
]


class ExpostError(Exception):
    """Base of everything that expost raises on purpose."""


class InvalidInput(ExpostError, ValueError):
    """The input cannot be used; the message is one line that says where and why."""

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        message = f"{place}: {reason}" if place else reason
        super().__init__(printable(message))


class OutsideDomain(InvalidInput):
    """The subject's value is not in the domain. The value is never part of the error."""


class BudgetExceeded(ExpostError):
    """A query was refused. Nothing was sampled, nothing recorded, nothing spent.

    What it tells is worked out when it is asked for: on a box every number is a search.
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(decision)

    @property
    def loss(self) -> Enclosure:
        """What was held against the budget before the query."""
        return self.decision.loss

    @property
    def loss_at_worst(self) -> Enclosure:
        """What would be held against it after the query, at worst."""
        return self.decision.loss_at_worst

    @property
    def budget(self) -> Nats:
        """What it may not exceed."""
        return self.decision.budget

    @property
    def undecided(self) -> bool:
        """Whether the query was refused because a search ended at its limit of nodes."""
        return self.decision.undecided

    @property
    def fits(self) -> Decimal | None:
        """With which epsilon the same query would be accepted; None if none was found."""
        return self.decision.largest_epsilon

    def tree(self) -> dict[str, Any]:
        """The refusal as JSON. Works out everything that it shows."""
        return self.decision.refusal()

    def __str__(self) -> str:
        budget, worst = self.budget, self.loss_at_worst
        limit = self.decision.limit
        if budget.ratio != 1:
            limit = f"{budget.nearest:.10g}, which is {limit}"
        # A message that nobody may read is not worth a search.
        held = f"{self.decision.held} so far"
        before = "" if self.decision.searched else f"{held} {self.loss.upper:.10g} and "
        message = (
            f"query refused: {before}at worst {worst.upper:.10g} after this query, budget {limit}."
        )
        if self.undecided:
            message += " The bound was not decided within the node limit."
        if not self.decision.searched and self.fits is not None:
            message += f" The same query with epsilon at most {self.fits} would be accepted."
        return message


def printable(message: str) -> str:
    """Names from a file reach messages and terminals; line breaks and control codes must not."""
    return "".join(c if c.isprintable() else "?" for c in message)


def expect(value: object, kind: type | UnionType | tuple[type, ...], what: str) -> None:
    """Refuse an argument of another kind by the name of its type, never by its value."""
    if not isinstance(value, kind):
        raise InvalidInput(f"must be {what}, not {type(value).__name__}")


class at:  # noqa: N801 - a word before a place, as in "with at(place):"
    """Put ``place`` in front of the place of an :class:`InvalidInput` raised inside."""

    # Not a generator: a file has a dozen places to each exchange, and hardly ever an error.
    __slots__ = ("_joint", "_place")

    def __init__(self, place: str, joint: str = ".") -> None:
        self._place = place
        self._joint = joint

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InvalidInput):
            return
        place, joint, inner = self._place, self._joint, error.place
        if inner:
            # An index follows its list directly: exchanges[3].query
            place += inner if joint == "." and inner.startswith("[") else joint + inner
        raise type(error)(error.reason, place) from None
