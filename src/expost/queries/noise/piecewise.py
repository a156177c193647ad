"""The piecewise mechanism: a response from a window around the score, or from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Integers, Point
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import members, read_integer
from expost.numbers import ExactLike, Nats, decimal_text, exact, up
from expost.queries._likelihood import (
    BoxLikelihood,
    FiniteLikelihood,
    Pairwise,
    two_weights,
)
from expost.queries._query import UnbiasedScore, read_epsilon
from expost.queries.noise._integer_noise import GridQuery, affine_form, read_grid
from expost.queries.scores._aligned import UNIT, BoxScore
from expost.queries.scores._one_bit import read_range
from expost.queries.scores._score import WeightsLike, read_score
from expost.sampling import Pmf
from expost.terms import BLUR, EVERYWHERE, Link, ScoreTerm, Weights, as_weights

__all__ = ["Piecewise", "Plateau", "piecewise"]

# Doubles then place a score among the steps much better than BLUR.
_MOST_STEPS = 1 << 24

# A filter on a box searches once for each sufficient response.
_MOST_SUFFICIENT = 16


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(GridQuery):
    r"""A score s, clipped to [a, b], on a grid of N steps, and a window of W (Wang et al. 2019).

    .. math:: P[k \mid s] = \frac{e^{\varepsilon 1[j \le k < j + W]}}{W e^\varepsilon + N}, \quad
              j = \operatorname{round}\Big(N\, \frac{s - a}{b - a}\Big), \quad 0 \le k < N + W

    The response is the integer k, and :meth:`estimate` gives the score that it stands for. (The
    paper is "Collecting and Analyzing Multidimensional Data with Local Differential Privacy".)
    """

    kind: ClassVar[str] = "piecewise"
    window: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cells > _MOST_STEPS:
            raise InvalidInput(f"is too fine: more than {_MOST_STEPS} steps to a range", "grid")
        with at("window"):
            object.__setattr__(self, "window", read_integer(self.window, at_least=1))
            if self.window > _MOST_STEPS:
                raise InvalidInput(f"must be at most {_MOST_STEPS}, not {self.window:,}")

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{self.score} clipped to [{low}, {high}], grid={decimal_text(self.grid)}"
        return f"Piecewise({shown}, window={self.window}, epsilon={decimal_text(self.epsilon)})"

    def tree(self) -> dict[str, Any]:
        return {**super().tree(), "window": float(self.window)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Piecewise:
        required = ("weights", "range", "grid", "window", "epsilon")
        fields = members(fields, required=required, optional=("intercept",))
        return cls(*read_grid(fields), fields["epsilon"], fields["window"])

    @property
    def responses(self) -> range:
        return range(self.cells + self.window)

    @cached_property
    def two_weights(self) -> tuple[int, int]:
        """The weights of a response in the window, and of any other."""
        return two_weights(self.epsilon)

    @property
    def usual_window(self) -> int:
        """The window of the paper: e^(-epsilon/2) times the number of steps."""
        heavy, light = two_weights(self.epsilon / 2)
        return max(1, round(Fraction(self.cells * light, heavy)))

    def estimate(self, response: int) -> float:
        r"""Estimate the score from a response: unbiased, except for the grid and one rounding.

        .. math:: a + g\, \frac{k - \mu}{\nu}, \quad \mu + \nu j = \mathrm{E}[k \mid j]
        """
        with at("response"):
            k = read_integer(response)
            if k not in self.responses:
                raise InvalidInput(f"must be from 0 to {len(self.responses) - 1}")
        heavy, light = self.two_weights
        size, width, difference = len(self.responses), self.window, heavy - light
        total = width * heavy + self.cells * light
        # Twice the total times E[k | j] is this + 2 · width · more · j.
        constant = size * (size - 1) * light + width * (width - 1) * difference
        step = Fraction(2 * total * k - constant, 2 * width * difference)
        try:
            return float(self.grid * (self.first + step))
        except OverflowError:
            raise InvalidInput("is too small for an estimate in doubles", "epsilon") from None

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        return _PiecewiseLikelihood(domain, self, self.steps(self.score.on_set(domain).values))

    def on_box(self, domain: Box) -> BoxLikelihood:
        return _PiecewiseOnBox(domain, self, self.score.on_box(domain))

    def meaning(self, domain: Domain) -> UnbiasedScore:
        return UnbiasedScore(self.range, self.estimate, self._variance)

    def _variance(self, score: float) -> float:
        """Return the variance of an estimate: of a mixture of two uniform distributions."""
        heavy, light = self.two_weights
        size, width = len(self.responses), self.window
        inside = width * (heavy - light)
        share = inside / (inside + size * light)  # of the window, beyond the rest
        step = score / float(self.grid) - self.first
        between = step + (width - size) / 2
        within = share * (width**2 - 1) / 12 + (1 - share) * (size**2 - 1) / 12
        return (float(self.grid) / share) ** 2 * (within + share * (1 - share) * between**2)


def _in_window(steps: NDArray[np.int64], position: int, window: int) -> NDArray[np.bool_]:
    """Return the steps that a response supports."""
    return np.asarray((position - window < steps) & (steps <= position))


class _PiecewiseLikelihood(Pairwise):
    """Responses are integers; each supports the values whose windows contain it."""

    def __init__(self, domain: FiniteSet, query: Piecewise, steps: NDArray[np.int64]) -> None:
        super().__init__(domain, *query.two_weights)
        self._query = query
        self._steps = steps
        self.responses = query.responses

    @cached_property
    def least_loss(self) -> Nats:
        # A response that supports all values or none reveals nothing.
        steps, window = np.unique(self._steps), self._query.window
        for_all = steps[-1] - steps[0] < window
        beyond = steps[0] > 0 or steps[-1] < self._query.cells
        between = np.diff(steps).max(initial=0) > window
        return Nats() if for_all or beyond or between else self.epsilon

    def pmf(self, index: int) -> Pmf:
        return _plateau(self._query, int(self._steps[index]))

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        return _in_window(self._steps, position, self._query.window)

    def separated_from(self, value: int) -> NDArray[np.bool_]:
        return np.asarray(self._steps != self._steps[value])

    def separating_response(self, value: int, other: int) -> int:
        # The end of the window that is away from the other value.
        own_step, other_step = int(self._steps[value]), int(self._steps[other])
        return own_step if own_step < other_step else own_step + self._query.window - 1


class _PiecewiseOnBox(BoxLikelihood):
    """The likelihood on a box, where the window is an interval of scores."""

    def __init__(self, domain: Box, query: Piecewise, score: BoxScore) -> None:
        self.domain = domain
        self._query = query
        self._score = score
        self.responses = query.responses

    @property
    def sufficient(self) -> Sequence[int] | None:
        # Neighboring steps are separated only by responses that separate no others, so all of
        # them are needed.
        return range(len(self.responses)) if len(self.responses) <= _MOST_SUFFICIENT else None

    @property
    def corners(self) -> tuple[Point, Point]:
        return self._score.corner(-1), self._score.corner(1)

    @property
    def largest_loss_responses(self) -> Sequence[int]:
        # One supports the lowest score alone, the other the highest.
        low, high = self._extreme_steps
        return [low, high + self._query.window - 1]

    @property
    def smallest_loss_responses(self) -> Sequence[int] | None:
        low, high = self._extreme_steps
        if low > 0:
            return [0]  # supports no score of the box
        if high < self._query.cells:
            return [len(self.responses) - 1]
        if high - low < self._query.window:
            return [high]  # supports all of them
        gap = _widest_gap(self.domain, self._score.weights) * self._scale
        # If no window fits between two scores, every response supports some and not others.
        return [0] if gap < self._query.window - 2 * BLUR else None

    @cached_property
    def _extreme_steps(self) -> tuple[int, int]:
        low, high = map(self._step, self.corners)
        return low, high

    def _step(self, point: Point) -> int:
        return int(self._query.steps(np.array([self._score.at(point)]))[0])

    def pmf(self, point: Point) -> Pmf:
        return _plateau(self._query, self._step(point))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        heavy, light = self._query.two_weights
        steps = self._query.steps(self._score.at(columns))
        weights = np.repeat(as_weights([light], heavy), len(steps))
        weights[_in_window(steps, position, self._query.window)] = heavy
        return weights

    @property
    def _scale(self) -> Fraction:
        low, high = map(Fraction, self._query.range)
        return self._query.cells / (high - low)

    @cached_property
    def _everywhere(self) -> ScoreTerm:
        """The common part of the terms of all responses."""
        query = self._query
        # Not the nominal epsilon, which is above it by more than a rounding: losses are multiples
        # of it, and a multiple should fit a budget that it just fits.
        epsilon = Nats(ratio=Fraction(*query.two_weights)).enclosure
        form = affine_form(self._score, self._scale, -self._scale * Fraction(query.range[0]))
        # The share of a score in doubles, times the steps, is off by some roundings.
        if form is None or Fraction(form.moved) + 8 * UNIT * query.cells >= BLUR:
            zeros = (0.0,) * len(self._score.weights)
            return ScoreTerm(Link.WINDOW, epsilon.upper, zeros, 0.0, up(epsilon.upper / 2))
        return ScoreTerm(
            Link.WINDOW,
            epsilon.upper,
            form.weights,
            form.offset,
            up(epsilon.width / 2),
            # Everything that a step depends on; weights by name, in the order of equal boxes.
            rounding_key=(self._score.by_name, self._score.intercept, query.range, query.cells),
        )

    def term(self, position: int) -> ScoreTerm:
        common, query = self._everywhere, self._query
        if not any(common.weights):
            return common
        low, high = EVERYWHERE
        if position >= query.window:
            low = position - query.window + 0.5
        if position < query.cells:
            high = position + 0.5
        return replace(common, window=(low, high))


def _widest_gap(box: Box, weights: Sequence[float]) -> Fraction:
    """Bound the largest gap between neighboring scores on a box, in real numbers.

    Coordinates with the smallest jumps come first: a later jump leaves no gap larger than what the
    earlier ones span.
    """
    reach, jumps = Fraction(0), list[tuple[Fraction, Fraction]]()
    grouped = {column for group in box.groups for column in group}
    for column, (side, weight) in enumerate(zip(box.columns, map(Fraction, weights), strict=True)):
        width = abs(weight) * (Fraction(side.upper) - Fraction(side.lower))
        if not isinstance(side, Integers):
            reach += width
        elif column not in grouped and width:
            jumps.append((abs(weight), width))
    for group in box.groups:
        ordered = sorted(Fraction(weights[column]) for column in group)
        longest = max((after - before for before, after in pairwise(ordered)), default=Fraction(0))
        jumps.append((longest, ordered[-1] - ordered[0]))
    widest = Fraction(0)
    for jump, width in sorted(jumps):
        widest = max(widest, jump - reach)
        reach += width
    return widest


def _plateau(query: Piecewise, step: int) -> Pmf:
    return Plateau(len(query.responses), step, query.window, *query.two_weights)


class Plateau(Pmf):
    """A run of heavy positions among equally light ones, without listing them all."""

    __slots__ = ("_heavy", "_light", "_start", "_width", "total")

    def __init__(self, size: int, start: int, width: int, heavy: int, light: int) -> None:
        self._start, self._width = start, width
        self._heavy, self._light = heavy, light
        self.total = width * heavy + (size - width) * light

    def pick(self, uniform: int) -> int:
        limit = self._width * self._heavy
        inside = self._start + uniform // self._heavy
        other = (uniform - limit) // self._light
        outside = other + (other >= self._start) * self._width
        # Products, not branches: both candidates are computed.
        return (uniform < limit) * inside + (uniform >= limit) * outside

    def weight(self, position: int) -> int:
        inside = self._start <= position < self._start + self._width
        return self._heavy if inside else self._light


def piecewise(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float],
    grid: ExactLike,
    window: int | None = None,
    epsilon: ExactLike,
) -> Piecewise:
    """Ask for a weighted sum of coordinates, clipped to a range, on a grid, with noise.

    The ends of the range are multiples of the grid. The response is an integer, which ``estimate``
    of the query turns into an unbiased estimate of the score.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        range: The two ends that scores are clipped to.
        grid: The distance between neighboring scores after rounding.
        window: The number of likely responses, in steps of the grid; by default that of the paper,
            e^(-epsilon/2) times the number of steps.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> piecewise({"age": 1}, range=(0, 120), grid=1, epsilon="1")
    Piecewise(1 weight clipped to [0, 120], grid=1, window=73, epsilon=1)
    """
    step = read_at("grid", exact, grid)
    score, ends = read_score(weights, intercept), read_range(range)
    query = Piecewise(score, ends, step, read_epsilon(epsilon), 1 if window is None else window)
    return query if window is not None else replace(query, window=query.usual_window)
