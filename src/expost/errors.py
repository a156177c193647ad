"""The exception tree, and the place in the input that an error names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.rounding import Enclosure, Nats

__all__ = ["BudgetExceeded", "ExpostError", "InvalidInput", "OutsideDomain", "at"]


class ExpostError(Exception):
    """Base of everything that expost raises on purpose."""


class InvalidInput(ExpostError, ValueError):
    """The input cannot be used; the message is one line that says where and why."""

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{place}: {reason}" if place else reason)


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
        fits: str | None,
        undecided: bool = False,
    ) -> None:
        self.loss = loss
        self.loss_at_worst = loss_at_worst
        self.budget = budget
        self.fits = fits
        self.undecided = undecided
        # A bound never reads as larger than the budget it respects: loss down, worst case up.
        message = (
            f"query refused: loss so far {loss.lower:.6g} and at worst "
            f"{loss_at_worst.upper:.6g} after this query, budget {budget}."
        )
        if undecided:
            message += " The bound was not decided within the node limit."
        if fits is not None:
            message += f" The same query with epsilon at most {fits} would be accepted."
        super().__init__(message)


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
