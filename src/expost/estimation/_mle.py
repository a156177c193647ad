r"""Maximum likelihood for a mixture, a bound on the distance from the maximum, and identifiability.

.. math:: \max_{p \ge 0,\, \sum p = 1} F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j

F is concave, and for every p, however it was found,

.. math:: \max F - F(p) \le n \log \max_j \frac1n \sum_i n_i \frac{L_{ij}}{\sum_k L_{ik}\, p_k}

The search is an interior-point method, which takes about ten steps whether or not the values can
be told apart. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.estimation._observations import Observations
from expost.estimation._support import ResponseLikelihoods
from expost.numbers import blocks, read_only

__all__ = [
    "STEPS",
    "EstimatedMixture",
    "MixtureFit",
    "cholesky_solver",
    "estimate_mixture",
    "fit_mixture",
    "identifiable_basis",
    "likelihood_gradient",
    "log_upper_bound",
    "observed_information",
    "outside_span",
    "step_to_boundary",
]


# A step goes at most this share of the way to the boundary, and aims at no less than this share
# of the mean complementarity.
_BOUNDARY_SHARE = 0.99
_LEAST_TARGET = 1e-3
# No product is smaller than this share of their mean.
_LEAST_COMPLEMENTARITY = 1e-4
_FIRST_SLACK = 0.01
_HALVINGS = 30
_SUFFICIENT = 1e-4

# Relative to a diagonal of ones. Steps need not be exact: the next one makes up for an error.
_RIDGE = 1e-15

# After this many steps in a row without a smaller gap, rounding has stopped the search.
_PATIENCE = 20

# Products are done in blocks too small for a matrix library to start threads: on a busy machine
# these wait for each other longer than they multiply. With many columns they are worth it.
_BLOCK_ENTRIES = 1 << 18
_WIDE = 256
_WIDE_BLOCK_ROWS = 256
_FACTOR_BLOCK = 48

# This many rows are summed at a time, so that rounding errors grow slowly with their number.
_SUMMED_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class MixtureFit:
    """Mixture weights that sum to one, and a bound on their distance from the maximum."""

    weights: Floats
    log_likelihood: float
    #: The maximum is above the log-likelihood by at most this, in nats. Rounded up.
    gap: float
    steps: int


def fit_mixture(
    table: Floats,
    counts: Floats,
    *,
    gap: float,
    steps: int,
    start: Floats | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> MixtureFit:
    """Maximize the likelihood until the gap is small enough, or rounding stops the search.

    Args:
        table: A row of likelihoods per observation. The largest entry of a row is one. Entries may
            be negative, if ``start`` makes all rows positive.
        counts: The number of times that each observation was made.
        gap: The search ends when the maximum is at most this far above, in nats.
        steps: The largest number of steps.
        start: Positive weights to start from; uniform by default.
        progress: A function that is called with the steps so far and the smallest gap.

    >>> table, counts = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([60.0, 40.0])
    >>> fit_mixture(table, counts, gap=1e-9, steps=100).weights.round(3).tolist()
    [0.8, 0.2]
    """
    total = float(counts.sum())
    shares = counts / total
    weights = np.full(table.shape[1], 1 / table.shape[1]) if start is None else start
    slack: Floats | None = None
    best = MixtureFit(weights, -math.inf, math.inf, 0)
    for step in range(steps + 1):
        mixed = table @ weights
        if step and not mixed.min() > 0:
            break  # rounding: a row of negligible weight is at zero
        gradient = likelihood_gradient(table, shares / mixed)
        weight_sum = float(weights.sum())
        current_gap = total * log_upper_bound(float(gradient.max()) * weight_sum, table.shape)
        if current_gap < best.gap:
            log_likelihood = float(counts @ np.log(mixed / weight_sum))
            best = MixtureFit(weights / weight_sum, log_likelihood, current_gap, step)
        if progress is not None:
            progress(step, best.gap)
        if best.gap <= gap or step == steps or step - best.steps > _PATIENCE:
            break
        if slack is None:
            slack = np.maximum(1 - gradient, _FIRST_SLACK)
        next_iterate = _step(table, shares, weights, slack, mixed, gradient)
        if next_iterate is None:
            break
        weights, slack = next_iterate
    return replace(best, steps=step)


def likelihood_gradient(table: Floats, factors: Floats) -> Floats:
    """Sum the columns, after each row is multiplied by its factor."""
    result = np.zeros(table.shape[1])
    for rows in blocks(len(table), _SUMMED_ROWS):
        result += factors[rows] @ table[rows]
    return result


def log_upper_bound(slope: float, shape: tuple[int, ...]) -> float:
    """Bound the logarithm of the largest slope from above, given its rounding error."""
    rows, columns = shape
    roundings = columns + min(rows, _SUMMED_ROWS) + rows // _SUMMED_ROWS + 16
    return math.log(max(1.0, slope)) + roundings * 1.01 * 2.0**-53


def _step(
    table: Floats, shares: Floats, weights: Floats, slack: Floats, mixed: Floats, gradient: Floats
) -> tuple[Floats, Floats] | None:
    """Step towards slack = 1 - gradient and weights · slack = target, by value (Mehrotra 1992).

    These are the conditions for a minimum of -Σ share · log(mixed) + Σ weight - target · Σ log
    weight, which needs no constraint on the sum. None if no step decreases it, which happens at
    the limit of rounding.
    """
    size = len(weights)
    hessian = observed_information(table, shares, mixed)
    hessian[np.diag_indices(size)] += slack / weights
    solve = cholesky_solver(hessian)
    mean_complementarity = float(weights @ slack) / size
    # A trial step straight to the edge: its length gives the target, and how the products bend.
    direction = solve(gradient - 1)
    slack_direction = -slack - slack * direction / weights
    predicted = (weights + step_to_boundary(weights, direction) * direction) @ (
        slack + step_to_boundary(slack, slack_direction) * slack_direction
    )
    target = mean_complementarity * max(
        _LEAST_TARGET, (float(predicted) / size / mean_complementarity) ** 3
    )
    for correction, tries in ((direction * slack_direction, 1), (np.zeros(size), _HALVINGS)):
        targets = target - correction
        direction = solve(gradient - 1 + targets / weights)
        slack_direction = (targets - slack * direction) / weights - slack
        mixed_change = table @ direction
        relative_mixed, relative_weights = mixed_change / mixed, direction / weights
        length = _BOUNDARY_SHARE * min(
            step_to_boundary(weights, direction),
            step_to_boundary(slack, slack_direction),
            step_to_boundary(mixed, mixed_change),
        )
        slope = float(direction @ (1 - gradient - target / weights))
        for _ in range(tries):
            decrease = (
                length * float(direction.sum())
                - float(shares @ np.log1p(length * relative_mixed))
                - target * float(np.log1p(length * relative_weights).sum())
            )
            if decrease <= _SUFFICIENT * length * slope:
                weights = weights + length * direction
                slack = slack + length * slack_direction
                least_product = _LEAST_COMPLEMENTARITY * float(weights @ slack) / size
                return weights, np.maximum(slack, least_product / weights)
            length /= 2
    return None


def step_to_boundary(positive: Floats, direction: Floats) -> float:
    """Return the largest step, at most 1, after which no number is negative."""
    decreasing = direction < 0
    return min(1.0, float((-positive[decreasing] / direction[decreasing]).min(initial=1.0)))


def cholesky_solver(matrix: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves equations with a positive definite matrix (blocked Cholesky).

    Each block is small enough to be done without threads, as in :func:`observed_information`.
    """
    scale = 1 / np.sqrt(np.diag(matrix))
    remainder = matrix * scale * scale[:, None]
    remainder[np.diag_indices_from(remainder)] += _RIDGE
    factors: list[tuple[slice, Floats, Floats]] = []
    for block in blocks(len(remainder), _FACTOR_BLOCK):
        below = slice(block.stop, None)
        root = np.asarray(np.linalg.inv(_root(remainder[block, block])), dtype=np.float64)
        column = remainder[below, block] @ root.T
        remainder[below, below] -= column @ column.T
        factors.append((block, root, column))

    def solve(right: Floats) -> Floats:
        x = scale * right
        for block, root, column in factors:
            x[block] = root @ x[block]
            x[block.stop :] -= column @ x[block]
        for block, root, column in reversed(factors):
            x[block] = root.T @ (x[block] - column.T @ x[block.stop :])
        return scale * x

    return solve


