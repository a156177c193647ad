"""Results of panels: tables with a row for each subject of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_remaining
from expost._types import Bools, Floats
from expost.answers import Subject
from expost.cards import View
from expost.files.tables import ResultTable
from expost.filters._outcomes import outcome_text
from expost.numbers import Enclosure

__all__ = ["Bounds", "Decisions", "Replies"]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """A number for each subject, certainly between ``lower`` and ``upper``. Act on ``upper``."""

    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        return len(self.upper)

    def shown(self, row: int) -> str:
        """Format the bounds of one row for people."""
        return Enclosure(float(self.lower[row]), float(self.upper[row])).shown()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(ResultTable):
    """Decisions about each subject, with the numbers. Arrays are in the order of subjects.

    Decisions are functions of what was answered and of the query, so they can be published.
    """

    subjects: tuple[Subject, ...]
    accepted: Bools
    #: Refused because a search could not tell, as only on a box.
    undecided: Bools
    #: Bounds of what counts against the budget after the query, at worst over responses.
    #:
    #: On a box nothing is searched for where the epsilons fit: between 0 and their sum.
    loss_at_worst: Bounds
    #: Budget minus what counts against it now, rounded down; 0 for suspended subjects.
    remaining: Floats

    def __len__(self) -> int:
        return len(self.subjects)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "accepted": self.accepted,
            "undecided": self.undecided,
            "loss_at_worst": self.loss_at_worst.upper,
            "remaining": self.remaining,
        }

    def _view(self) -> View:
        def row(row: int) -> tuple[object, ...]:
            accepted, undecided = bool(self.accepted[row]), bool(self.undecided[row])
            outcome = outcome_text(accepted=accepted, undecided=undecided)
            remaining = format_remaining(float(self.remaining[row]))
            return self.subjects[row], outcome, self.loss_at_worst.shown(row), remaining

        title = f"Decisions({len(self):,} subjects, {int(self.accepted.sum()):,} accepted)"
        return View(title, {}, ("subject", "outcome", "loss at worst", "remaining"), len(self), row)


@dataclass(frozen=True, eq=False, repr=False)
class Replies(ResultTable):
    """The responses of subjects, in the order in which they were asked."""

    subjects: tuple[Subject, ...]
    #: The id of the query that each was asked; None for who was asked nothing.
    queries: tuple[str | None, ...]
    #: Whether each subject was asked and not refused.
    answered: Bools
    #: Rows, the responses of their query, and the positions of theirs.
    _drawn: tuple[tuple[NDArray[np.intp], Sequence[Any], NDArray[Any]], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.subjects)

    @cached_property
    def responses(self) -> tuple[Any, ...]:
        """The response of each subject; None for who was refused, or asked nothing."""
        result = np.empty(len(self), dtype=object)
        for rows, responses, positions in self._drawn:
            by_position = {position: responses[position] for position in set(positions.tolist())}
            result[rows] = [by_position[position] for position in positions.tolist()]
        return tuple(result.tolist())

    @property
    def refused(self) -> tuple[Subject, ...]:
        """The subjects who were refused."""
        rows = np.flatnonzero(~self.answered).tolist()
        return tuple(self.subjects[row] for row in rows if self.queries[row] is not None)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table of those who answered, as :class:`Answers` takes it."""
        answering = np.flatnonzero(self.answered).tolist()
        return {
            "subject": [self.subjects[row] for row in answering],
            "query": [self.queries[row] for row in answering],
            "response": [self.responses[row] for row in answering],
        }

    def _view(self) -> View:
        answering = np.flatnonzero(self.answered)

        def row(table_row: int) -> tuple[object, ...]:
            row = int(answering[table_row])
            return self.subjects[row], self.queries[row], self.responses[row]

        title = f"Replies({len(answering):,} answered, {len(self.refused):,} refused)"
        return View(title, {}, ("subject", "query", "response"), len(answering), row)
