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

from expost.domains import Box, Integers
from expost.extrema.kernels import FALLING, FOOT, LOGISTIC, RISING, H, Side
from expost.queries.score_term import Link, ScoreTerm
from expost.rounding import UNIT

__all__ = ["Sides", "Terms", "both_sides"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CELLS = 24
_TINY = 1e-300  # what products too small for doubles can lose, and more


class Terms(NamedTuple):
    """Score terms as arrays: Σ m · link(A x + c)."""

    logistic: NDArray[np.bool_]
    epsilon: tuple[float, ...]
    m: Floats
    A: Floats
    c: Floats

    @classmethod
    def of(cls, counted: Sequence[tuple[ScoreTerm, int]], columns: Sequence[int]) -> Terms:
        """The terms and how often each counts, in some of the coordinates."""
        terms = [term for term, _ in counted]
        return cls(
            logistic=np.array([term.link is Link.LOGISTIC for term in terms], dtype=bool),
            epsilon=tuple(term.epsilon for term in terms),
            m=np.array([times for _, times in counted], dtype=np.float64),
            A=np.array([[term.weights[j] for j in columns] for term in terms], dtype=np.float64),
            c=np.array([term.offset for term in terms], dtype=np.float64),
        )


class Sides(NamedTuple):
    """A box as arrays."""

    lo: Floats
    hi: Floats
    integer: NDArray[np.bool_]

    @classmethod
    def of(cls, box: Box) -> Sides:
        return cls(
            lo=np.array([side.lower for side in box.sides], dtype=np.float64),
            hi=np.array([side.upper for side in box.sides], dtype=np.float64),
            integer=np.array([isinstance(side, Integers) for side in box.sides], dtype=bool),
        )

    def part(self, columns: Sequence[int]) -> Sides:
        return Sides(self.lo[columns], self.hi[columns], self.integer[columns])


def both_sides(terms: Terms, sides: Sides) -> tuple[Side, Side]:
    """The largest sum of the terms over a box, and the largest of its negative."""
    lo, hi, integer = sides
    logistic, epsilon, m, A, c = terms
    n, d = A.shape
    # Coordinates of size 1, by powers of two: nothing is rounded, and no width is too small.
    _, exponent = np.frexp(np.maximum(np.abs(lo), np.abs(hi)))
    exponent = np.where(integer, 0, exponent)
    lo, hi, A = np.ldexp(lo, -exponent), np.ldexp(hi, -exponent), np.ldexp(A, exponent)
    par, unit_error, unit_steepness = _constants(epsilon, logistic.tobytes())
    h = par[:, H]
    sizes = np.abs(A)
    slack = (d + 4) * UNIT * (np.abs(c) + sizes @ np.maximum(np.abs(lo), np.abs(hi))) + _TINY
    steepest = m * unit_steepness
    wall = np.full(n + d, 50 * steepest.max() + 1e-300)
    wall[n:] *= 2 * sizes.sum(axis=0) + 1e-300
    error = m * unit_error
    # A score is within its slack, a link within ``error`` units of roundoff, and the sum of n
    # terms loses n units of the sum of their sizes.
    moved = np.minimum(steepest * slack, 2 * m * h)
    total_error = float((moved + UNIT * (error + (n + 4) * m * h)).sum()) * 1.01

    def one(sign: int) -> Side:
        link, tau, table, grid, heights, lengths = _links(epsilon, logistic.tobytes(), sign)
        return Side(
            link=link,
            par=par,
            m=m,
            error=error,
            A=A if sign > 0 else -A,
            c=c if sign > 0 else -c,
            lo=lo,
            hi=hi,
            integer=integer.astype(np.int64),
            slack=slack,
            tau=tau,
            wall=wall,
            table=table,
            grid=grid,
            heights=heights,
            sizes=lengths,
            total_error=total_error,
        )

    return one(1), one(-1)


@lru_cache(maxsize=256)
def _links(
    epsilon: tuple[float, ...], logistic: bytes, sign: int
) -> tuple[Ints, Floats, Ints, Floats, Floats, Ints]:
    """Kinds of links, their τ, which table each of them uses, and the tables."""
    smooth = np.frombuffer(logistic, dtype=bool)
    link = np.where(smooth, LOGISTIC, RISING if sign > 0 else FALLING).astype(np.int64)
    keys = list(zip(link.tolist(), epsilon, strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    table = np.array([places[key] for key in keys], dtype=np.int64)
    return link, np.where(smooth, 0.0, -float(sign)), table, *_stacked(list(places))


@lru_cache(maxsize=256)
def _constants(epsilon: tuple[float, ...], logistic: bytes) -> tuple[Floats, Floats, Floats]:
    """Parameters of links, their rounding in units of roundoff, and their largest slopes."""
    par = np.array([_parameters(e) for e in epsilon])
    h = par[:, H]
    steepness = np.where(np.frombuffer(logistic, dtype=bool), np.tanh(h / 2), 1 / par[:, FOOT])
    return par, 32 + 24 * h, steepness


@lru_cache(maxsize=4096)
def _parameters(epsilon: float) -> tuple[float, ...]:
    h = epsilon / 2
    cosh = math.cosh(h)
    # ψ'' is largest where cosh u = (C + √(C² + 8))/2.
    peak = math.acosh((cosh + math.hypot(cosh, math.sqrt(8))) / 2)
    return h, math.sinh(h), cosh, math.exp(-h), math.exp(h), 2 / math.expm1(epsilon), peak


def _stacked(keys: Sequence[tuple[int, float]]) -> tuple[Floats, Floats, Ints]:
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