def _root(matrix: Floats) -> Floats:
    """Return the Cholesky factor, with a raised diagonal if rounding made the matrix indefinite."""
    ridge = _RIDGE
    while True:
        try:
            return np.asarray(np.linalg.cholesky(matrix))
        except np.linalg.LinAlgError:
            ridge *= 100
            matrix = matrix + ridge * np.eye(len(matrix))


def observed_information(table: Floats, shares: Floats, mixed: Floats) -> Floats:
    """Compute Σ share · L_j L_k / mixed² over the rows."""
    columns = table.shape[1]
    result = np.zeros((columns, columns))
    block_rows = _BLOCK_ENTRIES // columns**2 if columns <= _WIDE else _WIDE_BLOCK_ROWS
    factors = np.sqrt(shares) / mixed
    for rows in blocks(len(table), block_rows):
        scaled = table[rows] * factors[rows, None]
        result += scaled.T @ scaled
    return result


# A direction in which the likelihood has less relative curvature than this is not identified.
_FLAT_CURVATURE = 1e-10
_OUTSIDE = 1e-6
_MOST_POSSIBLE = 1000

# A search from the inside leaves less than this where the true maximum is zero.
_NEAR_ZERO = 1e-6


def identifiable_basis(
    observations: Observations, weights: Floats, query_likelihoods: Iterable[ResponseLikelihoods]
) -> Floats:
    """Return an orthonormal basis of the linear functions that the responses determine.

    It spans the rows of likelihoods, and the sum of all weights, which is one. Responses that no
    subject gave count as well, because their absence is informative. But it does not show how
    values with equal likelihoods share their probability.
    """
    groups = observations.groups
    size = len(groups)
    group_basis = _group_basis(groups, weights)
    response_rows: list[Floats] = []
    for likelihoods in query_likelihoods:
        if likelihoods.separating is not None:
            # There may be astronomically many responses, which together tell all values apart.
            separating = likelihoods.separating
            if len(separating) == size and (separating.sum(axis=1) == 1).all():
                return group_basis
            response_rows += list(separating)
            continue
        count = min(likelihoods.response_count, max(0, _MOST_POSSIBLE - len(response_rows)))
        response_rows += [np.exp(likelihoods.logs(position)) for position in range(count)]
    gram = np.ones((size, size))
    gram += _mean_outer_product(observations.table, observations.counts)[np.ix_(groups, groups)]
    if response_rows:
        gram += _mean_outer_product(
            (np.array(response_rows) @ group_basis) @ group_basis.T, np.ones(len(response_rows))
        )
    sizes, directions = np.linalg.eigh(gram)
    return np.asarray(directions[:, sizes > _FLAT_CURVATURE * sizes[-1]])


