"""The exception tree, and the place in the input that an error names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.rounding import Enclosure, Nats

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
    """A query was refused. Nothing was sampled, nothing recorded, nothing spent."""

    def __init__(
        self,
        *,
        loss: Enclosure,
        loss_at_worst: Enclosure,
        budget: Nats,
        fits: Decimal | None,
        undecided: bool = False,
    ) -> None:
        self.loss = loss
        self.loss_at_worst = loss_at_worst
        self.budget = budget
        self.fits = fits
        self.undecided = undecided
        limit = f"{budget}" if budget.ratio == 1 else f"{budget}, which is {budget.nearest:.10g}"
        message = (
            f"query refused: loss so far {loss.upper:.10g} and at worst "
            f"{loss_at_worst.upper:.10g} after this query, budget {limit}."
        )
        if undecided:
            message += " The bound was not decided within the node limit."
        if fits is not None:
            message += f" The same query with epsilon at most {fits} would be accepted."
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process boundaries by pickling, which knows no keyword arguments.
        return partial(BudgetExceeded, **self.__dict__), ()


def printable(message: str) -> str:
    """Names from a file reach messages and terminals; line breaks and control codes must not."""
    return "".join(c if c.isprintable() else "?" for c in message)


def expect(value: object, kind: type | UnionType | tuple[type, ...], what: str) -> None:
    """Refuse an argument of another kind by the name of its type, never by its value."""
    if not isinstance(value, kind):
        raise InvalidInput(f"must be {what}, not {type(value).__name__}")


@contextmanager
def at(place: str, joint: str = ".") -> Iterator[None]:
    """Put ``place`` in front of the place of an :class:`InvalidInput` raised inside."""
    try:
        yield
    except InvalidInput as error:
        inner = error.place
        if inner:
            # An index follows its list directly: exchanges[3].query
            place += inner if joint == "." and inner.startswith("[") else joint + inner
        raise type(error)(error.reason, place) from None
