"""Laplace noise on a score: the score on a grid, and two-sided geometric noise on that grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from expost._format import format_integer
from expost.domains import Box, Domain, FiniteSet
from expost.errors import InvalidInput, read_at
from expost.files.reading import LARGEST_INTEGER, members
from expost.numbers import (
    ExactLike,
    decimal_text,
    double_above,
    double_below,
    exact,
    over_one,
    up,
)
from expost.queries._likelihood import BoxLikelihood, FiniteLikelihood, two_weights
from expost.queries._query import UnbiasedScore, read_epsilon
from expost.queries.noise._integer_noise import GridQuery, NoisyOnBox, NoisyOnSet, read_grid
from expost.queries.noise.geometric import ClampedNoise
from expost.queries.scores._aligned import FORGIVEN, UNIT
from expost.queries.scores._one_bit import read_range
from expost.queries.scores._score import WeightsLike, read_score
from expost.terms import Link, ScoreTerm

__all__ = ["Laplace", "laplace"]

# Noise beyond this many scales, of a probability below 3e-20, is cut off.
_SCALES = 45
_MOST_STEPS = 50_000

# A share is off by a few roundings and by the tolerance of the range; and heavy/light is just below
# e^(epsilon/cells).
_SHARE_ERROR = 8 * UNIT + FORGIVEN + Fraction(1, 2**40)


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(GridQuery):
    r"""A score s in [a, b], rounded to a grid of step g, plus noise (Dwork et al. 2006).

    .. math:: P[k \mid s] \propto e^{-|k - \operatorname{round}(s/g)|\, g / \beta}, \quad
              \beta = (b - a)/\varepsilon

    The response is an integer k and means k·g. Both ends of the range are on the grid. Noise that
    leaves the range by more than 45 β counts as its last step.
    """

    kind: ClassVar[str] = "laplace"

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{self.score} in [{low}, {high}], grid={decimal_text(self.grid)}"
        return f"Laplace({shown}, epsilon={decimal_text(self.epsilon)})"

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Laplace:
        required = ("weights", "range", "grid", "epsilon")
        fields = members(fields, required=required, optional=("intercept",))
        return cls(*read_grid(fields), fields["epsilon"])

    def noise(self) -> ClampedNoise:
        top, bottom = self.epsilon.as_integer_ratio()
        beyond = -(-_SCALES * self.cells * bottom // top)  # rounded up
        reach = self.cells + beyond
        if reach > _MOST_STEPS:
            least = math.ceil((1 + _SCALES / self.epsilon) * self.cells / _MOST_STEPS)
            raise InvalidInput(
                f"is too fine for this epsilon; use at least {format_integer(least)} times as much",
                "grid",
            )
        heavy, light = two_weights(self.epsilon, self.cells)
        last = self.first + self.cells
        if max(-self.first, last) + beyond > LARGEST_INTEGER:
            raise InvalidInput("is too fine for responses up to 2^53", "grid")
        return ClampedNoise(self.first - beyond, last + beyond, reach, heavy, light)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        return NoisyOnSet(domain, self, self.noise())

    def on_box(self, domain: Box) -> BoxLikelihood:
        return _LaplaceOnBox(domain, self, self.noise())

    def meaning(self, domain: Domain) -> UnbiasedScore:
        heavy, light = two_weights(self.epsilon, self.cells)
        variance = float(self.grid**2 * Fraction(2 * heavy * light, (heavy - light) ** 2))
        return UnbiasedScore(
            self.range, lambda response: self.grid * response, lambda _score: variance
        )


class _LaplaceOnBox(NoisyOnBox):
    """The two ends of the range are sufficient responses."""

    query: Laplace

    @property
    def sufficient(self) -> Sequence[int]:
        first = self.query.first - self.noise.low
        return first, first + self.query.cells

    def term(self, position: int) -> ScoreTerm:
        epsilon, cells, first = self.query.epsilon, self.query.cells, self.query.first
        # Beyond the range every response is like the end.
        cell = min(cells, max(0, self.noise.low + position - first))
        # epsilon · ((score - low) / (high - low) - cell / cells), over one denominator
        top, bottom = epsilon.as_integer_ratio()
        (low, high), under = over_one(self.query.range)
        width = high - low
        shift = -top * (low * cells + cell * width)
        form = self.score.form(top * under * cells, shift, bottom * width * cells)
        # Half a step for the grid.
        moved = double_above(epsilon * (Fraction(1, 2 * cells) + _SHARE_ERROR))
        error = math.inf if form is None else up(form.moved + moved)
        if form is None or error >= double_below(epsilon / 2):
            zeros, half = (0.0,) * len(self.score.weights), double_above(epsilon / 2)
            return ScoreTerm(Link.TENT, float(epsilon), zeros, 0.0, half)
        return ScoreTerm(Link.TENT, float(epsilon), form.weights, form.offset, error)


def laplace(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float],
    grid: ExactLike,
    epsilon: ExactLike,
) -> Laplace:
    """Ask for a weighted sum of coordinates with Laplace noise, a multiple of the grid.

    All scores must be in the range, whose ends are multiples of the grid.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        range: The least and the largest score.
        grid: The distance between neighboring responses.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> laplace({"age": 1}, range=(0, 120), grid=1, epsilon="1")
    Laplace(1 weight in [0, 120], grid=1, epsilon=1)
    """
    step = read_at("grid", exact, grid)
    return Laplace(read_score(weights, intercept), read_range(range), step, read_epsilon(epsilon))