def outside_span(basis: Floats, scores: Floats) -> NDArray[np.bool_]:
    """Mark the columns that are not combinations of the basis."""
    residual = scores - basis @ (basis.T @ scores)
    lengths = np.linalg.norm(scores, axis=0)
    return np.asarray(np.linalg.norm(residual, axis=0) > _OUTSIDE * np.where(lengths, lengths, 1.0))


def _mean_outer_product(rows: Floats, counts: Floats) -> Floats:
    return observed_information(rows, counts / counts.sum(), rows.mean(axis=1))


def _group_basis(groups: NDArray[np.intp], weights: Floats) -> Floats:
    """Return an orthonormal basis of functions that are constant on groups of positive weight."""
    positive = weights[groups] > _NEAR_ZERO
    labels = np.where(positive, groups, len(weights) + np.arange(len(groups)))
    _, labels = np.unique(labels, return_inverse=True)
    members = np.eye(labels.max() + 1)[labels]
    return np.asarray(members / np.sqrt(members.sum(axis=0)))


STEPS = 1000

# A replicate with this gap, in nats, is off by a few hundredths of a standard error.
_REPLICATE_GAP = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedMixture:
    """Observations, their maximum-likelihood weights, and what they identify."""

    observations: Observations
    fit: MixtureFit
    #: Orthonormal columns; the responses determine exactly their combinations.
    basis: Floats

    @property
    def probabilities(self) -> Floats:
        """One probability per value; values of one group get equal shares."""
        return self._shared(self.fit.weights)

    def unidentified(self, scores: Floats) -> NDArray[np.bool_]:
        """Mark the means that the responses do not determine; ``scores`` has a column for each."""
        return outside_span(self.basis, scores)

    def bootstrap_replicate(self, generator: np.random.Generator) -> Floats:
        """Estimate probabilities from as many subjects, drawn with replacement."""
        counts, weights = self.observations.counts, self.fit.weights
        total = counts.sum()
        resampled = generator.multinomial(int(total), counts / total)
        observed = resampled > 0
        # Away from the edge, so that every value can get a positive probability again.
        start = np.asarray(0.99 * weights + 0.01 / len(weights), dtype=np.float64)
        table, resampled_counts = self.observations.table[observed], resampled[observed]
        fit = fit_mixture(
            table, resampled_counts.astype(np.float64), gap=_REPLICATE_GAP, steps=STEPS, start=start
        )
        return self._shared(fit.weights)

    def _shared(self, weights: Floats) -> Floats:
        groups = self.observations.groups
        return np.asarray((weights / np.bincount(groups))[groups])


def estimate_mixture(
    observations: Observations,
    query_likelihoods: Iterable[ResponseLikelihoods],
    *,
    gap: float,
    steps: int,
    progress: Callable[[int, float], None] | None = None,
) -> EstimatedMixture:
    """Find the maximum-likelihood mixture, and what the responses determine of it."""
    fit = fit_mixture(
        observations.table, observations.counts, gap=gap, steps=steps, progress=progress
    )
    basis = identifiable_basis(observations, fit.weights, query_likelihoods)
    read_only(observations.table, observations.counts, observations.groups, fit.weights, basis)
    return EstimatedMixture(observations, fit, basis)
