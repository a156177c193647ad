"""Laplace noise on a score: the score on a grid, and two-sided geometric noise on that grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, FiniteSet, Point
from expost.errors import InvalidInput, at
from expost.queries.aligned_score import SMALLEST, UNIT, BoxScore
from expost.queries.base import BoxLikelihood, FiniteLikelihood, Query, read_epsilon
from expost.queries.geometric import ClampedNoise, GeometricLikelihood, NoisyInteger
from expost.queries.linear import FORGIVEN, check_within, shares
from expost.queries.one_bit import Ends, read_range
from expost.queries.score import Score, WeightsLike, read_score, weights_from_json
from expost.queries.score_term import Link, ScoreTerm
from expost.queries.term import Weights, as_weights
from expost.queries.two_weights import two_weights
from expost.reading import LARGEST_INTEGER, array, members, number
from expost.rounding import ExactLike, decimal_text, double_above, exact, positive
from expost.sampling import Pmf

__all__ = ["Laplace", "laplace"]

# Noise beyond this many scales, of a probability below 3e-20, is cut off.
_SCALES = 45
_MOST_STEPS = 50_000


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(Query):
    r"""A score s in [a, b], rounded to a grid of step g, plus noise (Dwork et al. 2006).

    .. math:: P[k \mid s] \propto e^{-|k - \operatorname{round}(s/g)|\, g / \beta}, \quad
              \beta = (b - a)/\varepsilon

    The response is an integer k and means k·g. Both ends of the range are on the grid. Noise that
    leaves the range by more than 45 β counts as its last step.
    """

    kind: ClassVar[str] = "laplace"
    score: Score
    range: Ends
    grid: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        with at("grid"):
            object.__setattr__(self, "grid", positive(self.grid, at_most=LARGEST_INTEGER))
            for end in self.range:
                if exact(end) % self.grid:
                    raise InvalidInput(f"the end {end:g} of the range is not on the grid")

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{self.score} in [{low}, {high}], grid={decimal_text(self.grid)}"
        return f"Laplace({shown}, epsilon={decimal_text(self.epsilon)})"

    def tree(self) -> dict[str, Any]:
        ends = [float(end) for end in self.range]
        return {**self.score.tree(), "range": ends, "grid": self.grid, "epsilon": self.epsilon}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Laplace:
        required = ("weights", "range", "grid", "epsilon")
        fields = members(fields, required=required, optional=("intercept",))
        with at("range"):
            ends = array(fields["range"])
        score = read_score(weights_from_json(fields["weights"]), fields.get("intercept", 0))
        return cls(score, read_range(ends), fields["grid"], fields["epsilon"])

    def with_epsilon(self, epsilon: Fraction) -> Laplace:
        return replace(self, epsilon=epsilon)

    @property
    def first(self) -> int:
        """The number of the lower end."""
        return int(exact(self.range[0]) / self.grid)

    @property
    def cells(self) -> int:
        """How many steps there are between the ends."""
        return int(exact(self.range[1]) / self.grid) - self.first

    def steps(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The grid points of scores, by their numbers."""
        return self.first + np.rint(shares(scores, self.range) * self.cells)

    def noise(self) -> ClampedNoise:
        beyond = math.ceil(_SCALES * self.cells / self.epsilon)
        reach = self.cells + beyond
        if reach > _MOST_STEPS:
            least = math.ceil((1 + _SCALES / self.epsilon) * self.cells / _MOST_STEPS)
            raise InvalidInput(f"is too fine for this epsilon, at least {least} times", "grid")
        heavy, light = two_weights(self.epsilon / self.cells)
        last = self.first + self.cells
        return ClampedNoise(self.first - beyond, last + beyond, reach, heavy, light)

    def _on(self, domain: FiniteSet) -> FiniteLikelihood:
        score = self.score.on_set(domain)
        check_within(score, self.range)
        steps = [int(step) for step in self.steps(score.values)]
        return GeometricLikelihood(domain, steps, self.noise())

    def _on_box(self, domain: Box) -> BoxLikelihood:
        score = self.score.on_box(domain)
        check_within(score, self.range)
        return _LaplaceOnBox(domain, self, score)


class _LaplaceOnBox(BoxLikelihood):
    """Responses are integers. The two ends of the range tell values apart as well as any other."""

    def __init__(self, domain: Box, query: Laplace, score: BoxScore) -> None:
        self.domain = domain
        self._query = query
        self._score = score
        self._noise = query.noise()
        self._first = self._noise.low
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
        try:
            integer = number(response)
        except InvalidInput:
            return None
        return self.responses.index(integer) if integer in self.responses else None

    def _step(self, place: Point) -> int:
        return int(self._query.steps(np.array([self._score.at(place)]))[0])

    def pmf(self, place: Point) -> Pmf:
        return NoisyInteger(self._noise, self._step(place))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        steps = self._query.steps(self._score.at(columns))
        weights = [self._noise.weight(int(step), self._first + position) for step in steps]
        return as_weights(weights, self._noise.total)

    def term(self, position: int) -> ScoreTerm:
        query, score = self._query, self._score
        epsilon, cells = query.epsilon, query.cells
        low, high = map(Fraction, query.range)
        # Beyond the range every response is like the end.
        cell = min(cells, max(0, self._first + position - query.first))
        scale = epsilon / (high - low)
        shift = -scale * low - epsilon * cell / cells
        zeros = (0.0,) * len(score.weights)
        flat = ScoreTerm(Link.TENT, float(epsilon), zeros, 0.0, double_above(epsilon / 2))
        try:
            weights = tuple(float(scale * Fraction(weight)) + 0.0 for weight in score.weights)
            offset = float(scale * Fraction(score.intercept) + shift) + 0.0
        except OverflowError:
            return flat
        error = (
            # The score in doubles, and the doubles of the term.
            scale * (score.rounding + UNIT * score.magnitude)
            + UNIT * abs(shift)
            + SMALLEST * (1 + sum(map(Fraction, score.reach), Fraction(0)))
            # Half a step for the grid, and a share that is off by some roundings.
            + epsilon * (Fraction(1, 2 * cells) + 8 * UNIT)
            # What the range forgives, and heavy/light, which is just below e^(epsilon/cells).
            + epsilon * (FORGIVEN + Fraction(1, 2**40))
        )
        if error >= epsilon / 2:
            return flat
        return ScoreTerm(Link.TENT, float(epsilon), weights, offset, double_above(error))


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
