"""Gain functions: what each guess of an adversary is worth for each true value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import nlargest
from itertools import accumulate, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import shorten
from expost.domains import FiniteSet
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import as_list, read_integer, read_list
from expost.knowledge._capacity_search import Game, Limits, search
from expost.numbers import Enclosure, ExactLike, Nats, exact

__all__ = ["GainFunction", "GainMatrix", "Guesses", "Identity", "Nearness", "Property", "Tries"]

_MOST_VALUES = 2000


class GainFunction(ABC):
    """The goal of an adversary: g(w, x) in [0, 1] is the gain of the guess w if the value is x.

    Choose one of :class:`Identity`, :class:`Tries`, :class:`Property`, :class:`Nearness` and
    :class:`GainMatrix`, and hand it to a measure such as :func:`vulnerability` or
    :func:`capacity`.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> ages = xp.FiniteSet([30, 40, 50, 60])
    >>> [str(vulnerability(Belief.uniform(ages), goal)) for goal in (Identity(), Tries(2))]
    ['1/4', '1/2']
    """

    @abstractmethod
    def on(self, domain: FiniteSet) -> Guesses:
        """Return the guesses that an adversary with this goal has on a domain."""


@dataclass(frozen=True)
class Identity(GainFunction):
    r"""One guess at the value itself, worth 1 if it is right and 0 if not.

    .. math:: g(w, x) = 1[w = x]

    The vulnerability is then the probability of the likeliest value (Bayes vulnerability).

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> vulnerability(Belief(smokes, {"no": "3/4", "yes": "1/4"}), Identity())
    Fraction(3, 4)
    """

    def on(self, domain: FiniteSet) -> Guesses:
        return _ClassGuesses(range(len(domain)))


@dataclass(frozen=True)
class Tries(GainFunction):
    """Several guesses at the value, worth 1 if one of them is right, as with a password.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> pin = xp.FiniteSet(range(10_000))
    >>> vulnerability(Belief.uniform(pin), Tries(3))
    Fraction(3, 10000)
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", read_at("count", read_integer, self.count, at_least=1))

    def on(self, domain: FiniteSet) -> Guesses:
        return _SubsetGuesses(min(self.count, len(domain)))


@dataclass(frozen=True, repr=False)
class Property(GainFunction):
    """One guess at a property of the value, worth 1 if it is right and 0 if not.

    ``labels`` gives the property of every value, in the order of the domain.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> ages = xp.FiniteSet([34, 52, 71])
    >>> old = Property([age >= 60 for age in ages.values])
    >>> vulnerability(Belief.uniform(ages), old)
    Fraction(2, 3)
    """

    labels: Sequence[Hashable]

    def __post_init__(self) -> None:
        with at("labels"):
            labels = tuple(as_list(self.labels))
            try:
                hash(labels)
            except TypeError:
                raise InvalidInput("must be strings, numbers or other hashable values") from None
        object.__setattr__(self, "labels", labels)

    def __repr__(self) -> str:
        return f"Property({len(self.labels)} values, {len(set(self.labels))} kinds)"

    def on(self, domain: FiniteSet) -> Guesses:
        if len(self.labels) != len(domain):
            raise InvalidInput(f"{len(self.labels)} for a domain of {len(domain)} values", "labels")
        return _ClassGuesses(self.labels)


@dataclass(frozen=True, repr=False)
class GainMatrix(GainFunction):
    """Any gains: a row per guess with an entry per value, from 0 to 1 and exact as written.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> near = GainMatrix([[1, "1/2", 0], [0, "1/2", 1]])
    >>> near
    GainMatrix(2 guesses, 3 values)
    >>> vulnerability(Belief.uniform(xp.FiniteSet(["low", "middle", "high"])), near)
    Fraction(1, 2)
    """

    rows: Sequence[Sequence[ExactLike]]

    def __post_init__(self) -> None:
        with at("rows"):
            rows = enumerate(read_list(self.rows, as_list))
            read = [read_list(row, _gain, f"[{i}]") for i, row in rows]
            if not read or not read[0]:
                raise InvalidInput("must be rows of numbers, one row per guess")
            for i, row in enumerate(read):
                if len(row) != len(read[0]):
                    reason = f"has {len(row)} entries, the first row {len(read[0])}"
                    raise InvalidInput(reason, f"[{i}]")
        object.__setattr__(self, "rows", tuple(map(tuple, read)))

    def __repr__(self) -> str:
        return f"GainMatrix({len(self.rows)} guesses, {len(self.rows[0])} values)"

    def on(self, domain: FiniteSet) -> Guesses:
        if len(self.rows[0]) != len(domain):
            reason = f"have {len(self.rows[0])} entries for a domain of {len(domain)} values"
            raise InvalidInput(reason, "rows")
        return _GuessTable.of([list(map(exact, row)) for row in self.rows])


