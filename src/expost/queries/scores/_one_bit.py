"""One-bit queries about a share between 0 and 1: integer weights, likelihoods, regressions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point
from expost.errors import InvalidInput
from expost.files.reading import members, number, read_list
from expost.numbers import decimal_text, double_above, double_below, down, read_only, up
from expost.queries._likelihood import BoxLikelihood, FiniteLikelihood, two_weights
from expost.queries._query import QueryWithEpsilon, UnbiasedScore
from expost.queries.scores._aligned import BoxScore, Ends, SetScore
from expost.queries.scores._score import AffineScore, score_from_fields
from expost.queries.tables._table import TableLikelihood
from expost.sampling import Categorical, Pmf
from expost.terms import Link, ScoreTerm, Weights, as_integers

__all__ = [
    "Curve",
    "OneBitGrid",
    "OneBitOnSet",
    "Regression",
    "ScoreLikelihood",
    "one_bit_meaning",
    "one_bit_weights",
    "read_range",
    "relative_share",
]


@dataclass(frozen=True, slots=True)
class OneBitGrid:
    """The possible weights of a response: light, light + 1, …, light + span ≤ heavy."""

    light: int
    heavy: int
    span: int

    @classmethod
    def at(cls, epsilon: Fraction) -> OneBitGrid:
        return _grid(*two_weights(epsilon))

    @property
    def total(self) -> int:
        """The sum of the weights of both responses."""
        return 2 * self.light + self.span

    def means(self, ends: Ends) -> tuple[Fraction, Fraction]:
        """Return what the low and the high response must mean to be unbiased.

        By the sampled weights, the high response has light + share · span of their total.
        """
        low, high = map(Fraction, ends)
        step = (high - low) / self.span
        return low - self.light * step, high + self.light * step


@lru_cache(maxsize=256)
def _grid(heavy: int, light: int) -> OneBitGrid:
    # Rounded down to a double, so that share 1 gives exactly light + span; less span, less loss.
    return OneBitGrid(light, heavy, int(double_below(Fraction(heavy - light))))


def one_bit_weights(share: NDArray[np.float64], epsilon: Fraction) -> tuple[Weights, Weights]:
    """Return the weights of the low and the high response, for shares of the range.

    The weight of the high one is monotone in the share, ``light`` at share 0, and ``heavy`` at
    share 1 (or just below it, where heavy - light is too large for a double); the two weights
    always add up to the same total.
    """
    grid = OneBitGrid.at(epsilon)
    total = grid.total
    high = as_integers(np.rint(share * float(grid.span)), total) + grid.light
    return total - high, high


def one_bit_meaning(ends: Ends, responses: Ends, epsilon: Fraction) -> UnbiasedScore:
    """Return the meaning of two responses that are sampled by the weights of a grid."""
    means = OneBitGrid.at(epsilon).means(ends)
    estimates = dict(zip(responses, means, strict=True))
    low, high = map(float, means)
    return UnbiasedScore(ends, estimates.__getitem__, lambda score: (high - score) * (score - low))


def read_range(range: Sequence[float]) -> Ends:
    """Read the two ends of a range as they were written."""
    ends = read_list(range, number, "range", "two ends, the lower one first, such as (0, 12)")
    if len(ends) != 2 or not ends[0] < ends[1] or not math.isfinite(float(ends[1]) - ends[0]):
        raise InvalidInput("must be two ends, the lower one first", "range")
    return ends[0], ends[1]


#: A function from scores to shares, elementwise.
Curve = Callable[..., NDArray[np.float64]]


class OneBitOnSet(TableLikelihood):
    """Two responses; the high one is likelier the higher the score. Both are always possible."""

    def __init__(
        self, score: SetScore, domain: FiniteSet, responses: Ends, epsilon: Fraction,
        curve: Curve, *parameters: float,
    ) -> None:  # fmt: skip
        self.domain = domain
        self.responses = responses
        self._positions = {response: i for i, response in enumerate(responses)}
        self._score = score
        self._curve = curve
        self._parameters = parameters
        self._epsilon = epsilon
        self._words_per_weight = 1 + OneBitGrid.at(epsilon).total.bit_length() // 64

    @cached_property
    def _columns(self) -> Sequence[Weights]:  # type: ignore[override]
        columns = one_bit_weights(self._curve(self._score.values, *self._parameters), self._epsilon)
        read_only(*columns)
        return columns


class ScoreLikelihood(BoxLikelihood):
    """Two responses; the high one is likelier the higher the score."""

    link: ClassVar[Link]

    def __init__(
        self, score: BoxScore, domain: Box, responses: Ends, epsilon: Fraction,
        curve: Curve, *parameters: float,
    ) -> None:  # fmt: skip
        self.domain = domain
        self.responses = responses
        self._score = score
        self._epsilon = epsilon
        self._curve = curve
        self._parameters = parameters
        self._terms: dict[int, ScoreTerm] = {}

    def _shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each score, between 0 and 1, as it is sampled."""
        return self._curve(scores, *self._parameters)

    @staticmethod
    @abstractmethod
    def share_error(position: int, growth: Fraction) -> Fraction:
        """Bound how the rounding of a share changes the logarithm of a response's weight."""

    @abstractmethod
    def _form(self, sign: int, epsilon: float) -> tuple[int, int, int]:
        """Return scale and shift from a score to z, for the high (1) or the low response (-1).

        They are integers over the third one, which is positive.
        """

    @staticmethod
    @abstractmethod
    def slope(growth: Fraction, epsilon: Fraction) -> Fraction:
        """Bound the slope of log(1 + share·growth) in z."""

    @property
    def corners(self) -> tuple[Point, Point]:
        return self._score.corner(-1), self._score.corner(1)

    @property
    def blur(self) -> Fraction:
        """The rounding of a share, and half a step of the grid next to a weight above light."""
        grid = OneBitGrid.at(self._epsilon)
        growth = Fraction(grid.span, grid.light)
        share = max(self.share_error(position, growth) for position in (0, 1))
        return share + Fraction(1, 2 * grid.light)

    def pmf(self, point: Point) -> Pmf:
        low, high = one_bit_weights(self._shares(np.array([self._score.at(point)])), self._epsilon)
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
            return self._constant_term(Fraction(0))
        epsilon = float(self._epsilon)
        slope, error = _slope_and_error(type(self), position, *self._epsilon.as_integer_ratio())
        form = self._score.form(*self._form(1 if position else -1, epsilon))
        # The score in doubles and the doubles of the term, and everything else.
        error = math.inf if form is None else up(up(slope * form.moved) + error)
        if form is None or error >= double_below(self._epsilon / 2):
            return self._constant_term(self._epsilon / 2)
        return ScoreTerm(self.link, epsilon, form.weights, form.offset, error)

    def _constant_term(self, error: Fraction) -> ScoreTerm:
        """Return a constant term: all logarithms are within half of epsilon of their middle."""
        zeros = (0.0,) * len(self._score.weights)
        return ScoreTerm(self.link, float(self._epsilon), zeros, 0.0, double_above(error))


