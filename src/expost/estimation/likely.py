r"""Intervals of all means that are likely enough, by the ratio of likelihoods.

A mean is in the interval if some mixture that has it is within half the square of Student's
quantile of the likeliest one. Where probabilities are at zero that alone is too narrow, so the
interval also has what is likely enough among mixtures whose weights may be slightly below zero.
Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.estimation.answers import Used
from expost.estimation.around import Intervals
from expost.estimation.intervals import student_reach
from expost.estimation.likeliest import curvature, likeliest
from expost.estimation.mixture import STEPS, Mixture
from expost.estimation.profile import Problem, inside

__all__ = ["by_likelihood"]


# How many standard errors weights may be below zero.
_BELOW = 4.0
_LOWEST = 1.0

# Of the relaxed mixture; in nats, where the interval is cut at about two.
_GAP = 1e-4

# What two ends of two kinds take, and how much may be multiplied: a minute or two.
_STEPS = 40
_MOST_PRODUCTS = 300_000_000_000

# Where the information is worked out: a little away from the edge.
_EVEN = 0.05
_FLAT = 1e-12


def by_likelihood(
    mixture: Mixture,
    wanted: Floats,
    level: float,
    domain: FiniteSet | None,
    used: Used,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Intervals for the means of scores, a column of ``wanted`` for each."""
    observed = mixture.observed
    total = wanted.shape[1]
    _check_work(observed.table.shape, total)
    reach = student_reach(level, max(1, int(observed.counts.sum()) - 1))
    strict = _strict(mixture, reach**2 / 2)
    relaxed = _relaxed(strict, reach**2 / 2)
    unknown = mixture.unknown(wanted)
    ends, gap = np.empty((2, total)), 0.0
    for place in range(total):
        for side, sign in enumerate((1.0, -1.0)):
            # Of alike values the one that is worth least may have all of their probability.
            scores = _least_of_each(sign * wanted[:, place], observed.alike)
            end, left = strict.least(scores)
            if not unknown[place]:
                other, more = relaxed.least(scores)
                end, left = min((end, left), (max(other, float(scores.min())), more))
            ends[side, place], gap = sign * end, max(gap, left)
        if progress is not None:
            progress(place + 1, total)
    estimate = mixture.probabilities @ wanted
    lower, upper = np.minimum(ends[0], estimate), np.maximum(ends[1], estimate)
    error = np.where(unknown, np.inf, (upper - lower) / (2 * reach))
    return Intervals(estimate, lower, upper, error, level, None, domain, used, gap, ())


def _check_work(shape: tuple[int, ...], total: int) -> None:
    patterns, values = shape
    # A step adds up a square matrix, pattern by pattern, and factors it.
    step = patterns * (values + 20) ** 2 + 2 * values**3
    if total * _STEPS * step > _MOST_PRODUCTS:
        raise InvalidInput(
            f"{patterns:,} kinds of responses for {values:,} values are too many for intervals of "
            f"{total:,} numbers unless a number is given: of repetitions, or scores for one mean"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """All mixtures that are likely enough, if weights may be so far ``below`` zero.

    Such weights are (1 + Σ below) · w - below, where w has no weight below zero.
    """

    table: Floats
    """Of w: what the table is for weights, mixed accordingly."""
    counts: Floats
    weights: Floats
    """The likeliest w."""
    start: Floats
    floor: float
    below: Floats

    def least(self, scores: Floats) -> tuple[float, float]:
        """A lower bound on their means, and how far it is at most below the least of them."""
        scores = (1 + self.below.sum()) * scores - float(scores @ self.below)
        low, span = float(scores.min()), float(np.ptp(scores))
        if span == 0:
            return low, 0.0
        scaled = (scores - low) / span
        problem = Problem(self.table, self.counts, scaled, self.floor)
        end = problem.least(self.start, float(scaled @ self.weights))
        return low + span * end.bound, span * (end.reached - end.bound)


def _strict(mixture: Mixture, fall: float) -> _Level:
    table, counts = mixture.observed.table, mixture.observed.counts
    weights, floor = mixture.found.weights, mixture.found.log_likelihood - fall
    start = inside(table, counts, weights, floor)
    return _Level(table, counts, weights, start, floor, np.zeros(len(weights)))


def _relaxed(strict: _Level, fall: float) -> _Level:
    """The same if weights may be some standard errors below zero."""
    table, counts = strict.table, strict.counts
    below = np.minimum(_BELOW * _errors(strict), _LOWEST)
    stretch = 1 + float(below.sum())
    mixed: Floats = stretch * table - (table @ below)[:, None]
    start: Floats = (strict.start + below) / stretch
    found = likeliest(mixed, counts, gap=_GAP, steps=STEPS, start=start)
    floor = found.log_likelihood - fall
    near = inside(mixed, counts, found.weights, floor)
    return _Level(mixed, counts, found.weights, near, floor, below)


def _errors(level: _Level) -> Floats:
    """The standard errors of the weights, by the information in the observations.

    They are very large for what the responses do not determine.
    """
    size, total = len(level.weights), float(level.counts.sum())
    weights = (1 - _EVEN) * level.weights + _EVEN / size
    known = total * curvature(level.table, level.counts / total, level.table @ weights)
    scale = float(np.trace(known))
    # The sum of the weights is certain, and nothing is known to more digits than a double has.
    known += scale * np.ones((size, size)) + _FLAT * scale * np.eye(size)
    return np.sqrt(np.maximum(np.diag(np.linalg.inv(known)), 0.0))


def _least_of_each(scores: Floats, alike: NDArray[np.intp]) -> Floats:
    """The least score of each group of values."""
    result = np.full(int(alike.max()) + 1, np.inf)
    np.minimum.at(result, alike, scores)
    return result
