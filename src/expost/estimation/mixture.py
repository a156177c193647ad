r"""The weights of a mixture that make what was observed likeliest, with a bound on what is missed.

.. math:: \max_{p \ge 0,\, \sum p = 1} F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j

F is concave, and for every p, whatever found it,

.. math:: \max F - F(p) \le n \log \max_j \frac1n \sum_i n_i \frac{L_{ij}}{\sum_k L_{ik}\, p_k}

Some steps of EM, then Newton's with bounds (after Kim, Carbonetto, Stephens and Anitescu 2020).
No step ever lowers F. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mixture", "curvature", "likeliest", "nonnegative_minimum"]

Floats = NDArray[np.float64]

# EM is quick far from the maximum, and slow near it.
_EM_STEPS = 10
_HALVINGS = 30
_SUFFICIENT = 1e-4

# Relative to the mean curvature: what the responses do not tell must not be solved for.
_RIDGE = 1e-10
_EXCHANGES = 200

# Products of this many factors are done before a library for matrices would start threads, which
# on a busy machine take longer to meet than to multiply.
_BLOCK = 1 << 19
_FEWEST_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Weights that sum to one, and how good they are."""

    weights: Floats
    log_likelihood: float
    gap: float
    """The maximum is above the log-likelihood by at most this, in nats."""
    steps: int


def likeliest(
    table: Floats,
    counts: Floats,
    *,
    gap: float,
    steps: int,
    start: Floats | None = None,
) -> Mixture:
    """Climb until the gap is small enough, or for so many steps.

    ``table`` has a row of likelihoods per observation, none of them all zero, and ``counts`` says
    how often each was made. ``start`` has no zeros; without one it is flat.
    """
    total = float(counts.sum())
    shares = counts / total
    weights = np.full(table.shape[1], 1 / table.shape[1]) if start is None else start
    em_steps = _EM_STEPS if start is None else 0
    for step in range(steps + 1):
        mixed = table @ weights
        slopes: Floats = (shares / mixed) @ table
        missed = total * math.log(max(1.0, float(slopes.max())))
        if missed <= gap or step == steps:
            break
        newton = None if step < em_steps else _newton(table, shares, weights, mixed, slopes)
        weights = weights * slopes if newton is None else newton
        weights = weights / weights.sum()
    return Mixture(weights, float(counts @ np.log(mixed)), missed, step)


def _newton(
    table: Floats, shares: Floats, weights: Floats, mixed: Floats, slopes: Floats
) -> Floats | None:
    """Newton's step for -Σ share · log(mixed) + Σ weight, which needs no constraint on the sum.

    None where it does not go up.
    """
    open_ = np.flatnonzero((weights > 0) | (slopes > 1))
    now = weights[open_]
    curved = curvature(table, shares, mixed, open_)
    curved[np.diag_indices_from(curved)] += _RIDGE * curved.trace() / len(open_)
    there = nonnegative_minimum(curved, curved @ now + slopes[open_] - 1, now > 0)
    if there is None:
        return None
    move = np.zeros_like(weights)
    move[open_] = there - now
    slope = float(move @ (1 - slopes))
    change = (table @ move) / mixed
    length, sum_ = 1.0, float(move.sum())
    if not slope < 0:
        return None
    for _ in range(_HALVINGS):
        if length * float(change.min()) > -1:
            fall = length * sum_ - float(shares @ np.log1p(length * change))
            if fall <= _SUFFICIENT * length * slope:
                return np.maximum(weights + length * move, 0.0)
        length /= 2
    return None


def curvature(table: Floats, shares: Floats, mixed: Floats, columns: NDArray[np.intp]) -> Floats:
    """Σ share · L_j L_k / mixed² over the rows, for some columns."""
    result = np.zeros((len(columns), len(columns)))
    size = max(_FEWEST_ROWS, _BLOCK // len(columns) ** 2)
    factors = np.sqrt(shares) / mixed
    everything = len(columns) == table.shape[1]
    for first in range(0, len(table), size):
        rows = table[first : first + size]
        scaled = (rows if everything else rows[:, columns]) * factors[first : first + size, None]
        result += scaled.T @ scaled
    return result


def nonnegative_minimum(curved: Floats, linear: Floats, free: NDArray[np.bool_]) -> Floats | None:
    """The x ≥ 0 with the least x·curved·x/2 - linear·x; None if it is not found.

    Variables change sides all at once while that helps, else one by one (Kim and Park 2011). It
    starts with ``free`` ones, and the others at zero.
    """
    free = free.copy()
    fewest, patience = len(linear) + 1, 3
    for _ in range(_EXCHANGES):
        x = np.zeros_like(linear)
        try:
            x[free] = np.linalg.solve(curved[np.ix_(free, free)], linear[free])
        except np.linalg.LinAlgError:
            return None
        wrong = np.where(free, x < 0, curved @ x < linear)
        number = int(wrong.sum())
        if not number:
            return x
        if number < fewest:
            fewest, patience = number, 3
        elif patience:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return None
