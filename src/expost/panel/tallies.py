"""What was answered how often, of many subjects: a number for each tally.

What may be asked next depends on nothing else, and subjects share most tallies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.panel.log import Log
from expost.panel.places import Chosen
from expost.panel.question import Question
from expost.panel.questions import Questions
from expost.transcript import Summand

__all__ = ["Tallies"]

_Counts = tuple[tuple[tuple[int, int], int], ...]
"""How often, by the number of the question and the position of the response, in their order."""


class Tallies:
    """The tallies that occur, by numbers, and whose is which."""

    def __init__(self, count: int) -> None:
        self.of_subject: NDArray[np.intp] = np.zeros(count, dtype=np.intp)
        self._counts: list[_Counts] = [()]
        self._known: dict[_Counts, int] = {(): 0}

    @classmethod
    def of(cls, count: int, log: Log) -> Tallies:
        """Those of a log."""
        tallies = cls(count)
        for question, places, codes in log.turns:
            tallies.add(question, codes, Chosen(count, places))
        return tallies

    def add(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        """Some subjects gave one more response."""
        size = len(question.positions)
        steps, which = np.unique(self.of_subject[chosen.index] * size + codes, return_inverse=True)
        after = [self._after(step // size, question, step % size) for step in steps.tolist()]
        self.of_subject[chosen.index] = np.array(after, dtype=np.intp)[which]

    def _after(self, number: int, question: Question, code: int) -> int:
        counts = dict(self._counts[number])
        key = question.number, question.positions[code]
        counts[key] = counts.get(key, 0) + 1
        following = tuple(sorted(counts.items()))
        found = self._known.setdefault(following, len(self._counts))
        if found == len(self._counts):
            self._counts.append(following)
        return found

    def summands(self, number: int, questions: Questions) -> list[Summand]:
        """The responses of a tally."""
        return [
            Summand(questions[asked].query, position, times)
            for (asked, position), times in self._counts[number]
        ]
