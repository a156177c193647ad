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

__all__ = ["Log", "Round"]

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


class Log:
    """All rounds so far."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []

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
            (question, question.positions[int(codes[0])])
            for question, _, codes in self.of(np.array([place]))
        ]
