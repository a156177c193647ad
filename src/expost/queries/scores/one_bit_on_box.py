"""One bit about an affine score on a box: exact weights at a point, and terms for the optimizer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Point
from expost.errors import InvalidInput
from expost.files.reading import number
from expost.numbers import double_above, double_below, down, up
from expost.queries.likelihood import BoxLikelihood
from expost.queries.scores.aligned import BoxScore
from expost.queries.scores.one_bit import Ends, Grid, one_bit_weights
from expost.sampling import Categorical, Pmf
from expost.terms import Link, ScoreTerm, Weights

__all__ = ["ScoreLikelihood", "relative_share"]


class ScoreLikelihood(BoxLikelihood):
    """Two responses; the high one is likelier the higher the score."""

    link: ClassVar[Link]

    def __init__(self, domain: Box, responses: Ends, score: BoxScore, epsilon: Fraction) -> None:
        self.domain = domain
        self.responses = responses
        self._score = score
        self._epsilon = epsilon
        self._terms: dict[int, ScoreTerm] = {}

    @abstractmethod
    def _shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each score, between 0 and 1, as it is sampled."""

    @staticmethod
    @abstractmethod
    def share_error(position: int, growth: Fraction) -> Fraction:
        """How much the rounding of a share can change the logarithm of a response's weight."""

    @abstractmethod
    def _form(self, sign: int, epsilon: float) -> tuple[int, int, int]:
        """Scale and shift from a score to z, for the high (1) or the low response (-1).

        As integers over a third one, which is positive.
        """

    @staticmethod
    @abstractmethod
    def slope(growth: Fraction, epsilon: Fraction) -> Fraction:
        """The most that log(1 + share·growth) can change per unit of z."""

    @property
    def corners(self) -> tuple[Point, Point]:
        return self._score.corner(-1), self._score.corner(1)

    @property
    def blur(self) -> Fraction:
        """The rounding of a share, and half a step of the grid next to a weight above light."""
        grid = Grid.at(self._epsilon)
        growth = Fraction(grid.span, grid.light)
        share = max(self.share_error(position, growth) for position in (0, 1))
        return share + Fraction(1, 2 * grid.light)

    def position(self, response: Any) -> int | None:
        try:
            return self.responses.index(number(response))
        except (InvalidInput, ValueError):
            return None

    def pmf(self, place: Point) -> Pmf:
        share = self._shares(np.array([self._score.at(place)]))
        low, high = one_bit_weights(share, self._epsilon)
        return Categorical((int(low[0]), int(high[0])))

    def least_surprisal(self, position: int) -> float:
        # Weights are monotone in the score, except for the blur.
        least = min(self.pmf(corner).surprisal(position) for corner in self.corners)
        return max(0.0, down(least - double_above(2 * self.blur)))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        return one_bit_weights(self._shares(self._score.at(columns)), self._epsilon)[position]

    def term(self, position: int) -> ScoreTerm:
        if position not in self._terms:
            self._terms[position] = self._term(position)
        return self._terms[position]

    def _term(self, position: int) -> ScoreTerm:
        if self._score.is_constant:
            return self._flat(Fraction(0))
        known = _known(type(self), position, *self._epsilon.as_integer_ratio())
        form = self._score.form(*self._form(1 if position else -1, known.epsilon))
        if form is None:
            return self._flat(self._epsilon / 2)
        # The score in doubles and the doubles of the term, and all else.
        error = up(up(known.slope * form.moved) + known.rest)
        if error >= known.half:
            return self._flat(self._epsilon / 2)
        return ScoreTerm(self.link, known.epsilon, form.weights, form.offset, error)

    def _flat(self, error: Fraction) -> ScoreTerm:
        """A constant: all logarithms are within epsilon of each other, so within half of it."""
        zeros = (0.0,) * len(self._score.weights)
        return ScoreTerm(self.link, float(self._epsilon), zeros, 0.0, double_above(error))


@dataclass(frozen=True, slots=True)
class _Known:
    """What does not depend on the score: an epsilon, its half, a slope, and an error.

    In doubles: the half is rounded down, the other two up.
    """

    epsilon: float
    half: float
    slope: float
    rest: float


@lru_cache(maxsize=1024)
def _known(kind: type[ScoreLikelihood], position: int, top: int, bottom: int) -> _Known:
    epsilon = Fraction(top, bottom)  # given by its parts, for its hash takes long
    grid, double = Grid.at(epsilon), float(epsilon)
    growth = Fraction(grid.span, grid.light)
    rest = (
        kind.share_error(position, growth)
        # The grid: half a step, next to a weight that is at least light.
        + Fraction(1, 2 * grid.light)
        # Epsilon: heavy rounded down, the span of the grid, and the double of the term.
        + Fraction(1, grid.heavy)
        + Fraction(grid.heavy - grid.light - grid.span, grid.light + grid.span)
        + abs(Fraction(double) - epsilon)
    )
    slope = double_above(kind.slope(growth, epsilon))
    return _Known(double, double_below(epsilon / 2), slope, double_above(rest))


def relative_share(error: Fraction, position: int, growth: Fraction) -> Fraction:
    """The change if the product of a share and a double has a relative error.

    The error is then relative to the high weight, but not to what is left for the low one.
    """
    return error * (min(growth, Fraction(1)) if position else growth)
