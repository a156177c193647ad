"""One bit about an affine score on a box: exact weights at a point, and terms for the optimizer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Point
from expost.errors import InvalidInput
from expost.files.reading import number
from expost.numbers import double_above
from expost.queries.likelihood import BoxLikelihood
from expost.queries.scores.aligned import SMALLEST, UNIT, BoxScore
from expost.queries.scores.one_bit import Ends, Grid, one_bit_weights
from expost.sampling import Categorical, Pmf
from expost.terms.on_box import Link, ScoreTerm
from expost.terms.on_set import Weights

__all__ = ["ScoreLikelihood", "relative_share"]


class ScoreLikelihood(BoxLikelihood):
    """Two responses, the higher one the more likely the higher the score."""

    link: ClassVar[Link]

    def __init__(self, domain: Box, responses: Ends, score: BoxScore, epsilon: Fraction) -> None:
        self.domain = domain
        self.responses = responses
        self._score = score
        self._epsilon = epsilon
        self._terms: dict[int, ScoreTerm] = {}

    @abstractmethod
    def _shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far up scores are, between 0 and 1, as it is sampled."""

    @abstractmethod
    def _share_error(self, position: int, growth: Fraction) -> Fraction:
        """What the rounding of a share can change in the logarithm of a response's weight."""

    @abstractmethod
    def _form(self, sign: int, epsilon: float) -> tuple[Fraction, Fraction]:
        """Scale and shift that make z of a score, for the high (1) or the low response (-1)."""

    @abstractmethod
    def _slope(self, growth: Fraction) -> Fraction:
        """The most that log(1 + share·growth) can change per unit of z."""

    @property
    def corners(self) -> tuple[Point, Point]:
        return self._score.corner(-1), self._score.corner(1)

    @property
    def blur(self) -> Fraction:
        """The rounding of a share, and half a step of the grid next to a weight above light."""
        grid = Grid.at(self._epsilon)
        growth = Fraction(grid.span, grid.light)
        share = max(self._share_error(position, growth) for position in (0, 1))
        return share + Fraction(1, 2 * grid.light)

    def position(self, response: Any) -> int | None:
        # An exchange holds the very object.
        for place, own in enumerate(self.responses):
            if own is response:
                return place
        try:
            return self.responses.index(number(response))
        except (InvalidInput, ValueError):
            return None

    def pmf(self, place: Point) -> Pmf:
        share = self._shares(np.array([self._score.at(place)]))
        low, high = one_bit_weights(share, self._epsilon)
        return Categorical((int(low[0]), int(high[0])))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        return one_bit_weights(self._shares(self._score.at(columns)), self._epsilon)[position]

    def term(self, position: int) -> ScoreTerm:
        if position not in self._terms:
            self._terms[position] = self._term(position)
        return self._terms[position]

    def _term(self, position: int) -> ScoreTerm:
        if self._score.is_constant:
            return self._flat(Fraction(0))
        grid, epsilon = Grid.at(self._epsilon), float(self._epsilon)
        growth = Fraction(grid.span, grid.light)
        scale, shift = self._form(1 if position else -1, epsilon)
        score = self._score
        try:
            weights = tuple(_times(scale, weight) for weight in score.weights)
            offset = float(scale * Fraction(score.intercept) + shift) + 0.0
        except OverflowError:
            return self._flat(self._epsilon / 2)
        # A coefficient is off by a unit of itself, or by the smallest double.
        moved = abs(scale) * (score.rounding + UNIT * score.magnitude) + UNIT * abs(shift)
        moved += SMALLEST * (1 + sum(map(Fraction, score.reach)))
        error = (
            # The score in doubles, and the doubles of the term.
            self._slope(growth) * moved
            + self._share_error(position, growth)
            # The grid: half a step, next to a weight that is at least light.
            + Fraction(1, 2 * grid.light)
            # Epsilon: heavy rounded down, the span of the grid, and the double of the term.
            + Fraction(1, grid.heavy)
            + Fraction(grid.heavy - grid.light - grid.span, grid.light + grid.span)
            + abs(Fraction(epsilon) - self._epsilon)
        )
        if error >= self._epsilon / 2:
            return self._flat(self._epsilon / 2)
        return ScoreTerm(self.link, epsilon, weights, offset, double_above(error))

    def _flat(self, error: Fraction) -> ScoreTerm:
        """A constant. All logarithms are within epsilon of each other, so half of it from one."""
        zeros = (0.0,) * len(self._score.weights)
        return ScoreTerm(self.link, float(self._epsilon), zeros, 0.0, double_above(error))


def _times(scale: Fraction, weight: float) -> float:
    """A product, correctly rounded; the quotient of two integers is."""
    top, bottom = weight.as_integer_ratio()
    return scale.numerator * top / (scale.denominator * bottom) + 0.0


def relative_share(error: Fraction, position: int, growth: Fraction) -> Fraction:
    """The change if a share, times a double, has a relative error where it matters.

    It is relative to the high weight then, but not to what it leaves for the low one.
    """
    return error * (min(growth, Fraction(1)) if position else growth)
