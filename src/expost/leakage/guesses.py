r"""The guesses of an adversary on a domain, in the three shapes that gain functions take.

Under weights Q over the values the best guess gains :math:`\max_w \sum_x Q(x)\,g(w, x)`. The
capacity is the logarithm of the largest factor by which a response can raise this, over all Q.
Proofs: docs/theory/leakage.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import nlargest
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidInput
from expost.leakage.search import Game, Limits, search
from expost.numbers import Enclosure, Nats

__all__ = ["Classes", "Column", "Guesses", "Subsets", "Table"]

Column = Sequence[int]
"""Pr(response | value) for every value, up to a common factor; not all of them zero."""

_MOST_BITS = 2000


class Guesses(ABC):
    """What an adversary may guess about a value of a domain."""

    @abstractmethod
    def best(self, weights: Sequence[int]) -> Fraction:
        """What the best guess gains, in the unit of the weights."""

    @abstractmethod
    def capacity(self, columns: Sequence[Column], limits: Limits) -> Enclosure:
        """The largest leakage of one of these responses under any prior, in nats."""


@dataclass(frozen=True)
class Classes(Guesses):
    """A guess names the class of the value, and gains 1 if it is right."""

    labels: Sequence[Hashable]

    def best(self, weights: Sequence[int]) -> Fraction:
        masses: dict[Hashable, int] = {}
        for label, weight in zip(self.labels, weights, strict=True):
            masses[label] = masses.get(label, 0) + weight
        return Fraction(max(masses.values()))

    def capacity(self, columns: Sequence[Column], limits: Limits) -> Enclosure:
        return Nats(ratio=max(map(self._factor, columns))).enclosure

    def _factor(self, column: Column) -> Fraction:
        """The exact factor: the worst prior is even over one value each of some classes.

        In the class that the response speaks for it is the value of the largest likelihood, M; in
        every other class that of the smallest, m_1 <= m_2 <= …. With j other classes the factor is
        (j + 1) M / (M + m_1 + … + m_j), which grows as long as (j + 1) m_(j+1) < M + m_1 + … + m_j.
        """
        largest: dict[Hashable, int] = {}
        smallest: dict[Hashable, int] = {}
        for label, weight in zip(self.labels, column, strict=True):
            largest[label] = max(weight, largest.get(label, weight))
            smallest[label] = min(weight, smallest.get(label, weight))
        order = sorted(smallest, key=smallest.__getitem__)
        sums = [0, *accumulate(smallest[label] for label in order)]
        factors = [Fraction(1)]
        for place, label in enumerate(order):
            if largest[label]:
                factors.append(_even(largest[label], order, smallest, sums, place))
        return max(factors)


def _even(
    most: int,
    order: Sequence[Hashable],
    smallest: dict[Hashable, int],
    sums: Sequence[int],
    place: int,
) -> Fraction:
    """The largest factor for the class at this place; ``order`` sorts classes by ``smallest``."""

    def total(count: int) -> int:
        """The sum of the first ``count`` other classes."""
        return sums[count] if count <= place else sums[count + 1] - smallest[order[place]]

    def too_many(count: int) -> bool:
        """Whether the factor no longer grows if one more is added to ``count`` other classes."""
        following = smallest[order[count if count < place else count + 1]]
        return (count + 1) * following >= most + total(count)

    count = bisect_left(range(len(order) - 1), True, key=too_many)
    return Fraction((count + 1) * most, most + total(count))


@dataclass(frozen=True)
class Subsets(Guesses):
    """A guess names ``count`` values, and gains 1 if the value is among them."""

    count: int

    def best(self, weights: Sequence[int]) -> Fraction:
        # The best guess names the likeliest values, so the sets are never listed.
        return Fraction(sum(nlargest(self.count, weights)))

    def capacity(self, columns: Sequence[Column], limits: Limits) -> Enclosure:
        return search([self._game(column) for column in columns], limits)

    def _game(self, column: Column) -> Game:
        size = len(column)
        identity, ones = np.eye(size), np.ones((size, 1))
        # The largest `count` of p sum to at most 1: count·t + Σz <= 1 for some z >= p - t, t >= 0.
        rows = np.vstack(
            [
                np.hstack([identity, -ones, -identity]),
                np.hstack([np.zeros((1, size)), [[self.count]], ones.T]),
            ]
        )
        limits = np.append(np.zeros(size), 1.0)
        # Naming the values of the largest likelihoods is best against the worst prior.
        named = np.zeros(size)
        named[nlargest(self.count, range(size), key=column.__getitem__)] = 1.0
        return Game(column, rows, limits, named[np.newaxis], self.best, self._cover)

    def _cover(self, profit: NDArray[np.float64], duals: NDArray[np.float64]) -> float:
        """The exact maximum of profit·p over the priors that the rows allow, for a profit >= 0."""
        return max(float(profit.max()), math.fsum(profit) / self.count)


@dataclass(frozen=True, eq=False)
class Table(Guesses):
    """Gains written out as integers over one denominator, with a row per guess."""

    rows: NDArray[Any]
    denominator: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[Fraction]]) -> Table:
        """The table of exact gains."""
        denominator = 1
        for row in rows:
            denominator = math.lcm(denominator, *(gain.denominator for gain in row))
            if denominator.bit_length() > _MOST_BITS:
                raise InvalidInput(f"the gains' common denominator exceeds {_MOST_BITS} bits")
        scaled = [[g.numerator * (denominator // g.denominator) for g in row] for row in rows]
        return cls(np.array(scaled, dtype=object), denominator)

    def best(self, weights: Sequence[int]) -> Fraction:
        gains = self.rows @ np.array(weights, dtype=object)
        return Fraction(int(max(gains)), self.denominator)

    def capacity(self, columns: Sequence[Column], limits: Limits) -> Enclosure:
        worth = np.asarray(
            self.rows.any(axis=0), dtype=np.bool_
        )  # values at which some guess gains something
        if not worth.any():
            raise InvalidInput("this gain function never gains anything")
        gains, kept = Table(self.rows[:, worth], self.denominator), worth.tolist()
        games, factor = [], Fraction(1)
        for column in columns:
            inside = [weight for weight, keep in zip(column, kept, strict=True) if keep]
            outside = [weight for weight, keep in zip(column, kept, strict=True) if not keep]
            if not any(inside):
                continue  # after this response no guess gains anything
            games.append(gains._game(inside))
            if outside:
                # A prior that is nearly all on one of these values costs the guess nothing.
                if min(outside) == 0:
                    return Enclosure(math.inf, math.inf)
                factor = max(factor, Fraction(max(inside), min(outside)))
        return search(games, limits, factor)

    @cached_property
    def _doubles(self) -> NDArray[np.float64]:
        return (self.rows / self.denominator).astype(np.float64)

    def _game(self, column: Column) -> Game:
        rows = self._doubles
        return Game(column, rows, np.ones(len(rows)), rows, self.best, self._cover)

    def _cover(self, profit: NDArray[np.float64], duals: NDArray[np.float64]) -> float:
        """An upper bound on profit·p over G·p <= 1: the sum of any y >= 0 with G'y >= profit."""
        rows = self._doubles
        missing = np.maximum(0.0, profit * (1 + 1e-12) + 1e-15 - duals @ rows * (1 - 1e-12))
        most = rows.max(axis=0)
        return math.fsum(duals) + math.fsum(missing / most * (1 + 1e-12))
