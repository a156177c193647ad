r"""The best next query: which number A, and which random sets.

With P the likelihood so far and E = e^cap, a number A between max P/E and min P gives the chances

.. math:: q_x = \frac{P_x - A}{(E - 1) A}

with which x is in the random set S. Any sets with these chances end every loss at the cap. Which
sets and which A tell most is chosen here, in doubles: that matters for the information, and never
for the loss. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.saturation.arcs import Arcs

__all__ = ["Tilted", "tilted"]

Floats = NDArray[np.float64]
# What differs by less is taken for equal, so that roundings do not decide.
_SAME = 1e-9
_HALF = Fraction(1, 2)


def tilted(
    likelihoods: Sequence[Fraction], sizes: Sequence[int], answers: Sequence[int], ratio: Fraction
) -> Tilted:
    """The queries on these classes of values, whose answers are numbered from 0 in their order."""
    kind = _YesOrNo if max(answers) == 1 else _OneOfMany
    return kind(tuple(likelihoods), tuple(sizes), tuple(answers), ratio)


@dataclass(frozen=True)
class Tilted(ABC):
    """Classes of values with their likelihoods, sizes and answers, and the ratio E at the cap."""

    likelihoods: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    answers: tuple[int, ...]
    ratio: Fraction

    @property
    def has_room(self) -> bool:
        """Whether the loss so far is below log E."""
        return min(self.likelihoods) * self.ratio > max(self.likelihoods)

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
        slope = (self.ratio - 1) * level
        return [(likelihood - level) / slope for likelihood in self.likelihoods]

    def by_answer(self, pick: Callable[[list[Fraction]], Fraction]) -> list[Fraction]:
        """The largest or the smallest likelihood with each answer."""
        found: list[list[Fraction]] = [[] for _ in range(max(self.answers) + 1)]
        for answer, likelihood in zip(self.answers, self.likelihoods, strict=True):
            found[answer].append(likelihood)
        return [pick(each) for each in found]

    @abstractmethod
    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> Arcs:
        """Arcs of these lengths, rounded to parts of the circle; within a part of what they are."""

    @abstractmethod
    def _levels(self) -> Iterator[Fraction]:
        """Numbers A, the best one first."""

    @abstractmethod
    def _starts(self, shares: Floats) -> Floats:
        """Where the arcs start, in doubles."""

    # What follows is in doubles, with the largest likelihood as 1.

    @cached_property
    def _scaled(self) -> Floats:
        most = max(self.likelihoods)
        return np.array([float(likelihood / most) for likelihood in self.likelihoods])

    @cached_property
    def _gain(self) -> float:
        return float(self.ratio - 1)

    def _best_of(self, levels: Floats) -> int:
        """Which of some ascending numbers A tells most; what they tell is concave in A."""
        known: dict[int, float] = {}

        def told(number: int) -> float:
            if number not in known:
                known[number] = self._told(float(levels[number]))
            return known[number]

        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if told(middle + 1) > told(middle):
                low = middle + 1
            else:
                high = middle
        near = range(max(0, low - 2), min(len(levels), low + 3))
        most = max(map(told, near))
        return next(number for number in near if told(number) >= most - _SAME * abs(most))

    def _told(self, level: float) -> float:
        """What the response says about the answer: mutual information, all values alike before."""
        shares = np.clip((self._scaled - level) / (self._gain * level), 0.0, 1.0)
        starts = self._starts(shares) % 1.0
        cuts = np.unique(np.concatenate([[0.0], starts, (starts + shares) % 1.0]))
        middles = (cuts + np.append(cuts[1:], 1.0)) / 2
        inside = (middles[:, None] - starts) % 1.0 < shares
        heavier = (inside * np.array(self.sizes, dtype=np.float64)) @ self._answer_of
        sizes = np.array(self.sizes, dtype=np.float64) @ self._answer_of
        more = self._gain * heavier
        all_more = more.sum(axis=1, keepdims=True) / sizes.sum()
        said = (sizes + more) * (np.log1p(more / sizes) - np.log1p(all_more))
        return float(level * (np.diff(np.append(cuts, 1.0)) @ said.sum(axis=1)))

    @cached_property
    def _answer_of(self) -> Floats:
        return np.eye(max(self.answers) + 1)[list(self.answers)]


class _YesOrNo(Tilted):
    """All arcs of one answer start at one point, and all of the other end there.

    This is the best for every A. What it tells is concave and piecewise linear in A, and bends
    only where an arc of one answer ends where one of the other starts.
    """

    def _levels(self) -> Iterator[Fraction]:
        least, most = self.by_answer(min), self.by_answer(max)
        # Beyond these some sets would have all values or none, and tell nothing.
        low = max(sum(least) / (self.ratio + 1), max(most) / self.ratio)
        high = min(sum(most) / (self.ratio + 1), min(least))
        first, second = (
            [place for place, answer in enumerate(self.answers) if answer == side]
            for side in (0, 1)
        )
        sums = self._scaled[first][:, None] + self._scaled[second]
        levels = sums.reshape(-1) / (self._gain + 2)
        scale = max(self.likelihoods)
        ends = np.array([float(low / scale), float(high / scale)])
        within = np.flatnonzero((levels > ends[0]) & (levels < ends[1]))
        order = within[np.argsort(levels[within], kind="stable")]
        # Those that nearly coincide tell as much.
        order = order[np.diff(levels[order], prepend=0.0) > _SAME * levels[order]]
        best = self._best_of(np.concatenate([ends[:1], levels[order], ends[1:]]))
        if 0 < best <= len(order):
            i, j = divmod(int(order[best - 1]), len(second))
            pair = self.likelihoods[first[i]] + self.likelihoods[second[j]]
            yield min(max(pair / (self.ratio + 1), low), high)
        else:
            yield high if best else low

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
        low = max(self.likelihoods) / self.ratio
        high = min(self.likelihoods)
        total, count = sum(self.by_answer(max), start=Fraction(0)), max(self.answers) + 1
        exact = {low, high}
        for size in range(1, count):
            exact.add(min(max(total / (size * (self.ratio - 1) + count), low), high))
        levels = sorted(exact)
        scale = max(self.likelihoods)
        best = self._best_of(np.array([float(level / scale) for level in levels]))
        yield from sorted(levels, key=lambda level: abs(level - levels[best]))

    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> Arcs:
        ends = [0]
        total = Fraction(0)
        for widest in self._widest(shares):
            total += widest
            ends.append(_rounded(total * circle))
        starts = tuple(ends[answer] for answer in self.answers)
        lengths = [
            min(_rounded(share * circle), ends[answer + 1] - ends[answer])
            if share < widest
            else ends[answer + 1] - ends[answer]
            for answer, share, widest in zip(
                self.answers, shares, self._widest_of(shares), strict=True
            )
        ]
        return Arcs(circle, starts, tuple(lengths))

    def _widest(self, shares: Sequence[Fraction]) -> list[Fraction]:
        widest = [Fraction(0)] * (max(self.answers) + 1)
        for answer, share in zip(self.answers, shares, strict=True):
            widest[answer] = max(widest[answer], share)
        return widest

    def _widest_of(self, shares: Sequence[Fraction]) -> list[Fraction]:
        widest = self._widest(shares)
        return [widest[answer] for answer in self.answers]

    def _starts(self, shares: Floats) -> Floats:
        widest = np.zeros(max(self.answers) + 1)
        np.maximum.at(widest, list(self.answers), shares)
        return np.asarray((np.cumsum(widest) - widest)[list(self.answers)])


def _rounded(number: Fraction) -> int:
    """To the nearest integer, halves up: the order of numbers stays."""
    return math.floor(number + _HALF)