@dataclass(frozen=True)
class Nearness(GainFunction):
    r"""One guess at a number, worth more the nearer it is.

    .. math:: g(w, x) = \max(0,\ 1 - |w - x| / \text{reach})

    It is worth 1 if it is right, and nothing at a distance of ``reach`` or more. Guesses are the
    values of the domain. The distance of vectors is the sum over their coordinates.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import vulnerability
    >>> ages = xp.FiniteSet([30, 35, 40])
    >>> vulnerability(Belief.uniform(ages), Nearness(10))
    Fraction(2, 3)
    """

    reach: ExactLike

    def __post_init__(self) -> None:
        with at("reach"):
            reach = exact(self.reach)
            if reach <= 0:
                raise InvalidInput(f"must be greater than 0, not {shorten(str(self.reach))}")
        object.__setattr__(self, "reach", reach)

    def on(self, domain: FiniteSet) -> Guesses:
        if len(domain) > _MOST_VALUES:
            raise InvalidInput(f"got {len(domain):,} values; expected at most {_MOST_VALUES:,}")
        values = [value if isinstance(value, tuple) else (value,) for value in domain.values]
        if any(isinstance(x, str) for value in values for x in value):
            raise InvalidInput("labels have no distance; use a GainMatrix")
        points = [tuple(exact(x) for x in value) for value in values]
        return _GuessTable.of([[self._gain(w, x) for x in points] for w in points])

    def _gain(self, first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
        distance = sum(abs(a - b) for a, b in zip(first, second, strict=True))
        return max(Fraction(0), 1 - distance / exact(self.reach))


def _gain(entry: ExactLike) -> Fraction:
    value = exact(entry)
    if not 0 <= value <= 1:
        raise InvalidInput(f"must be between 0 and 1, not {shorten(str(entry))}")
    return value


#: Pr(response | value) for every value, up to a common factor; not all of them zero.
Likelihoods = Sequence[int]

_MOST_BITS = 2000


class Guesses(ABC):
    """The guesses that an adversary may make about a value of a domain."""

    @abstractmethod
    def best(self, weights: Sequence[int]) -> Fraction:
        """Return the gain of the best guess, in the unit of the weights."""

    @abstractmethod
    def capacity(self, columns: Sequence[Likelihoods], limits: Limits) -> Enclosure:
        """Return the largest leakage of one of these responses under any prior, in nats."""


@dataclass(frozen=True)
class _ClassGuesses(Guesses):
    """A guess names the class of the value, and gains 1 if it is right."""

    labels: Sequence[Hashable]

    def best(self, weights: Sequence[int]) -> Fraction:
        masses: dict[Hashable, int] = {}
        for label, weight in zip(self.labels, weights, strict=True):
            masses[label] = masses.get(label, 0) + weight
        return Fraction(max(masses.values()))

    def capacity(self, columns: Sequence[Likelihoods], limits: Limits) -> Enclosure:
        return Nats(ratio=max(map(self._factor, columns))).enclosure

    def _factor(self, column: Likelihoods) -> Fraction:
        """Return the exact factor: the worst prior is even over one value each of some classes.

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
        for rank, label in enumerate(order):
            if largest[label]:
                factors.append(_even_prior_factor(largest[label], order, smallest, sums, rank))
        return max(factors)


def _even_prior_factor(
    most: int,
    order: Sequence[Hashable],
    smallest: dict[Hashable, int],
    sums: Sequence[int],
    rank: int,
) -> Fraction:
    """Return the largest factor for the class of this rank; ``order`` sorts by ``smallest``."""

    def total(count: int) -> int:
        """Return the sum of the first ``count`` other classes."""
        return sums[count] if count <= rank else sums[count + 1] - smallest[order[rank]]

    def too_many(count: int) -> bool:
        """Return whether adding one more class to ``count`` others no longer helps."""
        following = smallest[order[count if count < rank else count + 1]]
        return (count + 1) * following >= most + total(count)

    count = bisect_left(range(len(order) - 1), True, key=too_many)
    return Fraction((count + 1) * most, most + total(count))


@dataclass(frozen=True)
class _SubsetGuesses(Guesses):
    """A guess names ``count`` values, and gains 1 if the value is among them."""

    count: int

    def best(self, weights: Sequence[int]) -> Fraction:
        # The best guess names the likeliest values, so the sets are never listed.
        return Fraction(sum(nlargest(self.count, weights)))

    def capacity(self, columns: Sequence[Likelihoods], limits: Limits) -> Enclosure:
        return search([self._game(column) for column in columns], limits)

    def _game(self, column: Likelihoods) -> Game:
        size = len(column)
        identity, ones = np.eye(size), np.ones((size, 1))
        # The largest `count` of p sum to at most 1: count·t + Σz <= 1 for some z >= p - t, t >= 0.
        total = [np.zeros((1, size)), np.array([[self.count]]), ones.T]
        rows = np.block([[identity, -ones, -identity], total])
        limits = np.append(np.zeros(size), 1.0)
        # Naming the values of the largest likelihoods is best against the worst prior.
        named = np.zeros(size)
        named[nlargest(self.count, range(size), key=column.__getitem__)] = 1.0
        return Game(column, rows, limits, named[np.newaxis], self.best, self._cover)

    def _cover(self, profit: NDArray[np.float64], duals: NDArray[np.float64]) -> float:
        """Maximize profit·p exactly over the priors that the rows allow, for a profit >= 0."""
        return max(float(profit.max()), math.fsum(profit) / self.count)


@dataclass(frozen=True, eq=False)
class _GuessTable(Guesses):
    """Gains written out as integers over one denominator, with a row per guess."""

    rows: NDArray[Any]
    denominator: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[Fraction]]) -> _GuessTable:
        """Return the table of exact gains."""
        denominator = 1
        for row in rows:
            denominator = math.lcm(denominator, *(gain.denominator for gain in row))
            if denominator.bit_length() > _MOST_BITS:
                raise InvalidInput(f"the gains' common denominator exceeds {_MOST_BITS} bits")
        scaled = [[g.numerator * (denominator // g.denominator) for g in row] for row in rows]
        return cls(np.array(scaled, dtype=object), denominator)

    def best(self, weights: Sequence[int]) -> Fraction:
        return Fraction(int(max(self.rows @ np.array(weights, dtype=object))), self.denominator)

    def capacity(self, columns: Sequence[Likelihoods], limits: Limits) -> Enclosure:
        # The values at which some guess gains something.
        worth = np.asarray(self.rows.any(axis=0), dtype=np.bool_)
        if not worth.any():
            raise InvalidInput("this gain function never gains anything")
        gains = _GuessTable(self.rows[:, worth], self.denominator)
        games, factor = [], Fraction(1)
        for column in columns:
            inside, outside = list(compress(column, worth)), list(compress(column, ~worth))
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

    def _game(self, column: Likelihoods) -> Game:
        rows = self._doubles
        return Game(column, rows, np.ones(len(rows)), rows, self.best, self._cover)

    def _cover(self, profit: NDArray[np.float64], duals: NDArray[np.float64]) -> float:
        """Bound profit·p from above over G·p <= 1: by the sum of a y >= 0 with G'y >= profit."""
        rows = self._doubles
        missing = np.maximum(0.0, profit * (1 + 1e-12) + 1e-15 - duals @ rows * (1 - 1e-12))
        return math.fsum(duals) + math.fsum(missing / rows.max(axis=0) * (1 + 1e-12))
