r"""The saturating channel: random sets of values, and which of them give the most information.

Let a and b be the largest and the smallest likelihood so far of the records that a query sees as x,
and E = e^cap. Where a query sees all that was asked about, both are P. A number A between max a/E
and min b gives the probabilities

.. math:: q_x = \frac{b_x - A}{(R_x - 1) A}, \qquad R_x = E \, b_x / a_x

with which x is in the random set S. The channel is

.. math:: M(S \mid x) = \frac{\Pr[S] \, R_x^{1[x \in S]}}{1 + (R_x - 1) \, q_x} .

Any random sets with these probabilities end every loss within the cap. The choice of the sets and
of A matters for the mutual information of response and answer, and never for the loss.

A set is drawn as a uniform point of a circle: each class of values has an arc, and S has the values
whose arcs contain the point. Everything is in integers: lengths are parts of ``circle``. Mutual
information is in doubles, and in decimals where doubles cannot compare. Decimals are equal on every
machine, so everyone makes the same query. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats, Indices
from expost.numbers import decimal_context

__all__ = [
    "MutualInformation",
    "RandomSets",
    "SaturatingChannel",
    "WeightTable",
    "saturating_channel",
]


#: A row for each set, a column for each class: whether the set has it.
Sets = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Probabilities in lowest terms: a row of weights for each class, and the sum of each row."""

    rows: list[list[int]]
    total: int

    def rounded(self, bits: int) -> WeightTable:
        """Round every entry down to so many bits, and add the remainder to the row's largest."""
        rows = []
        for row in self.rows:
            weights = [(weight << bits) // self.total for weight in row]
            weights[max(range(len(weights)), key=weights.__getitem__)] += (1 << bits) - sum(weights)
            rows.append(weights)
        return WeightTable(rows, 1 << bits)


@dataclass(frozen=True, eq=False)
class RandomSets:
    """Random sets of classes: an arc of a circle for each class, by its start and length."""

    circle: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @cached_property
    def sets(self) -> tuple[Sets, list[int]]:
        """The distinct sets, and the share of the circle of each, as a weight."""
        circle = self.circle
        starts = [start % circle for start in self.starts]
        ends = [(s + n) % circle for s, n in zip(self.starts, self.lengths, strict=True)]
        cuts = sorted({0, *starts, *ends})
        cut_index = {cut: piece for piece, cut in enumerate(cuts)}
        start_index = np.array([cut_index[start] for start in starts])
        pieces = np.array([cut_index[end] for end in ends]) - start_index
        pieces %= len(cuts)
        pieces[[length == circle for length in self.lengths]] = len(cuts)
        inside = (np.arange(len(cuts))[:, None] - start_index) % len(cuts) < pieces
        set_index: dict[bytes, int] = {}
        rows, weights = list[int](), list[int]()
        for piece, (cut, end) in enumerate(zip(cuts, [*cuts[1:], circle], strict=True)):
            index = set_index.setdefault(inside[piece].tobytes(), len(rows))
            if index == len(rows):
                rows.append(piece)
                weights.append(0)
            weights[index] += end - cut
        return inside[rows], weights

    @property
    def saturates(self) -> bool:
        """Whether every set has values inside and outside: then no loss is below log E."""
        sets, _ = self.sets
        return bool(sets.any(axis=1).all()) and not bool(sets.all(axis=1).any())

    def table(self, ratios: Sequence[Fraction], most_bits: int | None = None) -> WeightTable | None:
        """Compute the exact channel; None if its common denominator has too many bits."""
        sets, set_weights = self.sets
        totals = []
        for ratio, length in zip(ratios, self.lengths, strict=True):
            inside_weight, outside_weight = ratio.as_integer_ratio()
            totals.append(outside_weight * self.circle + (inside_weight - outside_weight) * length)
        common = math.lcm(*totals)
        rows = []
        for ratio, total, members in zip(ratios, totals, sets.T.tolist(), strict=True):
            inside_weight, outside_weight = (
                entry * (common // total) for entry in ratio.as_integer_ratio()
            )
            weights = [inside_weight if inside else outside_weight for inside in members]
            rows.append([c * weight for c, weight in zip(set_weights, weights, strict=True)])
        common_factor = math.gcd(common, *(entry for row in rows for entry in row))
        total = common // common_factor
        if most_bits is not None and total.bit_length() > most_bits:
            return None
        return WeightTable([[entry // common_factor for entry in row] for row in rows], total)


_CONTEXT = decimal_context(60, ROUND_HALF_EVEN)


@dataclass(frozen=True)
class MutualInformation:
    """The mutual information of a random set and the answer, with values alike before.

    Values of a class have a mass of ``counts``, and R times that inside the set.
    """

    counts: tuple[Fraction, ...]
    ratios: tuple[Fraction, ...]
    answers: tuple[int, ...]

    @cached_property
    def _answer_of(self) -> Floats:
        return np.eye(max(self.answers) + 1)[list(self.answers)]

    @cached_property
    def _base_masses(self) -> Floats:
        return np.array([float(count) for count in self.counts]) @ self._answer_of

    @cached_property
    def _gains(self) -> Floats:
        pairs = zip(self.counts, self.ratios, strict=True)
        gains = np.array([float(count * (ratio - 1)) for count, ratio in pairs])
        return np.asarray(gains[:, None] * self._answer_of)

    @cached_property
    def tolerance(self) -> float:
        """A bound on the error of doubles where there is little information, or R is large."""
        return 1e-13 * float(self._gains.sum())

    def in_doubles(self, level: float, starts: Floats, shares: Floats) -> float:
        """Compute it for A = level and these arcs, in doubles."""
        starts = starts % 1.0
        cuts = np.unique(np.concatenate([[0.0], starts, (starts + shares) % 1.0]))
        middles = (cuts + np.append(cuts[1:], 1.0)) / 2
        inside = (middles[:, None] - starts) % 1.0 < shares
        gains = inside @ self._gains
        relative_gain = gains.sum(axis=1, keepdims=True) / self._base_masses.sum()
        information = (self._base_masses + gains) * (
            np.log1p(gains / self._base_masses) - np.log1p(relative_gain)
        )
        return float(level * (np.diff(np.append(cuts, 1.0)) @ information.sum(axis=1)))

    def in_decimals(self, level: Fraction, arcs: RandomSets) -> Decimal:
        """Compute it to about fifty digits."""
        sets, set_weights = arcs.sets
        logarithms: dict[Fraction, Decimal] = {}

        def entropy(mass: Fraction, out_of: Fraction) -> Decimal:
            """Compute mass · log(mass/out_of)."""
            share = mass / out_of
            if share not in logarithms:
                logarithms[share] = _CONTEXT.ln(_decimal(share))
            return _CONTEXT.multiply(_decimal(mass), logarithms[share])

        base_masses = self._by_answer([False] * len(self.counts))
        base_total, total = sum(base_masses, Fraction(0)), Decimal(0)
        for inside, set_weight in zip(sets.tolist(), set_weights, strict=True):
            masses = self._by_answer(inside)
            # A set adds Σ m log(m/l) - M log(M/L), with l and L the masses without a set.
            information = -entropy(sum(masses, Fraction(0)), base_total)
            for mass, base_mass in zip(masses, base_masses, strict=True):
                information = _CONTEXT.add(information, entropy(mass, base_mass))
            total = _CONTEXT.fma(information, Decimal(set_weight), total)
        return _CONTEXT.divide(_CONTEXT.multiply(total, _decimal(level)), Decimal(arcs.circle))

    def _by_answer(self, inside: Sequence[bool]) -> list[Fraction]:
        masses = [Fraction(0)] * (max(self.answers) + 1)
        for count, ratio, answer, heavy in zip(
            self.counts, self.ratios, self.answers, inside, strict=True
        ):
            masses[answer] += count * ratio if heavy else count
        return masses


def _decimal(fraction: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


# Closer doubles are compared in decimals, and closer decimals are equal.
_RELATIVE_TIE = 1e-9
_DECIMAL_TIE = Decimal("1e-40")
_GRID_BITS = 256
_HALF = Fraction(1, 2)


def saturating_channel(
    lows: Sequence[Fraction],
    highs: Sequence[Fraction],
    sizes: Sequence[int],
    answers: Sequence[int],
    ratio: Fraction,
) -> SaturatingChannel:
    """Return the channel on these classes, whose answers are numbered from 0."""
    kind = _BinaryChannel if max(answers) == 1 else _MultiAnswerChannel
    return kind(tuple(lows), tuple(highs), tuple(sizes), tuple(answers), ratio)


@dataclass(frozen=True)
class SaturatingChannel(ABC):
    """Classes of values with their likelihoods, sizes and answers, and the ratio E at the cap."""

    lows: tuple[Fraction, ...]
    highs: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    answers: tuple[int, ...]
    ratio: Fraction

    @property
    def is_below_cap(self) -> bool:
        """Whether the loss so far is below log E."""
        return min(self.lows) * self.ratio > max(self.highs)

    @cached_property
    def ratios(self) -> tuple[Fraction, ...]:
        """The factor R of each class, by which its values are heavier inside the set."""
        pairs = zip(self.lows, self.highs, strict=True)
        return tuple(self.ratio * low / high for low, high in pairs)

    def best(self, circle: int) -> RandomSets:
        """Choose the sets with the most information, on a circle of so many parts."""
        candidates = (self._on_grid(self.shares(level), circle) for level in self._levels())
        return next(arcs for arcs in candidates if arcs.saturates)

    def best_exactly(self, most_bits: int) -> RandomSets | None:
        """Choose them on a circle that makes all probabilities exact; None if it is too long."""
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
        """Compute the probabilities q at A = level."""
        return [
            (low - level) / (level * (ratio - 1))
            for low, ratio in zip(self.lows, self.ratios, strict=True)
        ]

    @property
    def _level_range(self) -> tuple[Fraction, Fraction]:
        """The range of possible A."""
        return max(self.highs) / self.ratio, min(self.lows)

    @abstractmethod
    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> RandomSets:
        """Make arcs of these lengths, rounded to parts of the circle."""

    @abstractmethod
    def _levels(self) -> Iterator[Fraction]:
        """Yield levels A, the best one first."""

    @abstractmethod
    def _starts(self, shares: Floats) -> Floats:
        """Compute where the arcs start, in doubles."""

    @cached_property
    def _information(self) -> MutualInformation:
        """The information; where a query does not see all, records behind x count as if midway."""
        pairs = zip(self.lows, self.highs, self.sizes, strict=True)
        counts = tuple(size * (1 + high / low) / 2 for low, high, size in pairs)
        return MutualInformation(counts, self.ratios, self.answers)

    @cached_property
    def _scale(self) -> Fraction:
        """The unit of likelihoods in doubles."""
        return max(self.lows)

    @cached_property
    def _doubles(self) -> tuple[Floats, Floats]:
        """The smallest likelihoods, and R - 1, in doubles."""
        lows = np.array([float(low / self._scale) for low in self.lows])
        return lows, np.array([float(ratio - 1) for ratio in self.ratios])

    def _best_of(self, levels: Floats, exact: Callable[[int], Fraction]) -> int:
        """Return the index of the ascending level with the most information, the first of equals.

        For yes-or-no questions the information is concave in A, so bisection finds it.
        """
        in_doubles: dict[int, float] = {}
        in_decimals: dict[int, Decimal] = {}

        def approximate(index: int) -> float:
            if index not in in_doubles:
                level, (lows, gains) = float(levels[index]), self._doubles
                shares = np.clip((lows - level) / (gains * level), 0.0, 1.0)
                in_doubles[index] = self._information.in_doubles(
                    level, self._starts(shares), shares
                )
            return in_doubles[index]

        def precise(index: int) -> Decimal:
            if index not in in_decimals:
                level = exact(index)
                circle = 1 << _GRID_BITS + 2 * int(self.ratio).bit_length()
                arcs = self._on_grid(self.shares(level), circle)
                in_decimals[index] = self._information.in_decimals(level / self._scale, arcs)
            return in_decimals[index]

        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            here, ahead = approximate(middle), approximate(middle + 1)
            rises = ahead > here
            if abs(ahead - here) <= _RELATIVE_TIE * abs(here) + self._information.tolerance:
                rises = precise(middle + 1) - precise(middle) > _DECIMAL_TIE * abs(precise(middle))
            low, high = (middle + 1, high) if rises else (low, middle)
        return low

    def _as_double(self, level: Fraction) -> float:
        return float(level / self._scale)


class _BinaryChannel(SaturatingChannel):
    """A channel for two answers: arcs of one start at a point, and arcs of the other end there.

    This is optimal for every A. The information is concave and piecewise linear in A, with kinks
    only where arcs end together.
    """

    def _levels(self) -> Iterator[Fraction]:
        low, high = self._best_range
        ends = np.array([self._as_double(low), self._as_double(high)])
        levels, first, second = self._kinks
        interior = np.flatnonzero((levels > ends[0]) & (levels < ends[1]))
        interior = interior[np.argsort(levels[interior], kind="stable")]
        # Those that in_doubles coincide tell as much.
        distances = np.diff(levels[interior], prepend=0.0)
        interior = interior[distances > _RELATIVE_TIE * levels[interior]]

        def exact(index: int) -> Fraction:
            if 0 < index <= len(interior):
                bend = interior[index - 1]
                return min(max(self._kink(int(first[bend]), int(second[bend])), low), high)
            return high if index else low

        yield exact(self._best_of(np.concatenate([ends[:1], levels[interior], ends[1:]]), exact))

    @property
    def _best_range(self) -> tuple[Fraction, Fraction]:
        """The range of the best A.

        Before the first kink of two classes with different answers some set has all values, and
        beyond the last one some set has none. Neither has more information than others can.
        """
        levels, first, second = self._kinks
        answers = np.array(self.answers)
        opposite = answers[first] != answers[second]
        levels, first, second = levels[opposite], first[opposite], second[opposite]

        def bends(selected: NDArray[np.bool_]) -> list[Fraction]:
            pairs = zip(first[selected].tolist(), second[selected].tolist(), strict=True)
            return [self._kink(i, j) for i, j in pairs]

        low, high = self._level_range
        low = max(low, min(bends(levels <= levels.min() * (1 + _RELATIVE_TIE))))
        return low, min(high, max(bends(levels >= levels.max() * (1 - _RELATIVE_TIE))))

    @cached_property
    def _kinks(self) -> tuple[Floats, Indices, Indices]:
        """The levels where arcs of two classes end together, in doubles, and the two classes.

        If all ratios are equal, arcs of one answer keep their order.
        """
        (lows, gains), answers = self._doubles, np.array(self.answers)
        first, second = np.triu_indices(len(lows), 1)
        opposite = answers[first] != answers[second]
        selected = np.flatnonzero(opposite | (self._ratio_ids[first] != self._ratio_ids[second]))
        first, second, opposite = first[selected], second[selected], opposite[selected]
        sign = np.where(opposite, 1.0, -1.0)
        first_slope, second_slope = 1 / gains[first], 1 / gains[second]
        denominator = opposite + first_slope + sign * second_slope
        # Digits cancel where arcs of one answer have in_doubles the same ratio.
        canceling = np.flatnonzero(np.abs(denominator) < 1e-3 * first_slope)
        denominator[canceling] = 1.0
        levels = (lows[first] * first_slope + sign * lows[second] * second_slope) / denominator
        for pair in canceling.tolist():
            bend = self._kink(int(first[pair]), int(second[pair]))
            levels[pair] = self._as_double(min(max(bend, Fraction(0)), 2 * self._scale))
        return levels, first, second

    @cached_property
    def _ratio_ids(self) -> Indices:
        """A number per class, equal for equal ratios."""
        ratio_ids: dict[Fraction, int] = {}
        return np.array([ratio_ids.setdefault(ratio, len(ratio_ids)) for ratio in self.ratios])

    def _kink(self, first: int, second: int) -> Fraction:
        """Compute the exact level where arcs of two classes end together."""
        slopes = [1 / (self.ratios[index] - 1) for index in (first, second)]
        opposite = self.answers[first] != self.answers[second]
        sign = 1 if opposite else -1
        numerator = self.lows[first] * slopes[0] + sign * self.lows[second] * slopes[1]
        return numerator / (opposite + slopes[0] + sign * slopes[1])

    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> RandomSets:
        starts, lengths = [], []
        for answer, share in zip(self.answers, shares, strict=True):
            start = 0 if answer else _nearest_integer((1 - share) * circle)
            starts.append(start)
            lengths.append(_nearest_integer(share * circle) if answer else circle - start)
        return RandomSets(circle, tuple(starts), tuple(lengths))

    def _starts(self, shares: Floats) -> Floats:
        return np.where(np.array(self.answers) == 1, 0.0, 1.0 - shares)


class _MultiAnswerChannel(SaturatingChannel):
    """A channel for many answers: their widest arcs tile the circle (systematic sampling).

    Where their lengths add up to a whole number, each point is in that many of them. The other arcs
    of an answer start where its widest one starts.
    """

    def _levels(self) -> Iterator[Fraction]:
        low, high = self._level_range
        widest = self._widest(self.shares((low + high) / 2))
        slopes = {index: 1 / (self.ratios[index] - 1) for index in widest}
        numerator = sum((self.lows[index] * slope for index, slope in slopes.items()), Fraction(0))
        denominator = sum(slopes.values(), Fraction(0))
        sums = (numerator / (size + denominator) for size in range(1, len(widest)))
        levels = sorted({low, high, *(min(max(level, low), high) for level in sums)})
        doubles = np.array([self._as_double(level) for level in levels])
        best = self._best_of(doubles, levels.__getitem__)
        yield from sorted(levels, key=lambda level: abs(level - levels[best]))

    def _on_grid(self, shares: Sequence[Fraction], circle: int) -> RandomSets:
        widest = [shares[index] for index in self._widest(shares)]
        ends = [0, *(_nearest_integer(total * circle) for total in accumulate(widest))]
        starts, lengths = [], []
        for answer, share in zip(self.answers, shares, strict=True):
            start, width = ends[answer], ends[answer + 1] - ends[answer]
            starts.append(start)
            lengths.append(
                min(_nearest_integer(share * circle), width) if share < widest[answer] else width
            )
        return RandomSets(circle, tuple(starts), tuple(lengths))

    def _widest(self, shares: Sequence[Fraction]) -> list[int]:
        """Return the class with the widest arc for each answer, the first of equals."""
        widest: dict[int, int] = {}
        for index, answer in enumerate(self.answers):
            if answer not in widest or shares[index] > shares[widest[answer]]:
                widest[answer] = index
        return [widest[answer] for answer in sorted(widest)]

    def _starts(self, shares: Floats) -> Floats:
        widest = np.zeros(max(self.answers) + 1)
        np.maximum.at(widest, list(self.answers), shares)
        return np.asarray((np.cumsum(widest) - widest)[list(self.answers)])


def _nearest_integer(fraction: Fraction) -> int:
    """Round to the nearest integer, halves up, which preserves order."""
    return math.floor(fraction + _HALF)
