"""What a panel returns: tables with a row for each subject that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_nats
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

    def shown(self, place: int) -> str:
        """One of them for people."""
        return Enclosure(float(self.lower[place]), float(self.upper[place])).shown()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(ResultTable):
    """Whether each subject would answer, with the numbers. Arrays are in the order of subjects.

    Decisions are functions of what was answered and of the query, so they can be published.
    """

    subjects: tuple[Subject, ...]
    accepted: Bools
    undecided: Bools
    """Refused because a search could not tell, as only on a box."""
    loss_at_worst: Bounds
    """What counts against the budget after the query, at worst over responses.

    On a box nothing is searched for where the epsilons fit: between 0 and their sum.
    """
    remaining: Floats
    """Budget minus what counts against it now, rounded down; 0 for suspended subjects."""

    def __len__(self) -> int:
        return len(self.subjects)

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "accepted": self.accepted,
            "undecided": self.undecided,
            "loss_at_worst": self.loss_at_worst.upper,
            "remaining": self.remaining,
        }

    def _view(self) -> View:
        def row(place: int) -> tuple[object, ...]:
            accepted, undecided = bool(self.accepted[place]), bool(self.undecided[place])
            outcome = outcome_text(accepted=accepted, undecided=undecided)
            left = format_nats(float(self.remaining[place]))
            return self.subjects[place], outcome, self.loss_at_worst.shown(place), left

        title = f"Decisions({len(self):,} subjects, {int(self.accepted.sum()):,} accepted)"
        names = ("subject", "outcome", "loss at worst", "remaining")
        return View(title, {}, names, len(self), row)


@dataclass(frozen=True, eq=False, repr=False)
class Replies(ResultTable):
    """What subjects answered, in the order in which they were asked."""

    subjects: tuple[Subject, ...]
    queries: tuple[str | None, ...]
    """The id of the query that each was asked; None for who was asked nothing."""
    answered: Bools
    """Who was asked and not refused."""
    _given: tuple[tuple[NDArray[np.intp], Sequence[Any], NDArray[Any]], ...] = field(repr=False)
    """Rows, the responses of their query, and the positions of theirs."""

    def __len__(self) -> int:
        return len(self.subjects)

    @cached_property
    def responses(self) -> tuple[Any, ...]:
        """The response of each subject; None for who was refused, or asked nothing."""
        result = np.empty(len(self), dtype=object)
        for rows, responses, positions in self._given:
            known = {position: responses[position] for position in set(positions.tolist())}
            result[rows] = [known[position] for position in positions.tolist()]
        return tuple(result.tolist())

    @property
    def refused(self) -> tuple[Subject, ...]:
        """Who was refused."""
        places = np.flatnonzero(~self.answered).tolist()
        return tuple(self.subjects[place] for place in places if self.queries[place] is not None)

    def columns(self) -> dict[str, Any]:
        """The columns of a table of those who answered, as :class:`Answers` takes it."""
        own = np.flatnonzero(self.answered).tolist()
        return {
            "subject": [self.subjects[place] for place in own],
            "query": [self.queries[place] for place in own],
            "response": [self.responses[place] for place in own],
        }

    def _view(self) -> View:
        own = np.flatnonzero(self.answered)

        def row(number: int) -> tuple[object, ...]:
            place = int(own[number])
            return self.subjects[place], self.queries[place], self.responses[place]

        title = f"Replies({len(own):,} answered, {len(self.refused):,} refused)"
        return View(title, {}, ("subject", "query", "response"), len(own), row)
