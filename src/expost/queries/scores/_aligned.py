"""An affine score on a domain: evaluated in doubles, and its exact extremes.

Doubles are added in one fixed order, elementwise and never by a library for linear algebra, so
that every machine, and a single point as well as a table of them, gives the same bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_number
from expost.domains import Box, FiniteSet, format_coordinates
from expost.errors import InvalidInput
from expost.numbers import over_one, up

__all__ = [
    "FORGIVEN",
    "UNIT",
    "AlignedScore",
    "BoxScore",
    "DoubleForm",
    "Ends",
    "SetScore",
    "between",
    "check_within",
]

#: The lower and the upper end of a range.
Ends = tuple[int | float, int | float]

Doubles = TypeVar("Doubles", float, NDArray[np.float64])

UNIT = Fraction(1, 2**53)
# Below this no sum of products can overflow, intermediate rounding included.
_LARGEST = 2**1023
_LARGE = 2.0**1022
# UNIT and the smallest double, and a bound on what a million subnormal products lose.
_UNIT, _SMALLEST, _TINY = 2.0**-53, 2.0**-1074, 2.0**-1050
_ENLARGE = 1 + 2.0**-30

# What decimals lose as doubles is not worth an error: 0.1 times 100 is 5.6e-16 above 10. Scores are
# clipped to the range in any case, and accounted for as such.
FORGIVEN = Fraction(1, 10**12)


class DoubleForm(NamedTuple):
    """An affine form on a box, in doubles.

    In real numbers it is within ``moved`` of the form of the score that is sampled by.
    """

    weights: tuple[float, ...]
    offset: float
    moved: float


def exact_sum(weights: Iterable[float], point: Iterable[float], intercept: float) -> Fraction:
    """Return intercept + Σ weight·coordinate exactly."""
    return sum(map(mul, map(Fraction, weights), map(Fraction, point)), Fraction(intercept))


def enlarged(total: float) -> float:
    """Bound a sum of up to a million non-negative products, given its double.

    Each rounding is off by a unit of its result, or by the smallest double; this is more than all
    of them together.
    """
    return total * _ENLARGE + _TINY


class AlignedScore(ABC):
    """A score with one weight for each coordinate of its domain."""

    weights: tuple[float, ...]
    intercept: float
    #: The largest absolute value of each coordinate.
    reach: Sequence[float]

    def __init__(
        self,
        weights: tuple[float, ...],
        intercept: float,
        reach: Sequence[float],
        order: Sequence[int],
    ) -> None:
        self.weights = weights
        self.intercept = intercept
        self._order = order
        self.reach = reach
        self._parts = len(weights) - weights.count(0.0)
        self._at_most = enlarged(abs(intercept) + sum(map(mul, map(abs, weights), reach)))
        # The exact magnitude only matters close to the limit.
        if not self._at_most < _LARGE and self.magnitude > _LARGEST:
            raise InvalidInput("the score is too large for a double", "weights")

    def at(self, coordinates: Sequence[Doubles]) -> Doubles:
        """Return the score in doubles, of one point or of columns of points."""
        first, *further = self._order
        total = self.intercept + self.weights[first] * coordinates[first]
        for j in further:
            total = total + self.weights[j] * coordinates[j]
        return total

    @property
    def magnitude(self) -> Fraction:
        """The largest sum of the absolute values of its parts."""
        return exact_sum(map(abs, self.weights), self.reach, abs(self.intercept))

    def surely_within(self, ends: Ends) -> bool:
        """Return whether a quick bound shows that no score leaves a range."""
        # |score| is at most this, and nearly so in many a box around zero.
        return ends[0] <= -self._at_most and self._at_most <= ends[1]

    @abstractmethod
    def corner(self, sign: int) -> Sequence[float]:
        """Return where the score is largest (sign 1) or smallest (sign -1)."""

    @abstractmethod
    def describe_corner(self, sign: int) -> str:
        """Say where the score is extreme, for messages."""

    @cached_property
    def integers(self) -> tuple[list[int], int, int]:
        """The weights and the intercept, exactly, as integers over the last one."""
        (*tops, first), bottom = over_one([*self.weights, self.intercept])
        return tops, first, bottom

    @property
    def ends(self) -> tuple[int, int, int]:
        """The smallest and the largest score, exactly: two integers over the third one."""
        tops, first, bottom = self.integers
        size = len(tops)
        coordinates, under = over_one([*self.corner(-1), *self.corner(1)])
        low, high = (sum(map(mul, tops, part)) for part in (coordinates[:size], coordinates[size:]))
        return first * under + low, first * under + high, bottom * under


class BoxScore(AlignedScore):
    """A score on a box. Its weights and its intercept are also integers over a power of two."""

    def __init__(self, weights: tuple[float, ...], intercept: float, box: Box) -> None:
        self._box = box
        super().__init__(weights, intercept, box.reach, box.order)

    def form(self, scale: int, shift: int, under: int) -> DoubleForm | None:
        """Return (scale · score + shift) / under in doubles; None if that is too large for them."""
        try:
            factor, added = up(abs(scale) / under), up(abs(shift) / under)
            # The quotient of two integers is correctly rounded.
            tops, _, bottom = self.integers
            bottom *= under
            weights = tuple([scale * top / bottom + 0.0 for top in tops])
            first, bottom = self.intercept.as_integer_ratio()
            offset = (scale * first + shift * bottom) / (bottom * under) + 0.0
        except OverflowError:
            return None
        # A product goes through at most n + 1 roundings, n the number of weights that are not zero,
        # and loses up to half of the smallest double below normal ones. So with the rounding
        # (n + 2) · UNIT · magnitude + n · SMALLEST of a score this is
        #     scale · (rounding + UNIT · magnitude) + UNIT · shift + SMALLEST · (1 + Σ reach),
        # for a coefficient is off by a unit of itself, or by the smallest double.
        units = (self._parts + 3) * (factor * self._at_most) + added
        moved = enlarged(units * _UNIT + self._parts * factor * _SMALLEST + self._box.grain)
        return DoubleForm(weights, offset, moved) if moved < math.inf else None

    @property
    def by_name(self) -> tuple[float, ...]:
        """The weights in the order of :attr:`Box.order`."""
        return tuple(self.weights[j] for j in self._box.order)

    def corner(self, sign: int) -> tuple[float, ...]:
        """Return where the score is extreme: every coordinate at the end that its weight selects.

        So are the doubles, for products and sums are monotone in each coordinate when rounded, and
        in the weight of a category.
        """
        corner = [
            column.upper if sign * weight > 0 else column.lower
            for column, weight in zip(self._box.columns, self.weights, strict=True)
        ]
        for group in self._box.groups:
            best = max(group, key=lambda j: sign * self.weights[j])
            for j in group:
                corner[j] = int(j == best)
        return tuple(corner)

    @property
    def is_constant(self) -> bool:
        """Whether the doubles are the same at all points."""
        return self.at(self.corner(1)) == self.at(self.corner(-1))

    def describe_corner(self, sign: int) -> str:
        corner, box = self.corner(sign), self._box
        names = box.names or [f"[{index}]" for index in range(len(box.sides))]
        moved = [
            k
            for k, columns in enumerate(box.column_slices)
            if any(self.weights[j] for j in columns)
        ]
        value = box.value(corner)
        return (
            format_coordinates([names[k] for k in moved], [value[k] for k in moved])
            or "every point"
        )


class SetScore(AlignedScore):
    """A score on finitely many points, given by the columns of their coordinates."""

    def __init__(self, weights: tuple[float, ...], intercept: float, domain: FiniteSet) -> None:
        self._columns = domain.columns
        self._kind = "values" if domain.names is None else "rows"
        super().__init__(weights, intercept, domain.reach, domain.order)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The score of every point."""
        return self.at(list(self._columns))

    def corner(self, sign: int) -> Sequence[float]:
        point: list[float] = self._columns[:, self._row(sign)].tolist()
        return point

    def describe_corner(self, sign: int) -> str:
        return f"{self._kind}[{self._row(sign)}]"

    def _row(self, sign: int) -> int:
        """Return the first row where the score is extreme, exactly."""
        tolerance = 3 * ((len(self.weights) + 3) * (_UNIT * self._at_most) + _TINY)
        scores = sign * self.values
        rows: list[int] = np.flatnonzero(scores >= scores.max() - tolerance).tolist()
        if len(rows) == 1:
            return rows[0]
        # Within rounding of the extreme double; each combination of what matters occurs once.
        matter = self._columns[np.array(self.weights) != 0][:, rows]
        _, first = np.unique(matter, axis=1, return_index=True)
        different: list[int] = np.array(rows)[first].tolist()
        exact = {
            row: exact_sum(self.weights, self._columns[:, row].tolist(), self.intercept)
            for row in different
        }
        return max(exact, key=lambda row: (sign * exact[row], -row))


def check_within(score: AlignedScore, ends: Ends) -> None:
    """Refuse a score that leaves its range, and say where."""
    if score.surely_within(ends):
        return
    lowest, highest, under = score.ends
    low, high = map(Fraction, ends)
    for sign, value, side in [
        (1, Fraction(highest, under), "above"),
        (-1, Fraction(lowest, under), "below"),
    ]:
        excess = value - high if sign > 0 else low - value
        if excess > FORGIVEN * (high - low):
            reached = (
                f"the score reaches {format_number(value, 10)} at {score.describe_corner(sign)}"
            )
            raise InvalidInput(f"{reached}, {format_number(excess, 3)} {side} the range", "range")


def between(scores: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return where scores are in a range, from 0 to 1."""
    # Scores that overflow are far beyond the range, and clipped like others.
    with np.errstate(over="ignore"):
        return np.minimum(np.maximum((scores - low) / (high - low), 0.0), 1.0)
