"""An affine score on a domain: evaluated in doubles, and its exact extremes.

Doubles are added in one fixed order, elementwise and never by a library for linear algebra, so
that every machine, and a single point as well as a table of them, gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, by_name
from expost.errors import InvalidInput
from expost.numbers import double_above, over_one
from expost.queries.scores.one_bit import Ends

__all__ = [
    "FORGIVEN",
    "UNIT",
    "AlignedScore",
    "BoxScore",
    "Extreme",
    "Form",
    "SetScore",
    "check_within",
    "shares",
]

Doubles = TypeVar("Doubles", float, NDArray[np.float64])

UNIT = Fraction(1, 2**53)
SMALLEST = Fraction(1, 2**1074)
# Below this no sum of products can overflow on the way, rounding included.
_LARGEST = 2**1023

# What decimals lose on their way to doubles is not worth an error: 0.1 times 100 is 5.6e-16 above
# 10. Scores are clipped to the range in any case, and accounted as such.
FORGIVEN = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True)
class Extreme:
    """The exact value of an extreme score, and the words for where it is."""

    value: Fraction
    words: Callable[[], str]

    @property
    def where(self) -> str:
        """For messages: most scores keep to their range, and nobody asks."""
        return self.words()


class Form(NamedTuple):
    """An affine form on a box, in doubles.

    In real numbers it is within ``top / under`` of the form of the score that is sampled by.
    """

    weights: tuple[float, ...]
    offset: float
    top: int
    under: int

    @property
    def moved(self) -> Fraction:
        return Fraction(self.top, self.under)


def exact_sum(
    weights: Sequence[float], point: Sequence[float], intercept: float
) -> tuple[int, int]:
    """intercept + Σ weight·coordinate in real numbers, as a quotient; not in lowest terms."""
    (*tops, first), bottom = over_one([*weights, intercept])
    others, other_bottom = over_one(point)
    return first * other_bottom + sum(map(mul, tops, others)), bottom * other_bottom


class AlignedScore(ABC):
    """A score with one weight for each coordinate of its domain."""

    weights: tuple[float, ...]
    intercept: float
    reach: Sequence[float]
    """The largest absolute value of each coordinate."""

    def __init__(
        self,
        weights: tuple[float, ...],
        intercept: float,
        reach: Sequence[float],
        magnitude: tuple[int, int],
        order: Sequence[int],
    ) -> None:
        self.weights = weights
        self.intercept = intercept
        self._order = order
        self.reach = reach
        self._magnitude = magnitude
        if magnitude[0] > _LARGEST * magnitude[1]:
            raise InvalidInput("the score is too large for a double", "weights")

    def at(self, coordinates: Sequence[Doubles]) -> Doubles:
        """The score in doubles, of one point or of columns of points."""
        first, *others = self._order
        total = self.intercept + self.weights[first] * coordinates[first]
        for j in others:
            total = total + self.weights[j] * coordinates[j]
        return total

    def exactly_at(self, point: Sequence[float]) -> Fraction:
        """The score in real numbers."""
        return Fraction(*exact_sum(self.weights, point, self.intercept))

    @cached_property
    def rounding(self) -> Fraction:
        """How far the doubles are from the real score, at most, anywhere on the domain.

        A product goes through at most n + 1 roundings, n the number of weights that are not zero;
        and it loses up to half of the smallest double where it is below normal ones.
        """
        n = self._parts
        return (n + 2) * UNIT * self.magnitude + n * SMALLEST

    @property
    def _parts(self) -> int:
        return len(self.weights) - self.weights.count(0.0)

    @property
    def magnitude(self) -> Fraction:
        """The largest that the sum of the sizes of its parts can be."""
        return Fraction(*self._magnitude)

    @abstractmethod
    def extreme(self, sign: int) -> Extreme:
        """The largest score for sign 1, the smallest one for sign -1."""

    @property
    def ends(self) -> tuple[int, int, int]:
        """The smallest and the largest score, exactly: two integers over a third one."""
        low, high = self.extreme(-1).value, self.extreme(1).value
        return (
            low.numerator * high.denominator,
            high.numerator * low.denominator,
            low.denominator * high.denominator,
        )


class BoxScore(AlignedScore):
    """A score on a box. Its weights and its intercept are also integers over a power of two."""

    tops: list[int]
    first: int
    bottom: int

    def __init__(self, weights: tuple[float, ...], intercept: float, box: Box) -> None:
        self._box = box
        (*tops, first), bottom = over_one([*weights, intercept])
        self.tops, self.first, self.bottom = tops, first, bottom
        *_, reaches, under = box.integers
        magnitude = abs(first) * under + sum(map(mul, map(abs, tops), reaches)), bottom * under
        super().__init__(weights, intercept, box.reach, magnitude, box.order)

    def form(self, scale: int, shift: int, under: int) -> Form | None:
        """(scale · score + shift) / under in doubles; None where that is too large for them."""
        bottom = self.bottom * under
        try:
            if scale == under:
                weights = tuple([weight + 0.0 for weight in self.weights])
            else:
                # The quotient of two integers is correctly rounded.
                weights = tuple([scale * top / bottom + 0.0 for top in self.tops])
            offset = (scale * self.first + shift * self.bottom) / bottom + 0.0
        except OverflowError:
            return None
        # In units of the smallest double, of which the unit of rounding is 2^1021:
        #     scale · (rounding + UNIT · magnitude) + UNIT · shift + SMALLEST · (1 + Σ reach),
        # for a coefficient is off by a unit of itself, or by the smallest double.
        *_, reaches, box_under = self._box.integers
        magnitude, common = self._magnitude
        scale = abs(scale)
        units = (self._parts + 3) * scale * magnitude + abs(shift) * common
        smallest = self._parts * scale * common + under * self.bottom * (box_under + sum(reaches))
        return Form(weights, offset, (units << 1021) + smallest, common * under << 1074)

    @property
    def by_name(self) -> tuple[float, ...]:
        """The weights in the order of :attr:`Box.order`."""
        return tuple(self.weights[j] for j in self._box.order)

    @property
    def _width(self) -> int:
        """By how much the score changes on a box without categories, times its denominator."""
        return sum(map(mul, map(abs, self.tops), self._box.integers[1]))

    @property
    def ends(self) -> tuple[int, int, int]:
        sums, _, _, under = self._box.integers
        if self._box.groups:
            corners = [exact_sum(self.weights, self.corner(k), self.intercept) for k in (-1, 1)]
            (low, low_under), (high, high_under) = corners
            return low * high_under, high * low_under, low_under * high_under
        # Twice the score in the middle of the box.
        middle, width = 2 * self.first * under + sum(map(mul, self.tops, sums)), self._width
        return middle - width, middle + width, 2 * self.bottom * under

    def corner(self, sign: int) -> tuple[float, ...]:
        """Where the score is extreme: every coordinate on the side that its weight says.

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
        if not self._box.groups:
            # Doubles are within the rounding of the real score, and so differ where that changes
            # by more than twice as much. Both are over the denominator of the magnitude.
            magnitude, common = self._magnitude
            rounding = ((self._parts + 2) * magnitude << 1021) + self._parts * common
            if self._width << 1073 > rounding:
                return False
        return self.at(self.corner(1)) == self.at(self.corner(-1))

    def extreme(self, sign: int) -> Extreme:
        low, high, under = self.ends
        return Extreme(Fraction(high if sign > 0 else low, under), lambda: self._where(sign))

    def _where(self, sign: int) -> str:
        corner, box = self.corner(sign), self._box
        names = box.names or [f"[{index}]" for index in range(len(box.sides))]
        moved = [k for k, place in enumerate(box.places) if any(self.weights[j] for j in place)]
        value = box.value(corner)
        return by_name([names[k] for k in moved], [value[k] for k in moved]) or "every point"


