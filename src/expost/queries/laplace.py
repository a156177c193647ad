"""Laplace noise on a score: the score on a grid, and two-sided geometric noise on that grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point
from expost.errors import InvalidInput, at
from expost.queries.aligned_score import UNIT, BoxScore
from expost.queries.base import BoxLikelihood, FiniteLikelihood, read_epsilon
from expost.queries.geometric import ClampedNoise, GeometricLikelihood, NoisyInteger
from expost.queries.linear import FORGIVEN, check_within
from expost.queries.meaning import Meaning
from expost.queries.one_bit import read_range
from expost.queries.score import WeightsLike, read_score
from expost.queries.score_grid import GridQuery, affine_form, integer_position, read_grid
from expost.queries.score_term import Link, ScoreTerm
from expost.queries.term import Weights, as_weights
from expost.queries.two_weights import two_weights
from expost.reading import LARGEST_INTEGER, members
from expost.rounding import ExactLike, decimal_text, double_above, exact
from expost.sampling import Pmf

__all__ = ["Laplace", "laplace"]

# Noise beyond this many scales, of a probability below 3e-20, is cut off.
_SCALES = 45
_MOST_STEPS = 50_000


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
    def from_json(cls, fields: dict[str, Any]) -> Laplace:
        required = ("weights", "range", "grid", "epsilon")
        return cls(*read_grid(members(fields, required=required, optional=("intercept",))))

    def noise(self) -> ClampedNoise:
        beyond = math.ceil(_SCALES * self.cells / self.epsilon)
        reach = self.cells + beyond
        if reach > _MOST_STEPS:
            least = math.ceil((1 + _SCALES / self.epsilon) * self.cells / _MOST_STEPS)
            raise InvalidInput(f"is too fine for this epsilon, at least {least} times", "grid")
        heavy, light = two_weights(self.epsilon / self.cells)
        last = self.first + self.cells
        if max(-self.first, last) + beyond > LARGEST_INTEGER:
            raise InvalidInput("is too fine for responses up to 2^53", "grid")
        return ClampedNoise(self.first - beyond, last + beyond, reach, heavy, light)

    def _on(self, domain: FiniteSet) -> FiniteLikelihood:
        score = self.score.on_set(domain)
        check_within(score, self.range)
        noise = self.noise()
        steps = [self.first + step for step in self.steps(score.values).tolist()]
        return GeometricLikelihood(domain, steps, noise)

    def _on_box(self, domain: Box) -> BoxLikelihood:
        score = self.score.on_box(domain)
        check_within(score, self.range)
        return _LaplaceOnBox(domain, self, score)

    def meaning(self, domain: Domain) -> Meaning:
        return Meaning(self.range, lambda response: self.grid * response)


class _LaplaceOnBox(BoxLikelihood):
    """Responses are integers. The two ends of the range tell values apart as well as any other."""

    def __init__(self, domain: Box, query: Laplace, score: BoxScore) -> None:
        self.domain = domain
        self._query = query
        self._score = score
        self._noise = query.noise()
        self.responses = range(self._noise.low, self._noise.high + 1)

    @property
    def sufficient(self) -> Sequence[int]:
        first = self._query.first - self._noise.low
        return first, first + self._query.cells

    @property
    def quietest(self) -> Sequence[int]:
        # That which is nearest to the middle of all scores.
        low, high = (self._step(self._score.corner(sign)) for sign in (-1, 1))
        return [middle - self._noise.low for middle in {(low + high) // 2, (low + high + 1) // 2}]

    def position(self, response: Any) -> int | None:
        return integer_position(self.responses, response)

    def _step(self, place: Point) -> int:
        query = self._query
        return query.first + int(query.steps(np.array([self._score.at(place)]))[0])

    def pmf(self, place: Point) -> Pmf:
        return NoisyInteger(self._noise, self._step(place))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        steps = self._query.steps(self._score.at(columns)).tolist()
        first, response = self._query.first, self._noise.low + position
        weights = [self._noise.weight(first + step, response) for step in steps]
        return as_weights(weights, self._noise.total)

    def term(self, position: int) -> ScoreTerm:
        query, score = self._query, self._score
        epsilon, cells = query.epsilon, query.cells
        low, high = map(Fraction, query.range)
        # Beyond the range every response is like the end.
        cell = min(cells, max(0, self._noise.low + position - query.first))
        scale = epsilon / (high - low)
        shift = -scale * low - epsilon * cell / cells
        zeros = (0.0,) * len(score.weights)
        flat = ScoreTerm(Link.TENT, float(epsilon), zeros, 0.0, double_above(epsilon / 2))
        form = affine_form(score, scale, shift)
        if form is None:
            return flat
        error = (
            form.moved
            # Half a step for the grid, and a share that is off by some roundings.
            + epsilon * (Fraction(1, 2 * cells) + 8 * UNIT)
            # What the range forgives, and heavy/light, which is just below e^(epsilon/cells).
            + epsilon * (FORGIVEN + Fraction(1, 2**40))
        )
        if error >= epsilon / 2:
            return flat
        return ScoreTerm(Link.TENT, float(epsilon), form.weights, form.offset, double_above(error))


def laplace(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float],
    grid: ExactLike,
    epsilon: ExactLike,
) -> Laplace:
    """A weighted sum of coordinates with Laplace noise; the response is a multiple of the grid.

    No score may leave the range, whose ends are multiples of the grid.

    >>> laplace({"age": 1}, range=(0, 120), grid=1, epsilon="1")
    Laplace(1 weight in [0, 120], grid=1, epsilon=1)
    """
    with at("grid"):
        step = exact(grid)
    return Laplace(read_score(weights, intercept), read_range(range), step, read_epsilon(epsilon))
