"""Who answered what, in order: a round for each question, in as few bytes as it takes.

The tally of a subject is what its rounds hold, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.panel.places import Chosen, Places
from expost.panel.question import Codes, Question

__all__ = ["Counted", "Log", "Round"]

# With fewer subjects than one in so many, a round lists them.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Round:
    """The responses of some subjects to one question, by their codes."""

    question: Question
    codes: NDArray[np.unsignedinteger]
    """Of those who are listed; else of all subjects, where the largest number is for none."""
    places: NDArray[np.unsignedinteger] | None
    everybody_answered: bool = False

    @classmethod
    def of(cls, question: Question, codes: Codes, chosen: Chosen) -> Round:
        """What some subjects answered."""
        least = np.min_scalar_type(len(question.positions))  # one number is free
        if chosen.places is None:
            return cls(question, codes.astype(least), None, everybody_answered=True)
        if len(chosen) * _FEW < chosen.total:
            return cls(question, codes.astype(least), chosen.places.astype(np.uint32))
        everybody = np.full(chosen.total, np.iinfo(least).max, dtype=least)
        everybody[chosen.places] = codes
        return cls(question, everybody, None)

    def at(self, places: Places) -> tuple[Places, Codes]:
        """Which of some subjects answered, by their numbers, and what."""
        if self.everybody_answered:
            return np.arange(len(places)), self.codes.take(places).astype(np.intp)
        if self.places is None:
            codes = self.codes.take(places)
            numbers = np.flatnonzero(codes != np.iinfo(codes.dtype).max)
            return numbers, codes[numbers].astype(np.intp)
        found = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        numbers = np.flatnonzero(self.places[found] == places)
        return numbers, self.codes[found[numbers]].astype(np.intp)

    @property
    def everybody(self) -> tuple[Places, Codes]:
        """All who answered, by their places, and what."""
        if self.places is not None:
            return self.places.astype(np.intp), self.codes.astype(np.intp)
        places = np.flatnonzero(self.codes != np.iinfo(self.codes.dtype).max)
        return places, self.codes.take(places).astype(np.intp)

    @property
    def turns(self) -> Iterator[Places]:
        """Who answered, nobody twice at a time."""
        yield self.everybody[0]


@dataclass(frozen=True, slots=True)
class Counted:
    """How often everybody gave each of some responses to one question, in no order."""

    question: Question
    codes: Codes
    counts: NDArray[np.int64]
    """A row for each code, a column for each subject."""

    def at(self, places: Places) -> tuple[Places, Codes]:
        """As of a round, with those who answered more than once there as often."""
        counts = self.counts[:, places]
        rows, numbers = np.nonzero(counts)
        times = counts[rows, numbers]
        return np.repeat(numbers, times), np.repeat(self.codes[rows], times)

    @property
    def everybody(self) -> tuple[Places, Codes]:
        return self.at(np.arange(self.counts.shape[1]))

    @property
    def turns(self) -> Iterator[Places]:
        totals = self.counts.sum(axis=0)
        for turn in range(int(totals.max(initial=0))):
            yield np.flatnonzero(totals > turn)


class Log:
    """All rounds so far."""

    def __init__(self) -> None:
        self.rounds: list[Round | Counted] = []

    def load(self, question: Question, codes: Codes, counts: NDArray[np.int64]) -> None:
        """What was answered before, of which the order is not known."""
        self.rounds.append(Counted(question, codes, counts))

    def add(self, question: Question, codes: Codes, chosen: Chosen) -> None:
        """One more round."""
        if len(chosen):
            self.rounds.append(Round.of(question, codes, chosen))

    def of(self, places: Places) -> Iterator[tuple[Question, Places, Codes]]:
        """What some subjects answered: the question, which of them by number, and their codes."""
        for each in self.rounds:
            numbers, codes = each.at(places)
            if len(numbers):
                yield each.question, numbers, codes

    def exchanges(self, place: int) -> list[tuple[Question, int]]:
        """The questions that one subject answered, in order, and the positions of responses."""
        return [
            (question, question.positions[code])
            for question, _, codes in self.of(np.array([place]))
            for code in codes.tolist()
        ]
