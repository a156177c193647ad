"""One side of a problem in its normal form: always to maximize, always increasing links.

The response and the side (largest or smallest log-likelihood) are folded into signs. The link of
a logistic query is odd, so its smallest value is the largest one with the affine form negated;
that of a linear query, RISING, becomes FALLING(t) = -RISING(-t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.extrema.kernels import FALLING, LOGISTIC, RISING, Side
from expost.queries.score_term import Link, ScoreTerm
from expost.rounding import UNIT

__all__ = ["Sides", "Term", "evaluation_error", "make_side"]

Floats = NDArray[np.float64]

Term = tuple[ScoreTerm, int]
"""A term and how often it counts."""

_CELLS = 24


class Sides(NamedTuple):
    """A box as arrays."""

    lo: Floats
    hi: Floats
    integer: NDArray[np.bool_]


def make_side(terms: Sequence[Term], sides: Sides, sign: int) -> Side:
    """The largest sum of the terms over a box for sign 1, the largest of its negative for -1."""
    lo, hi, integer = sides
    n, d = len(terms), len(lo)
    rows = [_row(term, sign) for term, _ in terms]
    link = np.array([kind for kind, _ in rows], dtype=np.int64)
    tables = {key: place for place, key in enumerate(dict.fromkeys(rows))}
    par = np.array([_parameters(epsilon) for _, epsilon in rows]).reshape(n, -1)
    m = np.array([times for _, times in terms], dtype=np.float64)
    A = sign * np.array([term.weights for term, _ in terms]).reshape(n, d)
    c = sign * np.array([term.offset for term, _ in terms])
    steepest = m * np.where(link == LOGISTIC, np.tanh(par[:, 0] / 2), 1 / par[:, 5])
    wall = np.full(n + d, 50 * steepest.max(initial=0.0))
    wall[n:] *= 2 * np.abs(A).sum(axis=0)
    grid, heights, sizes = _stacked(tuple(tables))
    return Side(
        link=link,
        par=par,
        m=m,
        error=m * (32 + 8 * par[:, 0]),
        A=np.ascontiguousarray(A),
        c=c,
        lo=lo,
        hi=hi,
        integer=integer,
        slack=(d + 4) * UNIT * (np.abs(c) + np.abs(A) @ np.maximum(np.abs(lo), np.abs(hi))),
        tau=np.array([0.0, -1.0, 1.0])[link],
        wall=wall + 1e-300,
        table=np.array([tables[row] for row in rows], dtype=np.int64),
        grid=grid,
        heights=heights,
        sizes=sizes,
    )


def evaluation_error(side: Side) -> float:
    """How far the computed sum can be from the real one at any point of the box.

    A score is within its slack, a link within (32 + 8h) units of roundoff, and the sum of n terms
    loses n units of the sum of their sizes.
    """
    h = side.par[:, 0]
    steepest = np.where(side.link == LOGISTIC, np.tanh(h / 2), 1 / side.par[:, 5])
    moved = side.m * np.minimum(steepest * side.slack, 2 * h)
    rounded = UNIT * (side.error + (len(h) + 4) * side.m * h)
    return float((moved + rounded).sum()) * 1.01


def _row(term: ScoreTerm, sign: int) -> tuple[int, float]:
    if term.link is Link.LOGISTIC:
        return LOGISTIC, term.epsilon
    return (RISING if sign > 0 else FALLING), term.epsilon


@lru_cache(maxsize=4096)
def _parameters(epsilon: float) -> tuple[float, ...]:
    h = epsilon / 2
    cosh = math.cosh(h)
    # ψ'' is largest where cosh u = (C + √(C² + 8))/2.
    peak = math.acosh((cosh + math.hypot(cosh, math.sqrt(8))) / 2)
    return h, math.sinh(h), cosh, math.exp(-h), math.exp(h), 2 / math.expm1(epsilon), peak


@lru_cache(maxsize=256)
def _stacked(
    keys: tuple[tuple[int, float], ...],
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Points and values of every link and epsilon, as rows of one length."""
    tables = [_table(kind, epsilon) for kind, epsilon in keys]
    sizes = np.array([len(points) for points, _ in tables], dtype=np.int64)
    grid = np.full((len(tables), int(sizes.max(initial=1))), math.inf)
    heights = np.zeros_like(grid)
    for row, (points, values) in enumerate(tables):
        grid[row, : len(points)] = points
        heights[row, : len(points)] = values
    return grid, heights, sizes


@lru_cache(maxsize=4096)
def _table(kind: int, epsilon: float) -> tuple[Floats, Floats]:
    """Where hulls have their knots: closest where the link bends most. They need not be exact."""
    h, sinh, cosh, *_, foot, _ = _parameters(epsilon)
    if kind == FALLING:
        return np.array([1.0]), np.array([h])
    if kind == RISING:
        points = np.geomspace(foot, foot + 2, _CELLS + 1) - foot - 1
        points = np.linspace(-1, 1, _CELLS + 1) if foot > 1 else points
        return points, np.log1p((1 + points) / foot) - h
    u = np.linspace(0, h + 16, 2001)
    e = np.exp(-u)
    bent = np.sqrt(2 * sinh * e * (1 - e * e)) / (e * (e + 2 * cosh) + 1)
    amount = np.concatenate([[0.0], np.cumsum(bent[1:] + 1e-3 * bent.max())])
    right = np.interp(np.linspace(0, amount[-1], _CELLS + 1), amount, u)
    e, low = np.exp(-right), math.exp(-h)
    near = np.where(right >= h, e * math.exp(h), low / e)
    values = np.minimum(right, h) + np.log((1 + e * low) / (1 + near))
    return np.concatenate([-right[:0:-1], right]), np.concatenate([-values[:0:-1], values])
