"""An affine score on a domain: evaluated in doubles, and its exact extremes.

Doubles are added in one fixed order, elementwise and never by a library for linear algebra, so
that every machine, and a single point as well as a table of them, gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, by_name
from expost.errors import InvalidInput
from expost.numbers import double_above

__all__ = ["SMALLEST", "UNIT", "AlignedScore", "BoxScore", "Extreme", "SetScore"]

Doubles = TypeVar("Doubles", float, NDArray[np.float64])

UNIT = Fraction(1, 2**53)
SMALLEST = Fraction(1, 2**1074)
# Below this no sum of products can overflow on the way, rounding included.
_LARGEST = 2**1023


@dataclass(frozen=True, slots=True)
class Extreme:
    """The exact value of an extreme score, and the words for where it is."""

    value: Fraction
    where: str


def exact_sum(weights: Sequence[float], point: Sequence[float], intercept: float) -> Fraction:
    """intercept + Σ weight·coordinate in real numbers.

    Doubles are integers over powers of two, so the largest power is a common denominator, and
    integers are all that is needed on the way.
    """
    parts = [intercept.as_integer_ratio()]
    for weight, coordinate in zip(weights, point, strict=True):
        top, bottom = weight.as_integer_ratio()
        other_top, other_bottom = coordinate.as_integer_ratio()
        parts.append((top * other_top, bottom * other_bottom))
    common = max(bottom for _, bottom in parts)
    return Fraction(sum(top * (common // bottom) for top, bottom in parts), common)


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
        order: Sequence[int],
    ) -> None:
        self.weights = weights
        self.intercept = intercept
        self._order = order
        self.reach = reach
        if self.magnitude > _LARGEST:
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
        return exact_sum(self.weights, point, self.intercept)

    @cached_property
    def rounding(self) -> Fraction:
        """How far the doubles are from the real score, at most, anywhere on the domain.

        A product goes through at most n + 1 roundings, n the number of weights that are not zero;
        and it loses up to half of the smallest double where it is below normal ones.
        """
        n = sum(weight != 0 for weight in self.weights)
        return (n + 2) * UNIT * self.magnitude + n * SMALLEST

    @cached_property
    def magnitude(self) -> Fraction:
        """The largest that the sum of the sizes of its parts can be."""
        return exact_sum([abs(w) for w in self.weights], self.reach, abs(self.intercept))

    @abstractmethod
    def extreme(self, sign: int) -> Extreme:
        """The largest score for sign 1, the smallest one for sign -1."""


class BoxScore(AlignedScore):
    """A score on a box."""

    def __init__(self, weights: tuple[float, ...], intercept: float, box: Box) -> None:
        self._box = box
        reach = [max(abs(column.lower), abs(column.upper)) for column in box.columns]
        super().__init__(weights, intercept, reach, box.order)

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
        return self.at(self.corner(1)) == self.at(self.corner(-1))

    def extreme(self, sign: int) -> Extreme:
        corner, box = self.corner(sign), self._box
        names = box.names or [f"[{index}]" for index in range(len(box.sides))]
        moved = [k for k, place in enumerate(box.places) if any(self.weights[j] for j in place)]
        value = box.value(corner)
        where = by_name([names[k] for k in moved], [value[k] for k in moved])
        return Extreme(self.exactly_at(corner), where or "every point")


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
        super().__init__(weights, intercept, np.abs(columns).max(axis=1).tolist(), order)

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
        return Extreme(scores[row], f"{self._kind}[{row}]")
