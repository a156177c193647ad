"""From one step to the next: how the value of an attribute may change in between.

A state has axes for values and, where changes are counted, for how many of them there were at most.
A sum after a move is the largest of those from which the state can be reached. Both ways are alike,
so the same moves go from the first step onwards and from the last one back. Proof:
docs/theory/changing.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from expost._types import Floats, Indices

__all__ = ["Counted", "Move", "Within"]


class Move(ABC):
    """How one attribute may change between two steps that were asked about."""

    @abstractmethod
    def apply(self, sums: Floats) -> Floats:
        """The largest sums from which every state can be reached; the first axis is for signs."""

    @abstractmethod
    def sources(self, places: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        """All states from which some states can be reached: whose source each is, and its places.

        States are given by their places on all axes.
        """


@dataclass(frozen=True)
class Counted(Move):
    """At most so many changes in all, counted on an axis of their own."""

    value: int
    counter: int
    size: int
    """How many values there are."""

    def apply(self, sums: Floats) -> Floats:
        moved = np.swapaxes(sums, self.counter + 1, -1).copy()
        source = np.swapaxes(sums, self.counter + 1, -1)
        # Any other value, with one change less.
        changed = source[..., :-1].max(axis=self.value + 1, keepdims=True)
        np.maximum(source[..., 1:], changed, out=moved[..., 1:])
        return np.swapaxes(moved, self.counter + 1, -1)

    def sources(self, places: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        count = len(places[0])
        may = np.flatnonzero(places[self.counter] > 0)
        whose = np.concatenate([np.arange(count), np.repeat(may, self.size)])
        found = [axis[whose] for axis in places]
        found[self.value][count:] = np.tile(np.arange(self.size), len(may))
        found[self.counter][count:] -= 1
        return whose, found


@dataclass(frozen=True)
class Within(Move):
    """Not farther than some distance, along an axis of numbers."""

    value: int
    numbers: tuple[Fraction, ...]
    distance: Fraction

    @cached_property
    def _windows(self) -> tuple[Indices, Indices, Indices]:
        """The order of the numbers, and for each of them the first and last in that order."""
        order = np.array(sorted(range(len(self.numbers)), key=self.numbers.__getitem__))
        ordered = [self.numbers[k] for k in order]
        first, last = np.empty(len(order), np.intp), np.empty(len(order), np.intp)
        low = high = 0
        for k, number in enumerate(ordered):
            while number - ordered[low] > self.distance:
                low += 1
            while high + 1 < len(ordered) and ordered[high + 1] - number <= self.distance:
                high += 1
            first[order[k]], last[order[k]] = low, high
        return order, first, last

    def apply(self, sums: Floats) -> Floats:
        order, first, last = self._windows
        # The largest of any 2^k neighbours; two of these cover a window.
        levels = [np.moveaxis(sums, self.value + 1, -1)[..., order]]
        longest = int((last - first).max()) + 1
        while 1 << len(levels) <= longest:
            before, half = levels[-1], 1 << (len(levels) - 1)
            levels.append(np.maximum(before[..., :-half], before[..., half:]))
        result = np.empty_like(levels[0])
        level = np.frexp((last - first + 1).astype(np.float64))[1] - 1
        for k, row in enumerate(levels):
            own = np.flatnonzero(level == k)
            result[..., own] = np.maximum(row[..., first[own]], row[..., last[own] + 1 - (1 << k)])
        return np.moveaxis(result, -1, self.value + 1)

    def sources(self, places: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        order, first, last = self._windows
        own = places[self.value]
        lengths = (last - first + 1)[own]
        whose = np.repeat(np.arange(len(own)), lengths)
        within = np.arange(len(whose)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = [axis[whose] for axis in places]
        found[self.value] = order[first[own][whose] + within]
        return whose, found