@lru_cache(maxsize=1024)
def _slope_and_error(
    kind: type[ScoreLikelihood], position: int, top: int, bottom: int
) -> tuple[float, float]:
    """Bound the slope of a term, and its error except for that of the score."""
    epsilon = Fraction(top, bottom)  # passed in parts, because hashing a fraction takes long
    grid = OneBitGrid.at(epsilon)
    growth = Fraction(grid.span, grid.light)
    error = (
        kind.share_error(position, growth)
        # The grid: half a step, next to a weight that is at least light.
        + Fraction(1, 2 * grid.light)
        # Epsilon: heavy rounded down, the span of the grid, and the double of the term.
        + Fraction(1, grid.heavy)
        + Fraction(grid.heavy - grid.light - grid.span, grid.light + grid.span)
        + abs(Fraction(float(epsilon)) - epsilon)
    )
    return double_above(kind.slope(growth, epsilon)), double_above(error)


def relative_share(error: Fraction, position: int, growth: Fraction) -> Fraction:
    """Bound the change if the product of a share and a double has a relative error.

    The error is then relative to the high weight, but not to the low one.
    """
    return error * (min(growth, Fraction(1)) if position else growth)


_RESPONSES = (0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Regression(QueryWithEpsilon):
    """One bit, 0 or 1, about a share between 0 and 1 that rises with a score."""

    likelihood: ClassVar[type[ScoreLikelihood]]
    score: AffineScore
    epsilon: Fraction

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.score}, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return f"a yes-or-no prediction from {self.score.coordinates}"

    def asks_on(self, domain: Domain) -> str:
        return f"a yes-or-no prediction from {self.score.describe(domain)}"

    def tree(self) -> dict[str, Any]:
        return {**self.score.tree(), "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        fields = members(fields, required=("weights", "epsilon"), optional=("intercept",))
        return cls(score_from_fields(fields), fields["epsilon"])

    @staticmethod
    @abstractmethod
    def curve(x: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Return the shares of scores, in portable doubles."""

    def work(self, domain: Domain) -> int:
        return len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        return OneBitOnSet(self.score.on_set(domain), domain, _RESPONSES, self.epsilon, self.curve)

    def on_box(self, domain: Box) -> BoxLikelihood:
        score = self.score.on_box(domain)
        return self.likelihood(score, domain, _RESPONSES, self.epsilon, self.curve)

    def meaning(self, domain: Domain) -> UnbiasedScore:
        return one_bit_meaning(_RESPONSES, _RESPONSES, self.epsilon)
