r"""The best next query: which number A, and which random sets.

Let a and b be the largest and the smallest likelihood so far of the records that a query sees as x,
and E = e^cap. Where a query sees all that was asked about, both are P. A number A between max a/E
and min b gives the chances

.. math:: q_x = \frac{b_x - A}{(R_x - 1) A}, \qquad R_x = E \, b_x / a_x

with which x is in the random set S. Any sets with these chances end every loss within the cap.
Which sets and which A tell most is chosen here: that matters for the information, and never for the
loss. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats, Indices
from expost.saturation.arcs import Arcs
from expost.saturation.told import Told

__all__ = ["Tilted", "tilted"]

# What differs by less in doubles is compared in decimals, and there by less is equal.
_CLOSE = 1e-9
_EQUAL = Decimal("1e-40")
_FINE = 256
_HALF = Fraction(1, 2)


def tilted(
    lows: Sequence[Fraction],
    highs: Sequence[Fraction],
    sizes: Sequence[int],
    answers: Sequence[int],
    ratio: Fraction,
) -> Tilted:
    """The queries on these classes of values, whose answers are numbered from 0 in their order."""
    kind = _YesOrNo if max(answers) == 1 else _OneOfMany
    return kind(tuple(lows), tuple(highs), tuple(sizes), tuple(answers), ratio)


@dataclass(frozen=True)
class Tilted(ABC):
    """Classes of values with their likelihoods, sizes and answers, and the ratio E at the cap."""

    lows: tuple[Fraction, ...]
    highs: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    answers: tuple[int, ...]
    ratio: Fraction

    @property
    def has_room(self) -> bool:
        """Whether the loss so far is below log E."""
        return min(self.lows) * self.ratio > max(self.highs)

    @cached_property
    def ratios(self) -> tuple[Fraction, ...]:
        """How much heavier a value of each class is in the set than outside of it."""
        pairs = zip(self.lows, self.highs, strict=True)
        return tuple(self.ratio * low / high for low, high in pairs)

    def best(self, circle: int) -> Arcs:
        """The arcs that tell most, on a circle of so many parts."""
        made = (self._on_grid(self.shares(level), circle) for level in self._levels())
        return next(arcs for arcs in made if arcs.saturates)

    def best_exactly(self, most_bits: int) -> Arcs | None:
        """The same on a circle of which every chance is a whole part, if that is not too long."""
        for level in self._levels():
            shares, circle = self.shares(level), 1
            for share in shares:
                circle = math.lcm(circle, share.denominator)
                if circle.bit_length() > most_bits:
                    return None
            arcs = self._on_grid(shares, circle)
            if arcs.saturates:
                return arcs
        return None

    def shares(self, level: Fraction) -> list[Fraction]:
        """The chances q at A = level."""
        return [
            (low - level) / (level * (ratio - 1))
            for low, ratio in zip(self.lows, self.ratios, strict=True)
        ]

    @property
    def _ends(self) -> tuple[Fraction, Fraction]:
        """Between which A has to be."""
        return max(self.highs) / self.ratio, min(self.lows)

    @abstractmethod
    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> Arcs:
        """Arcs of these lengths, rounded to parts of the circle; within a part of what they are."""

    @abstractmethod
    def _levels(self) -> Iterator[Fraction]:
        """Numbers A, the best one first."""

    @abstractmethod
    def _starts(self, shares: Floats) -> Floats:
        """Where the arcs start, in doubles."""

    @cached_property
    def _told(self) -> Told:
        """Where a query does not see all, the records behind x count as if midway."""
        pairs = zip(self.lows, self.highs, self.sizes, strict=True)
        counts = tuple(size * (1 + high / low) / 2 for low, high, size in pairs)
        return Told(counts, self.ratios, self.answers)

    @cached_property
    def _scale(self) -> Fraction:
        """Doubles are in units of this."""
        return max(self.lows)

    @cached_property
    def _doubles(self) -> tuple[Floats, Floats]:
        """The smallest likelihoods, and R - 1."""
        lows = np.array([float(low / self._scale) for low in self.lows])
        return lows, np.array([float(ratio - 1) for ratio in self.ratios])

    def _best_of(self, levels: Floats, exact: Callable[[int], Fraction]) -> int:
        """Which of some ascending numbers A tells most, the first if several do.

        For yes-or-no questions what they tell is concave in A, so that bisection finds it.
        """
        nearly: dict[int, float] = {}
        closely: dict[int, Decimal] = {}

        def near(number: int) -> float:
            if number not in nearly:
                level, (lows, gains) = float(levels[number]), self._doubles
                shares = np.clip((lows - level) / (gains * level), 0.0, 1.0)
                nearly[number] = self._told.nearly(level, self._starts(shares), shares)
            return nearly[number]

        def close(number: int) -> Decimal:
            if number not in closely:
                level = exact(number)
                fine = 1 << _FINE + 2 * int(self.ratio).bit_length()
                arcs = self._on_grid(self.shares(level), fine)
                closely[number] = self._told.closely(level / self._scale, arcs)
            return closely[number]

        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            first, second = near(middle), near(middle + 1)
            rises = second > first
            if abs(second - first) <= _CLOSE * abs(first) + self._told.noise:
                rises = close(middle + 1) - close(middle) > _EQUAL * abs(close(middle))
            low, high = (middle + 1, high) if rises else (low, middle)
        return low

    def _in_doubles(self, level: Fraction) -> float:
        return float(level / self._scale)


class _YesOrNo(Tilted):
    """All arcs of one answer start at one point, and all of the other end there.

    This is the best for every A. What it tells is concave and piecewise linear in A, and bends
    only where arcs end together.
    """

    def _levels(self) -> Iterator[Fraction]:
        low, high = self._within
        ends = np.array([self._in_doubles(low), self._in_doubles(high)])
        levels, first, second = self._bends
        inside = np.flatnonzero((levels > ends[0]) & (levels < ends[1]))
        inside = inside[np.argsort(levels[inside], kind="stable")]
        # Those that nearly coincide tell as much.
        inside = inside[np.diff(levels[inside], prepend=0.0) > _CLOSE * levels[inside]]

        def exact(number: int) -> Fraction:
            if 0 < number <= len(inside):
                bend = inside[number - 1]
                return min(max(self._bend(int(first[bend]), int(second[bend])), low), high)
            return high if number else low

        numbers = np.concatenate([ends[:1], levels[inside], ends[1:]])
        yield exact(self._best_of(numbers, exact))

    @property
    def _within(self) -> tuple[Fraction, Fraction]:
        """Where the best A is.

        Before the first bend of two classes with different answers some set has all values, and
        beyond the last one some set has none. Neither tells more than others can.
        """
        levels, first, second = self._bends
        answers = np.array(self.answers)
        opposite = answers[first] != answers[second]
        levels, first, second = levels[opposite], first[opposite], second[opposite]

        def bends(near: NDArray[np.bool_]) -> list[Fraction]:
            pairs = zip(first[near].tolist(), second[near].tolist(), strict=True)
            return [self._bend(i, j) for i, j in pairs]

        low, high = self._ends
        low = max(low, min(bends(levels <= levels.min() * (1 + _CLOSE))))
        return low, min(high, max(bends(levels >= levels.max() * (1 - _CLOSE))))

    @cached_property
    def _bends(self) -> tuple[Floats, Indices, Indices]:
        """Where arcs of two classes end together, in doubles, and which classes these are.

        If all ratios are equal, arcs of one answer never change places.
        """
        (lows, gains), answers = self._doubles, np.array(self.answers)
        first, second = np.triu_indices(len(lows), 1)
        opposite = answers[first] != answers[second]
        own = np.flatnonzero(opposite | (self._different[first] != self._different[second]))
        first, second, opposite = first[own], second[own], opposite[own]
        sign, one, two = np.where(opposite, 1.0, -1.0), 1 / gains[first], 1 / gains[second]
        below = opposite + one + sign * two
        # Digits cancel where arcs of one answer have nearly the same ratio.
        close = np.flatnonzero(np.abs(below) < 1e-3 * one)
        below[close] = 1.0
        levels = (lows[first] * one + sign * lows[second] * two) / below
        for pair in close.tolist():
            bend = self._bend(int(first[pair]), int(second[pair]))
            levels[pair] = self._in_doubles(min(max(bend, Fraction(0)), 2 * self._scale))
        return levels, first, second

    @cached_property
    def _different(self) -> Indices:
        """Numbers that are equal for classes with equal ratios."""
        numbers: dict[Fraction, int] = {}
        return np.array([numbers.setdefault(ratio, len(numbers)) for ratio in self.ratios])

    def _bend(self, first: int, second: int) -> Fraction:
        """The same exactly."""
        slopes = [1 / (self.ratios[each] - 1) for each in (first, second)]
        opposite = self.answers[first] != self.answers[second]
        sign = 1 if opposite else -1
        above = self.lows[first] * slopes[0] + sign * self.lows[second] * slopes[1]
        return above / (opposite + slopes[0] + sign * slopes[1])

    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> Arcs:
        starts, lengths = [], []
        for answer, share in zip(self.answers, shares, strict=True):
            start = 0 if answer else _rounded((1 - share) * circle)
            starts.append(start)
            lengths.append(_rounded(share * circle) if answer else circle - start)
        return Arcs(circle, tuple(starts), tuple(lengths))

    def _starts(self, shares: Floats) -> Floats:
        return np.where(np.array(self.answers) == 1, 0.0, 1.0 - shares)


class _OneOfMany(Tilted):
    """The widest arcs of the answers follow one another around the circle (systematic sampling).

    Where their lengths add up to a whole number, that is in how many of them each point is. The
    other arcs of an answer start where its widest one starts.
    """

    def _levels(self) -> Iterator[Fraction]:
        low, high = self._ends
        shares = self.shares((low + high) / 2)
        widest: dict[int, int] = {}
        for place, answer in enumerate(self.answers):
            if answer not in widest or shares[place] > shares[widest[answer]]:
                widest[answer] = place
        slopes = {place: 1 / (self.ratios[place] - 1) for place in widest.values()}
        above = sum((self.lows[place] * slope for place, slope in slopes.items()), Fraction(0))
        below = sum(slopes.values(), Fraction(0))
        sums = (above / (size + below) for size in range(1, len(widest)))
        levels = sorted({low, high, *(min(max(level, low), high) for level in sums)})
        doubles = np.array([self._in_doubles(level) for level in levels])
        best = self._best_of(doubles, levels.__getitem__)
        yield from sorted(levels, key=lambda level: abs(level - levels[best]))

    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> Arcs:
        widest = self._widest(shares)
        ends, total = [0], Fraction(0)
        for share in widest:
            total += share
            ends.append(_rounded(total * circle))
        starts, lengths = [], []
        for answer, share in zip(self.answers, shares, strict=True):
            start, room = ends[answer], ends[answer + 1] - ends[answer]
            starts.append(start)
            lengths.append(min(_rounded(share * circle), room) if share < widest[answer] else room)
        return Arcs(circle, tuple(starts), tuple(lengths))

    def _widest(self, shares: Sequence[Fraction]) -> list[Fraction]:
        widest = [Fraction(0)] * (max(self.answers) + 1)
        for answer, share in zip(self.answers, shares, strict=True):
            widest[answer] = max(widest[answer], share)
        return widest

    def _starts(self, shares: Floats) -> Floats:
        widest = np.zeros(max(self.answers) + 1)
        np.maximum.at(widest, list(self.answers), shares)
        return np.asarray((np.cumsum(widest) - widest)[list(self.answers)])


def _rounded(number: Fraction) -> int:
    """To the nearest integer, halves up: the order of numbers stays."""
    return math.floor(number + _HALF)
