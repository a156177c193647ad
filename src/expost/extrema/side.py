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
from expost.extrema.kernels import FALLING, FOOT, LOGISTIC, RISING, H, PackedSide, pack
from expost.queries.score_term import Link, ScoreTerm

__all__ = ["Sides", "Terms", "both_sides"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CELLS = 24


class Terms(NamedTuple):
    """Score terms as arrays: Σ m · link(A x + c)."""

    logistic: tuple[bool, ...]
    epsilon: tuple[float, ...]
    m: Floats
    A: Floats
    c: Floats

    @classmethod
    def of(cls, counted: Sequence[tuple[ScoreTerm, int]], columns: Sequence[int]) -> Terms:
        """The terms and how often each counts, in some of the coordinates."""
        terms = [term for term, _ in counted]
        smooth = Link.LOGISTIC
        return cls(
            logistic=tuple([term.link is smooth for term in terms]),
            epsilon=tuple([term.epsilon for term in terms]),
            m=np.array([times for _, times in counted], dtype=np.float64),
            A=np.array([term.weights for term in terms], dtype=np.float64)[:, columns],
            c=np.array([term.offset for term in terms], dtype=np.float64),
        )


class Sides(NamedTuple):
    """Some sides of a box as arrays."""

    lo: Floats
    hi: Floats
    integer: Ints

    @classmethod
    def of(cls, box: Box, columns: Sequence[int]) -> Sides:
        sides = [box.sides[j] for j in columns]
        return cls(
            lo=np.array([side.lower for side in sides], dtype=np.float64),
            hi=np.array([side.upper for side in sides], dtype=np.float64),
            integer=np.array([isinstance(side, Integers) for side in sides], dtype=np.int64),
        )


def both_sides(terms: Terms, sides: Sides) -> tuple[PackedSide, PackedSide]:
    """The largest sum of the terms over a box, and the largest of its negative."""

    def one(sign: int) -> PackedSide:
        links = _links(terms.epsilon, terms.logistic, sign)
        return PackedSide(*pack(terms.A, terms.c, terms.m, *sides, sign, *links))

    return one(1), one(-1)


@lru_cache(maxsize=256)
def _links(
    epsilon: tuple[float, ...], logistic: tuple[bool, ...], sign: int
) -> tuple[Floats, Ints, Ints, Floats, Floats, Ints]:
    """Parameters of the links and their largest slopes, kinds, and which tables they use."""
    own = [_parameters(e) for e in epsilon]
    slopes = [
        math.tanh(p[H] / 2) if smooth else 1 / p[FOOT]
        for p, smooth in zip(own, logistic, strict=True)
    ]
    bent = RISING if sign > 0 else FALLING
    kinds = [LOGISTIC if smooth else bent for smooth in logistic]
    keys = list(zip(kinds, epsilon, strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return (
        np.column_stack([np.array(own), slopes]),
        np.array(kinds, dtype=np.int64),
        np.array([places[key] for key in keys], dtype=np.int64),
        *_stacked(list(places)),
    )


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