class SetScore(AlignedScore):
    """A score on finitely many points, given by the columns of their coordinates."""

    def __init__(
        self,
        weights: tuple[float, ...],
        intercept: float,
        columns: NDArray[np.float64],
        names: Sequence[str],
        kind: str,
    ) -> None:
        self._columns = columns
        self._kind = kind
        order = sorted(range(len(weights)), key=names.__getitem__)
        reach = np.abs(columns).max(axis=1).tolist()
        magnitude = exact_sum([abs(weight) for weight in weights], reach, abs(intercept))
        super().__init__(weights, intercept, reach, magnitude, order)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The score of every point."""
        return self.at(list(self._columns))

    def extreme(self, sign: int) -> Extreme:
        # Doubles narrow down where it is. Only those within their rounding are worked out exactly,
        # each combination of coordinates that matter once.
        signed = sign * self.values
        near = np.flatnonzero(signed >= signed.max() - 3 * double_above(self.rounding))
        matter = self._columns[np.array(self.weights) != 0][:, near]
        _, first = np.unique(matter, axis=1, return_index=True)
        rows = near[first].tolist()
        scores = {row: self.exactly_at(self._columns[:, row].tolist()) for row in rows}
        row = max(rows, key=lambda row: (sign * scores[row], -row))
        return Extreme(scores[row], lambda: f"{self._kind}[{row}]")


def check_within(score: AlignedScore, ends: Ends) -> None:
    """Refuse a score that leaves its range, and say where."""
    lowest, highest = score.extreme(-1), score.extreme(1)
    low, high = map(Fraction, ends)
    for extreme, excess, side in [
        (highest, highest.value - high, "above"),
        (lowest, low - lowest.value, "below"),
    ]:
        if excess > FORGIVEN * (high - low):
            reached = f"the score reaches {float(extreme.value):.10g} at {extreme.where}"
            raise InvalidInput(f"{reached}, {float(excess):.3g} {side} the range", "range")


def shares(scores: NDArray[np.float64], ends: Ends) -> NDArray[np.float64]:
    """How far up a range scores are, from 0 to 1."""
    low, high = map(float, ends)
    # What overflows is beyond the range by far, and clipped like the rest.
    with np.errstate(over="ignore"):
        return np.clip((scores - low) / (high - low), 0.0, 1.0)
