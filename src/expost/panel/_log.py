"""Who answered what, in order: a round for each question, in as few bytes as it takes.

The tally of a subject is what its rounds hold, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Floats, Indices, Ints
from expost.panel._compiled_query import Question
from expost.panel._selection import Chosen, groups

__all__ = ["Counted", "Log", "Round"]


# With fewer subjects than one in so many, a round lists them.
_FEW = 8
# Up to so many codes, comparing with each of them takes less than counting all at once.
_COMPARED = 32
# As many ones as a byte can count.
_BYTE = 255
# Of few subjects and more rounds, it is worth knowing who is in which.
_MANY_ROUNDS = 32
_MANY_SUBJECTS = 64
_EVERYBODY = 2**32 - 1
"""A place that nobody has."""


@dataclass(frozen=True, slots=True)
class Round:
    """The responses of some subjects to one question, by their codes."""

    question: Question
    codes: NDArray[np.unsignedinteger]
    """Of those who are listed; else of all subjects, where the largest number is for none."""
    places: NDArray[np.unsignedinteger] | None

    @classmethod
    def of(cls, question: Question, codes: Indices, chosen: Chosen) -> Round:
        """What some subjects answered."""
        least = np.min_scalar_type(len(question.positions))  # one number is free
        if chosen.places is None:
            return cls(question, codes.astype(least), None)
        if len(chosen) * _FEW < chosen.total:
            return cls(question, codes.astype(least), chosen.places.astype(np.uint32))
        everybody = np.full(chosen.total, np.iinfo(least).max, dtype=least)
        everybody[chosen.places] = codes
        return cls(question, everybody, None)

    @property
    def none(self) -> int:
        """What stands for no answer in place of a code."""
        return int(np.iinfo(self.codes.dtype).max)

    def at(self, places: Indices) -> NDArray[np.unsignedinteger]:
        """What some subjects answered, in their order."""
        if self.places is None:
            return self.codes.take(places)
        found = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        codes = self.codes[found]
        codes[self.places[found] != places] = self.none
        return codes

    @property
    def everybody(self) -> tuple[Indices, Indices]:
        """All who answered, by their places, and what."""
        if self.places is not None:
            return self.places.astype(np.intp), self.codes.astype(np.intp)
        places = np.flatnonzero(self.codes != self.none)
        return places, self.codes.take(places).astype(np.intp)


@dataclass(frozen=True, slots=True)
class Counted:
    """How often subjects gave each of some responses, in no order."""

    questions: Sequence[Question]
    """For each distinct response, its question."""
    codes: Indices
    """For each distinct response, its code."""
    responses: Codes
    """For each row, the index of a distinct response."""
    owners: Indices
    """For each row, the place of a subject, ascending."""
    times: Ints | None
    """For each row, how often; None if always once."""

    @property
    def turns(self) -> Iterator[tuple[Question, Indices, Indices]]:
        """One response of some subjects after the other: to what, who gave one, and which."""
        times = 1 if self.times is None else self.times
        owners, responses = np.repeat(self.owners, times), np.repeat(self.responses, times)
        turn_of = np.arange(len(owners)) - np.searchsorted(owners, owners)
        for turn in range(int(turn_of.max(initial=-1)) + 1):
            rows = np.flatnonzero(turn_of == turn)
            numbers = np.array([question.number for question in self.questions])[responses[rows]]
            for _, own in groups(numbers):
                asked = responses[rows[own]]
                yield self.questions[int(asked[0])], owners[rows[own]], self.codes[asked]

    def table(self, count: int) -> Floats:
        """Counts with a row for each distinct response, a column for each of so many subjects."""
        cells = np.multiply(self.responses, count, dtype=np.intp) + self.owners
        counts = np.bincount(cells, weights=self.times, minlength=len(self.codes) * count)
        return counts.astype(np.float64).reshape(-1, count)

    def of(self, place: int) -> Iterator[tuple[Question, int, int]]:
        """Return the questions, codes and counts of one subject."""
        start, end = np.searchsorted(self.owners, [place, place + 1]).tolist()
        for row in range(start, end):
            response = int(self.responses[row])
            times = 1 if self.times is None else int(self.times[row])
            yield self.questions[response], int(self.codes[response]), times


class Log:
    """All rounds so far, perhaps after what was counted before them."""

    def __init__(self) -> None:
        self.counted: Counted | None = None
        """Responses before the first round, in no known order."""
        self.rounds: list[Round] = []
        self._whose = _Whose(0, np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint32))

    @property
    def turns(self) -> Iterator[tuple[Question, Indices, Indices]]:
        """One response of some subjects after the other: to what, who gave one, and which."""
        if self.counted is not None:
            yield from self.counted.turns
        for each in self.rounds:
            yield each.question, *each.everybody

    def add(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        """One more round."""
        if len(chosen):
            self.rounds.append(Round.of(question, codes, chosen))

    def tallies(self, places: Indices) -> dict[Question, NDArray[np.int64]]:
        """How often some subjects gave which response to each question: a row for each code."""
        by_question: dict[tuple[Question, int], list[NDArray[np.unsignedinteger]]] = {}
        for each in self._rounds_of(places):
            by_question.setdefault((each.question, each.none), []).append(each.at(places))
        found: dict[Question, NDArray[np.int64]] = {}
        for column, place in enumerate(places.tolist() if self.counted else ()):
            assert self.counted is not None
            for question, code, times in self.counted.of(place):
                counts = found.setdefault(question, _nothing(question, places))
                counts[code, column] += times
        for (question, none), rows in by_question.items():
            counts = found.setdefault(question, _nothing(question, places))
            # There may be more codes by now than there were.
            _count(rows, counts[: min(none, len(counts))])
        return found

    def exchanges(self, place: int) -> list[tuple[Question, int]]:
        """The questions that one subject answered, in order, and the positions of responses."""
        here = np.array([place])
        given: list[tuple[Question, int]] = []
        for question, code, times in self.counted.of(place) if self.counted else ():
            given += [(question, code)] * times
        given += [
            (each.question, code)
            for each in self._rounds_of(here)
            if (code := int(each.at(here)[0])) != each.none
        ]
        return [(question, question.positions[code]) for question, code in given]

    def _rounds_of(self, places: Indices) -> list[Round]:
        """The rounds in which some of these subjects may have answered, in order."""
        if len(self.rounds) <= _MANY_ROUNDS or len(places) > _MANY_SUBJECTS:
            return self.rounds
        if self._whose.upto != len(self.rounds):
            self._whose = _Whose.of(self.rounds)
        return [self.rounds[number] for number in self._whose.rounds_of(places)]


@dataclass(frozen=True, slots=True)
class _Whose:
    """Which rounds list a subject, of the first so many; all others are about everybody."""

    upto: int
    places: NDArray[np.uint32]
    """Of all rounds that list some, ascending."""
    rounds: NDArray[np.uint32]
    """The round of each. A round of everybody has a place that nobody has."""

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> _Whose:
        everybody = np.array([_EVERYBODY], dtype=np.uint32)
        places = [everybody if each.places is None else each.places for each in rounds]
        whose = np.concatenate(places).astype(np.uint32)
        which = np.repeat(np.arange(len(rounds), dtype=np.uint32), [len(each) for each in places])
        order = np.argsort(whose, kind="stable")
        return cls(len(rounds), whose[order], which[order])

    def rounds_of(self, places: Indices) -> list[int]:
        """The numbers of the rounds that list one of these, or are about everybody."""
        wanted = np.append(places, _EVERYBODY).astype(np.uint32)
        first = np.searchsorted(self.places, wanted, side="left")
        last = np.searchsorted(self.places, wanted, side="right")
        found = np.zeros(self.upto, dtype=np.bool_)
        for start, end in zip(first.tolist(), last.tolist(), strict=True):
            found[self.rounds[start:end]] = True
        return np.flatnonzero(found).tolist()


def _nothing(question: Question, places: Indices) -> NDArray[np.int64]:
    return np.zeros((len(question.positions), len(places)), dtype=np.int64)


def _count(rows: list[NDArray[np.unsignedinteger]], counts: NDArray[np.int64]) -> None:
    """Add up how often each code, which has a row of counts, is in each column of some rows."""
    number, width = counts.shape
    if number > _COMPARED:
        cells = np.concatenate([row.astype(np.intp) * width + np.arange(width) for row in rows])
        # What stands for no answer is above all codes.
        cells = cells[cells < number * width]
        counts += np.bincount(cells, minlength=number * width).reshape(number, width)
        return
    for start in range(0, len(rows), _BYTE):
        some = np.array(rows[start : start + _BYTE])
        for code, own in enumerate(counts):
            own += np.add.reduce(some == code, axis=0, dtype=np.uint8)
