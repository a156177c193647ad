r"""Profile likelihood: intervals of all means that mixtures of sufficient likelihood have.

A mean is in the interval if some mixture that has it is within half the square of Student's
quantile of the maximum. Where probabilities are at zero that alone is too narrow, so the interval
also has the means of mixtures of sufficient likelihood with weights slightly below zero.

The end of an interval is

.. math:: \min_{p \ge 0,\, \sum p = 1} s \cdot p
          \quad\text{subject to}\quad F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j \ge c

For every q, however it was found, with the gradient G of F/n at q, and for every m ≥ 0, no mixture
of sufficient likelihood has a mean below

.. math:: \min_j \; s_j - m \left(G_j - e^{(c - F(q))/n}\right)

The search is a primal-dual interior-point method. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.estimation._intervals import Intervals, t_quantile
from expost.estimation._mle import (
    STEPS,
    EstimatedMixture,
    cholesky_solver,
    fit_mixture,
    likelihood_gradient,
    observed_information,
    step_to_boundary,
)
from expost.estimation._validity import Provenance

__all__ = ["ProfileBound", "ProfileProblem", "interior_start", "likelihood_ratio_intervals"]


# How many standard errors weights may be below zero.
_ERRORS_BELOW_ZERO = 4.0
_MOST_BELOW_ZERO = 1.0

# Of the relaxed mixture; in nats, where the interval is cut at about two.
_RELAXED_GAP = 1e-4

# Steps for the two ends of an interval in both regions, and a limit of work: a minute or two.
_STEPS_PER_END = 40
_MOST_PRODUCTS = 300_000_000_000

# The information is computed a little away from the boundary.
_UNIFORM_SHARE = 0.05
_RELATIVE_RIDGE = 1e-12


def likelihood_ratio_intervals(
    mixture: EstimatedMixture,
    scores: Floats,
    confidence: float,
    domain: FiniteSet | None,
    provenance: Provenance,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Compute intervals for the means of scores; ``scores`` has a column for each."""
    observations = mixture.observations
    count = scores.shape[1]
    _check_work(observations.table.shape, count)
    quantile = t_quantile(confidence, max(1, int(observations.counts.sum()) - 1))
    region = _probability_region(mixture, quantile**2 / 2)
    relaxed_region = _relaxed_region(region, quantile**2 / 2)
    unidentified = mixture.unidentified(scores)
    ends, largest_gap = np.empty((2, count)), 0.0
    for column in range(count):
        for side, sign in enumerate((1.0, -1.0)):
            # In a group of values the one with the least score may have all of the probability.
            group_scores = _least_by_group(sign * scores[:, column], observations.groups)
            bound, gap = region.least(group_scores)
            if not unidentified[column]:
                relaxed_bound, relaxed_gap = relaxed_region.least(group_scores)
                relaxed_bound = max(relaxed_bound, float(group_scores.min()))
                bound, gap = min((bound, gap), (relaxed_bound, relaxed_gap))
            ends[side, column], largest_gap = sign * bound, max(largest_gap, gap)
        if progress is not None:
            progress(column + 1, count)
    estimate = mixture.probabilities @ scores
    lower, upper = np.minimum(ends[0], estimate), np.maximum(ends[1], estimate)
    errors = np.where(unidentified, np.inf, (upper - lower) / (2 * quantile))
    return Intervals(
        estimate, lower, upper, errors, confidence, None, domain, provenance, largest_gap, ()
    )


