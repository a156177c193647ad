"""Decisions on a box, once for every tally: how often which response was given to which query.

A loss depends on the tally alone, and so does what a filter decides next. Many subjects share the
tallies of their first exchanges, and every one of them is searched once. Each search has a limit of
its own and sees its responses in one order, so what it finds depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Indices
from expost.audits.plan import Plan
from expost.loss import Odometer
from expost.numbers import Enclosure, up
from expost.queries import Query
from expost.transcript import Transcript

__all__ = ["Course", "Tallies"]


_ZERO = Enclosure(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Course:
    """What is found on the way of some subjects."""

    tally: Indices
    """The number of each subject's tally at the end."""
    peak_lower: NDArray[np.float64]
    peak_upper: NDArray[np.float64]
    refused: NDArray[np.int64]
    """The number of the first exchange that is certainly refused; 0 where there is none."""
    unknown: NDArray[np.bool_]
    """Where some exchange could not be decided."""


class Tallies:
    """The tallies that occur, numbered as they come, and what was found for each."""

    def __init__(self, given: Sequence[tuple[Query, int]], plan: Plan) -> None:
        self._given = given
        self._plan = plan
        self._queries = list(dict.fromkeys(query for query, _ in given))
        self._codes: list[tuple[int, ...]] = [()]
        self._known: dict[tuple[int, ...], int] = {(): 0}
        self._losses: dict[int, Enclosure] = {0: _ZERO}
        self._verdicts: dict[tuple[int, int], bool | None] = {}
        number = {id(query): place for place, query in enumerate(self._queries)}
        self._asked = np.array([number[id(query)] for query, _ in given], dtype=np.intp)

    def course(self, codes: Codes, first: Indices, counts: Indices) -> Course:
        """Follow some subjects, those with the most exchanges first, round by round."""
        tally = np.zeros(len(counts), dtype=np.intp)
        lower, upper = np.zeros((2, len(counts)))
        refused = np.zeros(len(counts), dtype=np.int64)
        unknown = np.zeros(len(counts), dtype=np.bool_)
        for step in range(int(counts[0]) if len(counts) else 0):
            on = int(np.searchsorted(-counts, -step))
            given = codes[first[:on] + step]
            so_far = np.flatnonzero(refused[:on] == 0)
            found = _each(tally[so_far], self._asked[given[so_far]], self._verdict)
            refused[so_far[found == 0]] = step + 1
            unknown[so_far[found < 0]] = True
            tally[:on] = _each(tally[:on], given, self._after)
            now = [self.loss(each) for each in tally[:on].tolist()]
            lower[:on] = np.maximum(lower[:on], [loss.lower for loss in now])
            upper[:on] = np.maximum(upper[:on], [loss.upper for loss in now])
        return Course(tally, lower, upper, refused, unknown)

    def odometer(self, tally: int) -> Odometer:
        """The odometer of a tally, whose responses are in the order of the queries."""
        transcript = Transcript(self._plan.domain, self._plan.guard)
        for code in self._codes[tally]:
            transcript = transcript.answered(*self._given[code])
        return Odometer(transcript, effort=self._plan.effort.with_work_limit())

    def loss(self, tally: int) -> Enclosure:
        """The realized loss."""
        if tally not in self._losses:
            self._losses[tally] = self.odometer(tally).loss
        return self._losses[tally]

    def _verdict(self, tally: int, number: int) -> int:
        """1 if the filter accepts a query after a tally, 0 if it refuses, -1 if it cannot tell."""
        accepted = self._surely(tally, number)
        if not accepted:
            accepted = self._plan.guard.verdict(self.odometer(tally), self._queries[number])
        return -1 if accepted is None else int(accepted)

    def _surely(self, tally: int, number: int) -> bool | None:
        """Whether the loss and the epsilon of the query are within the budget: no search then."""
        guard, query = self._plan.guard, self._queries[number]
        if not (guard.pure and guard.by_loss) or query.approximate:
            return False
        charge = query.ceiling(self._plan.domain).enclosure.upper
        return up(self.loss(tally).upper + charge) <= guard.budget.enclosure.lower

    def _after(self, tally: int, code: int) -> int:
        """The tally with one more response."""
        codes = tuple(sorted((*self._codes[tally], code)))
        number = self._known.setdefault(codes, len(self._codes))
        if number == len(self._codes):
            self._codes.append(codes)
        return number


def _each(first: Indices, second: Codes, work: Callable[[int, int], int]) -> Indices:
    """What is worked out for pairs of numbers, once for every pair that occurs."""
    pairs, place = np.unique(np.stack([first, second.astype(np.intp)]), axis=1, return_inverse=True)
    found = [work(*pair) for pair in pairs.T.tolist()]
    return np.array(found, dtype=np.intp)[place.reshape(-1)]
