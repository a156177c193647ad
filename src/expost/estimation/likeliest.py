r"""The maximum-likelihood weights of a mixture, with a bound on the distance from the maximum.

.. math:: \max_{p \ge 0,\, \sum p = 1} F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j

F is concave, and for every p, however it was found,

.. math:: \max F - F(p) \le n \log \max_j \frac1n \sum_i n_i \frac{L_{ij}}{\sum_k L_{ik}\, p_k}

The search is an interior-point method, which takes about ten steps whether or not the values can
be told apart. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expost._types import Floats

__all__ = ["Likeliest", "curvature", "likeliest", "log_up", "positive_solver", "reach", "slopes_of"]


# A step goes at most this share of the way to the edge, and aims at no less than this share of
# the mean product.
_EDGE = 0.99
_LEFT = 1e-3
# No product is smaller than this share of their mean.
_CENTRAL = 1e-4
_FIRST_SLACK = 0.01
_HALVINGS = 30
_SUFFICIENT = 1e-4

# Relative to a diagonal of ones. Steps need not be exact: the next one makes up for an error.
_RIDGE = 1e-15

# After this many steps in a row without a smaller gap, rounding has stopped the search.
_PATIENCE = 20

# Products are done in blocks too small for a matrix library to start threads: on a busy machine
# these wait for each other longer than they multiply. With many columns they are worth it.
_BLOCK = 1 << 18
_MANY_COLUMNS = 256
_ROWS_OF_MANY = 256
_FACTORED = 48

# This many rows are summed at a time, so that rounding errors grow slowly with their number.
_SUMMED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Likeliest:
    """Weights that sum to one, and how good they are."""

    weights: Floats
    log_likelihood: float
    gap: float
    """The maximum is above the log-likelihood by at most this, in nats. Rounded up."""
    steps: int


def likeliest(
    table: Floats,
    counts: Floats,
    *,
    gap: float,
    steps: int,
    start: Floats | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Likeliest:
    """Search until the gap is small enough, for so many steps, or until rounding stops it.

    ``table`` has a row of likelihoods per observation, the largest of which is one, and ``counts``
    says how often each was made. Entries may be negative, if ``start`` makes all rows positive.
    ``start`` has no zeros; without one it is flat. ``progress`` is told how many steps were
    taken, and the smallest gap so far.

    >>> table, counts = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([60.0, 40.0])
    >>> likeliest(table, counts, gap=1e-9, steps=100).weights.round(3).tolist()
    [0.8, 0.2]
    """
    total = float(counts.sum())
    shares = counts / total
    weights = np.full(table.shape[1], 1 / table.shape[1]) if start is None else start
    slack: Floats | None = None
    best, found_at = Likeliest(weights, -math.inf, math.inf, 0), 0
    for step in range(steps + 1):
        mixed = table @ weights
        slopes = slopes_of(table, shares / mixed)
        sum_ = float(weights.sum())
        missed = total * log_up(float(slopes.max()) * sum_, table.shape)
        if missed < best.gap:
            height = float(counts @ np.log(mixed / sum_))
            best, found_at = Likeliest(weights / sum_, height, missed, step), step
        if progress is not None:
            progress(step, best.gap)
        if best.gap <= gap or step == steps or step - found_at > _PATIENCE:
            break
        if slack is None:
            slack = np.maximum(1 - slopes, _FIRST_SLACK)
        moved = _step(table, shares, weights, slack, mixed, slopes)
        if moved is None:
            break
        weights, slack = moved
    return Likeliest(best.weights, best.log_likelihood, best.gap, step)


def slopes_of(table: Floats, factors: Floats) -> Floats:
    """The sums of the columns after each row is multiplied by its factor."""
    result = np.zeros(table.shape[1])
    for first in range(0, len(table), _SUMMED):
        some = slice(first, first + _SUMMED)
        result += factors[some] @ table[some]
    return result


def log_up(slope: float, shape: tuple[int, ...]) -> float:
    """An upper bound on the logarithm of the largest slope, given its rounding error."""
    rows, columns = shape
    roundings = columns + min(rows, _SUMMED) + rows // _SUMMED + 16
    return math.log(max(1.0, slope)) + roundings * 1.01 * 2.0**-53


def _step(
    table: Floats, shares: Floats, weights: Floats, slack: Floats, mixed: Floats, slopes: Floats
) -> tuple[Floats, Floats] | None:
    """Towards slack = 1 - slopes and weights · slack = target for all values (Mehrotra 1992).

    These are the conditions for a minimum of -Σ share · log(mixed) + Σ weight - target · Σ log
    weight, which needs no constraint on the sum. None if no step decreases it, which happens at
    the limit of rounding.
    """
    size = len(weights)
    curved = curvature(table, shares, mixed)
    curved[np.diag_indices(size)] += slack / weights
    solve = positive_solver(curved)
    mean = float(weights @ slack) / size
    # A trial step straight to the edge: its length gives the target, and how the products bend.
    move = solve(slopes - 1)
    turn = -slack - slack * move / weights
    ahead = (weights + reach(weights, move) * move) @ (slack + reach(slack, turn) * turn)
    target = mean * max(_LEFT, (float(ahead) / size / mean) ** 3)
    for bend, tries in ((move * turn, 1), (np.zeros(size), _HALVINGS)):
        goal = target - bend
        move = solve(slopes - 1 + goal / weights)
        turn = (goal - slack * move) / weights - slack
        more = table @ move
        change, relative = more / mixed, move / weights
        length = _EDGE * min(reach(weights, move), reach(slack, turn), reach(mixed, more))
        slope = float(move @ (1 - slopes - target / weights))
        for _ in range(tries):
            fall = (
                length * float(move.sum())
                - float(shares @ np.log1p(length * change))
                - target * float(np.log1p(length * relative).sum())
            )
            if fall <= _SUFFICIENT * length * slope:
                weights = weights + length * move
                slack = slack + length * turn
                least = _CENTRAL * float(weights @ slack) / size
                return weights, np.maximum(slack, least / weights)
            length /= 2
    return None


def reach(numbers: Floats, move: Floats) -> float:
    """How many times the move, at most once, positive numbers can go before one becomes zero."""
    down = move < 0
    return min(1.0, float((-numbers[down] / move[down]).min(initial=1.0)))


def positive_solver(curved: Floats) -> Callable[[Floats], Floats]:
    """A function that solves equations with a positive definite matrix, by Cholesky in blocks.

    Each block is small enough to be done without threads, as in :func:`curvature`.
    """
    scale = 1 / np.sqrt(np.diag(curved))
    rest = curved * scale * scale[:, None]
    rest[np.diag_indices_from(rest)] += _RIDGE
    blocks: list[tuple[slice, Floats, Floats]] = []
    for first in range(0, len(rest), _FACTORED):
        here, below = slice(first, first + _FACTORED), slice(first + _FACTORED, None)
        root = np.asarray(np.linalg.inv(_root(rest[here, here])), dtype=np.float64)
        column = rest[below, here] @ root.T
        rest[below, below] -= column @ column.T
        blocks.append((here, root, column))

    def solve(right: Floats) -> Floats:
        x = scale * right
        for here, root, column in blocks:
            x[here] = root @ x[here]
            x[here.stop :] -= column @ x[here]
        for here, root, column in reversed(blocks):
            x[here] = root.T @ (x[here] - column.T @ x[here.stop :])
        return scale * x

    return solve


def _root(square: Floats) -> Floats:
    """The Cholesky factor; the diagonal is raised if rounding made the matrix indefinite."""
    ridge = _RIDGE
    while True:
        try:
            return np.asarray(np.linalg.cholesky(square))
        except np.linalg.LinAlgError:
            ridge *= 100
            square = square + ridge * np.eye(len(square))


def curvature(table: Floats, shares: Floats, mixed: Floats) -> Floats:
    """Σ share · L_j L_k / mixed² over the rows."""
    columns = table.shape[1]
    result = np.zeros((columns, columns))
    size = _BLOCK // columns**2 if columns <= _MANY_COLUMNS else _ROWS_OF_MANY
    factors = np.sqrt(shares) / mixed
    for first in range(0, len(table), size):
        some = slice(first, first + size)
        scaled = table[some] * factors[some, None]
        result += scaled.T @ scaled
    return result