def _check_work(shape: tuple[int, ...], interval_count: int) -> None:
    patterns, values = shape
    # A step adds up a square matrix, pattern by pattern, and factors it.
    step_products = patterns * (values + 20) ** 2 + 2 * values**3
    if interval_count * _STEPS_PER_END * step_products > _MOST_PRODUCTS:
        raise InvalidInput(
            f"{patterns:,} kinds of responses for {values:,} values are too many for intervals of "
            f"{interval_count:,} numbers unless a number is given: of repetitions, or scores for "
            "one mean"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _LikelihoodRegion:
    """All mixtures of sufficient likelihood, if weights may be as much as ``below`` under zero.

    Such weights are (1 + Σ below) · w - below, where w has no weight below zero.
    """

    table: Floats
    """The table of likelihoods, transformed for w."""
    counts: Floats
    weights: Floats
    """The maximum-likelihood w."""
    start: Floats
    floor: float
    below: Floats

    def least(self, scores: Floats) -> tuple[float, float]:
        """Return a lower bound on their means, and at most how far it is below the least mean."""
        scores = (1 + self.below.sum()) * scores - float(scores @ self.below)
        low, span = float(scores.min()), float(np.ptp(scores))
        if span == 0:
            return low, 0.0
        scaled = (scores - low) / span
        problem = ProfileProblem(self.table, self.counts, scaled, self.floor)
        result = problem.least(self.start, float(scaled @ self.weights))
        return low + span * result.bound, span * (result.attained - result.bound)


def _probability_region(mixture: EstimatedMixture, log_likelihood_drop: float) -> _LikelihoodRegion:
    table, counts = mixture.observations.table, mixture.observations.counts
    weights, floor = mixture.fit.weights, mixture.fit.log_likelihood - log_likelihood_drop
    start = interior_start(table, counts, weights, floor)
    return _LikelihoodRegion(table, counts, weights, start, floor, np.zeros(len(weights)))


def _relaxed_region(region: _LikelihoodRegion, log_likelihood_drop: float) -> _LikelihoodRegion:
    """Extend a region to weights that are some standard errors below zero."""
    table, counts = region.table, region.counts
    below = np.minimum(_ERRORS_BELOW_ZERO * _standard_errors(region), _MOST_BELOW_ZERO)
    stretch = 1 + float(below.sum())
    mixed: Floats = stretch * table - (table @ below)[:, None]
    start: Floats = (region.start + below) / stretch
    fit = fit_mixture(mixed, counts, gap=_RELAXED_GAP, steps=STEPS, start=start)
    floor = fit.log_likelihood - log_likelihood_drop
    interior = interior_start(mixed, counts, fit.weights, floor)
    return _LikelihoodRegion(mixed, counts, fit.weights, interior, floor, below)


def _standard_errors(region: _LikelihoodRegion) -> Floats:
    """Compute the standard errors of the weights from the observed information.

    They are very large where the responses do not determine the weights.
    """
    size, total = len(region.weights), float(region.counts.sum())
    weights = (1 - _UNIFORM_SHARE) * region.weights + _UNIFORM_SHARE / size
    information = total * observed_information(
        region.table, region.counts / total, region.table @ weights
    )
    scale = float(np.trace(information))
    # The sum of the weights is certain, and nothing is known to more digits than a double has.
    information += scale * np.ones((size, size)) + _RELATIVE_RIDGE * scale * np.eye(size)
    return np.sqrt(np.maximum(np.diag(np.linalg.inv(information)), 0.0))


def _least_by_group(scores: Floats, groups: NDArray[np.intp]) -> Floats:
    """Return the least score of each group of values."""
    result = np.full(int(groups.max()) + 1, np.inf)
    np.minimum.at(result, groups, scores)
    return result


# A step goes at most this share of the way to the boundary, and aims at no less than this share
# of the mean complementarity.
_BOUNDARY_SHARE = 0.99
_LEAST_TARGET = 1e-3
_LEAST_MARGIN = 0.01
_SHORT_STEP = 0.6
_BACKTRACK = 0.7
_LEAST_STEP = 1e-9
_MOST_STEPS = 100

# The search ends when the bound is within this share of its distance from the estimate.
_RELATIVE_GAP = 1e-3
_ROUNDING = 1e-10

# A search starts where this share of the allowed drop of the likelihood remains.
_START_MARGIN = 0.7


@dataclass(frozen=True, slots=True)
class ProfileBound:
    """The least mean of mixtures of sufficient likelihood, from both sides."""

    attained: float
    """A mixture of sufficient likelihood has this mean."""
    bound: float
    """No such mixture has a lower mean."""


@dataclass(frozen=True, eq=False)
class ProfileProblem:
    """Mixtures whose log-likelihood is at least ``floor``, and scores between 0 and 1."""

    table: Floats
    counts: Floats
    scores: Floats
    floor: float

    @cached_property
    def shares(self) -> Floats:
        """The share of the observations that each row is."""
        return np.asarray(self.counts / self.counts.sum())

    def margin(self, mixed: Floats) -> float:
        """Return how far the log-likelihood per observation is above the floor."""
        if not (mixed > 0).all():
            return -math.inf
        return float(self.shares @ np.log(mixed)) - self.floor / float(self.counts.sum())

    def bound(self, gradient: Floats, margin: float, multiplier: float) -> float:
        """Return a lower bound on the means of all mixtures of sufficient likelihood."""
        return float((self.scores - multiplier * (gradient - math.exp(-margin))).min()) - _ROUNDING

    def least(self, start: Floats, estimate: float) -> ProfileBound:
        """Minimize the mean from an interior mixture without zeros, until the bound is close."""
        iterate = _first_iterate(self, start)
        attained, bound = float(self.scores @ start), 0.0
        for _ in range(_MOST_STEPS):
            attained = min(attained, float(self.scores @ iterate.weights))
            bound = max(bound, self.bound(iterate.gradient, iterate.margin, iterate.multiplier))
            if attained - bound <= max(_RELATIVE_GAP * (estimate - bound), 2 * _ROUNDING):
                break
            # Where rounding stops the search, it restarts from further inside.
            iterate = iterate.next() or _first_iterate(self, (iterate.weights + start) / 2)
        return ProfileBound(attained, min(bound, attained))


def interior_start(table: Floats, counts: Floats, weights: Floats, floor: float) -> Floats:
    """Return a mixture without zeros near the maximum, well above the floor."""
    maximum = float(counts @ np.log(table @ weights))
    share, size = 0.1, len(weights)
    while True:
        mixture: Floats = (1 - share) * weights + share / size
        mixed = table @ mixture
        if (mixed > 0).all() and float(counts @ np.log(mixed)) >= floor + _START_MARGIN * (
            maximum - floor
        ):
            return mixture
        share /= 4


@dataclass(frozen=True, eq=False)
class _Iterate:
    """An iterate of the interior-point method: a mixture, and its dual variables."""

    problem: ProfileProblem
    weights: Floats
    slack: Floats
    """The multipliers of the condition that no weight is negative."""
    multiplier: float
    """The multiplier of the floor: the mean, per unit of log-likelihood."""
    sum_multiplier: float
    """The multiplier of the condition that the weights sum to one."""
    stuck: bool
    """Whether the last step was short: then the next one leads away from the edges."""

    @cached_property
    def mixed(self) -> Floats:
        return np.asarray(self.problem.table @ self.weights)

    @cached_property
    def gradient(self) -> Floats:
        return likelihood_gradient(self.problem.table, self.problem.shares / self.mixed)

    @cached_property
    def margin(self) -> float:
        return self.problem.margin(self.mixed)

    def next(self) -> _Iterate | None:
        """Step towards the solution (Mehrotra 1992); return None at the limit of rounding."""
        problem, weights, slack, multiplier, margin = (
            self.problem, self.weights, self.slack, self.multiplier, self.margin
        )  # fmt: skip
        if not margin > 0:
            return None
        size = len(weights)
        hessian = multiplier * observed_information(problem.table, problem.shares, self.mixed)
        hessian += (multiplier / margin) * np.outer(self.gradient, self.gradient)
        hessian[np.diag_indices(size)] += slack / weights
        if not np.isfinite(hessian).all():
            return None
        solve = cholesky_solver(hessian)
        ones = solve(np.ones(size))
        dual_residual = problem.scores - multiplier * self.gradient - slack + self.sum_multiplier

        def newton_direction(target: float) -> tuple[Floats, Floats, float, float, float]:
            margin_residual = target / margin - multiplier
            right = target / weights - slack - dual_residual + self.gradient * margin_residual
            direction = solve(right)
            sum_direction = float(direction.sum() / ones.sum())
            direction = direction - sum_direction * ones
            slack_direction = (target - slack * direction) / weights - slack
            margin_change = float(self.gradient @ direction)
            multiplier_direction = (target - multiplier * margin_change) / margin - multiplier
            dual_step = step_to_boundary(
                np.append(slack, multiplier), np.append(slack_direction, multiplier_direction)
            )
            return direction, slack_direction, multiplier_direction, sum_direction, dual_step

        mean_complementarity = (float(weights @ slack) + multiplier * margin) / (size + 1)
        target = mean_complementarity
        if not self.stuck:
            direction, slack_direction, multiplier_direction, _, dual_step = newton_direction(0.0)
            longest_step = step_to_boundary(weights, direction)
            primal_step, margin_after = self._within(direction, longest_step, 0.0)
            next_slack = slack + dual_step * slack_direction
            next_multiplier = multiplier + dual_step * multiplier_direction
            predicted = float((weights + primal_step * direction) @ next_slack)
            predicted = (predicted + next_multiplier * max(margin_after, 0.0)) / (size + 1)
            reduction = min(1.0, predicted / mean_complementarity) ** 3
            target = mean_complementarity * max(_LEAST_TARGET, reduction)
        direction, slack_direction, multiplier_direction, sum_direction, dual_step = (
            newton_direction(target)
        )
        longest_step = _BOUNDARY_SHARE * step_to_boundary(weights, direction)
        primal_step, margin_after = self._within(direction, longest_step, _LEAST_MARGIN * margin)
        dual_step *= _BOUNDARY_SHARE
        if margin_after <= 0:
            return None
        moved_weights = weights + primal_step * direction
        return _Iterate(
            problem,
            moved_weights / moved_weights.sum(),
            slack + dual_step * slack_direction,
            multiplier + dual_step * multiplier_direction,
            self.sum_multiplier + dual_step * sum_direction,
            min(primal_step, dual_step) < _SHORT_STEP,
        )

    def _within(self, direction: Floats, step: float, least_margin: float) -> tuple[float, float]:
        """Return the largest step that keeps this margin, by backtracking, and the margin there."""
        mixed_change = self.problem.table @ direction
        while step > _LEAST_STEP:
            margin = self.problem.margin(self.mixed + step * mixed_change)
            if margin > least_margin:
                return step, margin
            step *= _BACKTRACK
        return 0.0, 0.0


def _first_iterate(problem: ProfileProblem, start: Floats) -> _Iterate:
    """Start with multipliers for which all complementarity products are equal."""
    margin = problem.margin(problem.table @ start)
    target = max(float(problem.scores @ start), 1e-3) / (len(start) + 1)
    return _Iterate(problem, start, target / start, target / margin, 0.0, stuck=False)
