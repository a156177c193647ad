"""The normal form of a problem: a maximization with increasing links.

The response and the direction (largest or smallest log-likelihood) are folded into signs. The
link of a logistic query is odd, so its smallest value is the largest one with the affine form
negated; that of a linear query, RISING, becomes FALLING(t) = -RISING(-t), and PROBIT becomes
MIRRORED likewise. A TENT, -|t|, becomes a VALLEY, a WINDOW a HOLE, and a HILL, -t²/2, a BOWL.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from expost._grouping import group_pairs
from expost.domains import Box
from expost.numbers import bisect
from expost.solver.kernels import entries
from expost.solver.kernels.layout import FACTS, BoxProblem, Floats, Ints, PackedProblem, layout
from expost.solver.kernels.links import (
    BOWL,
    FALLING,
    FLAT,
    HILL,
    HOLE,
    LOGISTIC,
    MIRRORED,
    PROBIT,
    RISING,
    TENT,
    VALLEY,
    WINDOW,
)
from expost.terms import BLUR, EVERYWHERE, Link, ScoreTerm

__all__ = ["BoxColumns", "TermArrays", "merge_windows", "pack_both_directions"]


_CELLS = 24


#: A link, its epsilon, and its window.
Shape = tuple[Link, float, tuple[float, float]]


class TermArrays(NamedTuple):
    """Score terms as arrays: Σ m · link(A x + c)."""

    shapes: tuple[Shape, ...]
    m: Floats
    A: Floats
    c: Floats

    @classmethod
    def of(cls, counted: Sequence[tuple[ScoreTerm, int]], columns: Sequence[int]) -> TermArrays:
        """Pack terms and their multiplicities, in some of the coordinates."""
        terms = [term for term, _ in counted]
        rows: Floats = np.array([term.weights for term in terms], dtype=np.float64)
        if list(columns) != list(range(rows.shape[1])):
            rows = rows[:, columns]
        return cls(
            shapes=tuple([(term.link, term.epsilon, term.window) for term in terms]),
            m=np.array([times for _, times in counted], dtype=np.float64),
            A=rows,
            c=np.array([term.offset for term in terms], dtype=np.float64),
        )


class BoxColumns(NamedTuple):
    """Some columns of a box as arrays."""

    lo: Floats
    hi: Floats
    integer: Ints
    #: A row per coordinate with categories: ones for its columns, as exactly one of them is 1.
    groups: Floats = np.empty((0, 0))

    @classmethod
    def of(cls, box: Box, columns: Sequence[int]) -> BoxColumns:
        lo, hi, integer = box.bounds
        if list(columns) != list(range(len(lo))):
            lo, hi, integer = lo[columns], hi[columns], integer[columns]
        groups = [group for group in box.groups if group[0] in columns]
        if not groups:
            return cls(lo, hi, integer)
        return cls(
            lo, hi, integer, np.array([[float(j in group) for j in columns] for group in groups])
        )

    @property
    def exponents(self) -> Ints:
        """The powers of two that bring coordinates to size 1; integers stay as they are.

        They round nothing, and no width gets too small.
        """
        _, exponents = np.frexp(np.maximum(-self.lo, self.hi))
        scaled: Ints = exponents * (1 - self.integer)
        return scaled


def pack_both_directions(
    terms: TermArrays, columns: BoxColumns
) -> tuple[PackedProblem, PackedProblem]:
    """Pack two problems: to maximize the sum of the terms over a box, and to maximize its negative.

    After the terms come FLAT ones, one for each group of columns.
    """
    groups, exponents = len(columns.groups), columns.exponents
    lo, hi = np.ldexp(columns.lo, -exponents), np.ldexp(columns.hi, -exponents)
    with np.errstate(over="ignore", under="ignore"):  # what overflows gives no bound
        A, c, m = np.ldexp(terms.A, exponents), terms.c, terms.m
    integer = columns.integer.view(np.float64)

    def pack(sign: int) -> PackedProblem:
        rows, offsets, times = A, c, m
        if groups:
            rows = np.vstack([A, sign * columns.groups])
            offsets = np.concatenate([c, np.zeros(groups)])
            times = np.concatenate([m, np.ones(groups)])
        if sign < 0:
            rows, offsets = -rows, -offsets
        links, tables, width = _links(terms.shapes, groups, sign)
        n, d = rows.shape
        problem = PackedProblem(
            layout(BoxProblem, n, d, tables=tables, width=width), links, times, offsets,
            integer, lo, hi, rows.ravel(),
        )  # fmt: skip
        entries.derive_fields(problem)
        return problem

    return pack(1), pack(-1)


_KINDS = {
    Link.LOGISTIC: (LOGISTIC, LOGISTIC),
    Link.CLIPPED: (RISING, FALLING),
    Link.PROBIT: (PROBIT, MIRRORED),
    Link.TENT: (TENT, VALLEY),
    Link.WINDOW: (WINDOW, HOLE),
    Link.HILL: (HILL, BOWL),
}

#: A kind, its epsilon, and the ends of its window.
Key = tuple[int, float, float, float]


@lru_cache(maxsize=256)
def _links(shapes: tuple[Shape, ...], groups: int, sign: int) -> tuple[Floats, int, int]:
    """Return the fields of a problem up to its heights, and the shape of its tables.

    They are the constants of every term, its kind, and the table that it uses.
    """
    keys: list[Key] = []
    for link, epsilon, (lo, hi) in shapes:
        ends = (lo, hi) if sign > 0 else (-hi, -lo)
        keys.append((_KINDS[link][sign < 0], epsilon, *ends))
    keys += [(FLAT, 0.0, *EVERYWHERE)] * groups
    table_index = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    grid, heights, sizes = _stack_tables(list(table_index))
    link_of = np.array([key[0] for key in keys], dtype=np.int64)
    table_of = np.array([table_index[key] for key in keys], dtype=np.int64)
    constants = np.array([_constants(*key) for key in keys])
    integers = [part.view(np.float64) for part in (link_of, table_of, sizes)]
    reals = [part.ravel() for part in (constants, grid, heights)]
    return np.concatenate([np.zeros(FACTS), *integers, *reals]), *grid.shape


@lru_cache(maxsize=4096)
def _constants(kind: int, epsilon: float, lo: float, hi: float) -> tuple[float, ...]:
    """Return the parameters of a term, and its shape."""
    if kind < TENT:
        return *_parameters(epsilon), *_shape(kind, epsilon)
    h = epsilon / 2
    if kind in (TENT, VALLEY):
        return h, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 32 + 24 * h
    if kind in (HILL, BOWL):
        steepest = max(abs(lo), abs(hi))
        h = steepest**2 / 4  # the largest value is twice that, as it is of a tent
        return h, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, steepest, -math.inf, 32 + 24 * h
    # A jump may be anywhere within the blur: outward for a bound, inward for a certain value.
    out = BLUR if kind == WINDOW else -BLUR
    jumps = lo - out, hi + out, lo + out, hi - out
    return h, *jumps, 0.0, 0.0, 4 * h, -math.inf, 8 * h


@lru_cache(maxsize=4096)
def _shape(kind: int, epsilon: float) -> tuple[float, float, float]:
    """Return the largest slope of a link, its τ, and its rounding in units of roundoff."""
    h, *_, foot, _ = _parameters(epsilon)
    if kind == LOGISTIC:
        return math.tanh(h / 2), 0.0, 32 + 24 * h
    if kind in (RISING, FALLING):
        return 1 / foot, -1.0 if kind == RISING else 1.0, 32 + 24 * h
    bend = _probit_bend(foot)
    # ψ'' = -ψ'(t + ψ'), so the slope is largest where it is -t.
    return -bend, bend if kind == PROBIT else -bend, 128 + 64 * h


def _probit_slope(foot: float, t: float) -> float:
    return math.sqrt(2 / math.pi) * math.exp(-t * t / 2) / (foot + math.erfc(-t / math.sqrt(2)))


def _probit_bend(foot: float) -> float:
    """Return where a probit link is steepest."""
    return bisect(lambda t: t + _probit_slope(foot, t) < 0, -50.0, 0.0, steps=100)[1]


@lru_cache(maxsize=4096)
def _parameters(epsilon: float) -> tuple[float, ...]:
    h = epsilon / 2
    cosh = math.cosh(h)
    # ψ'' is largest where cosh u = (C + √(C² + 8))/2.
    peak = math.acosh((cosh + math.hypot(cosh, math.sqrt(8))) / 2)
    return h, math.sinh(h), cosh, math.exp(-h), math.exp(h), 2 / math.expm1(epsilon), peak


def _stack_tables(keys: Sequence[Key]) -> tuple[Floats, Floats, Ints]:
    """Return points and values of every link, as rows of one length."""
    tables = [_piecewise_table(*key) if key[0] >= TENT else _table(*key[:2]) for key in keys]
    sizes = np.array([len(points) for points, _ in tables], dtype=np.int64)
    grid = np.full((len(tables), int(sizes.max(initial=1))), math.inf)
    heights = np.zeros_like(grid)
    for row, (points, values) in enumerate(tables):
        grid[row, : len(points)] = points
        heights[row, : len(points)] = values
    return grid, heights, sizes


def _piecewise_table(kind: int, epsilon: float, lo: float, hi: float) -> tuple[Floats, Floats]:
    """Return the knots of the hull of a term that is piecewise linear, or a parabola."""
    if kind == TENT:
        return np.zeros(1), np.zeros(1)
    if kind == HILL:
        points = np.linspace(lo, hi, _CELLS + 1)
        return points, -points * points / 2
    if kind not in (WINDOW, HOLE):
        return np.empty(0), np.empty(0)
    # The link is certainly high there, so points at these knots count.
    out = 4 * BLUR if kind == HOLE else -4 * BLUR
    points = np.array([x for x in (lo - out, hi + out) if math.isfinite(x)])
    return points, np.full(len(points), epsilon / 2)


@lru_cache(maxsize=4096)
def _table(kind: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return knots of hulls, closest where the link bends most. They need not be exact."""
    h, sinh, cosh, *_, foot, _ = _parameters(epsilon)
    if kind == FALLING:
        return np.array([1.0]), np.array([h])
    if kind == RISING:
        points = np.geomspace(foot, foot + 2, _CELLS + 1) - foot - 1
        points = np.linspace(-1, 1, _CELLS + 1) if foot > 1 else points
        return points, np.log1p((1 + points) / foot) - h
    if kind in (PROBIT, MIRRORED):
        sign, bend = (1 if kind == PROBIT else -1), _probit_bend(foot)
        u = np.linspace(bend, 8.0 if kind == PROBIT else -9.0 - math.sqrt(2 * epsilon), 2001)
        slopes = np.array([_probit_slope(foot, t) for t in u.tolist()])
        u = _space_by_curvature(u, np.abs(slopes * (u + slopes)))
        sums = np.array([math.log1p(math.erfc(-t / math.sqrt(2)) / foot) for t in u.tolist()])
        return sign * u, sign * (sums - h)
    u = np.linspace(0, h + 16, 2001)
    e = np.exp(-u)
    right = _space_by_curvature(u, 2 * sinh * e * (1 - e * e) / (e * (e + 2 * cosh) + 1) ** 2)
    e, low = np.exp(-right), math.exp(-h)
    near = np.where(right >= h, e * math.exp(h), low / e)
    values = np.minimum(right, h) + np.log((1 + e * low) / (1 + near))
    return np.concatenate([-right[:0:-1], right]), np.concatenate([-values[:0:-1], values])


def _space_by_curvature(points: Floats, bends: Floats) -> Floats:
    """Select points, closest where a curve bends most, so that all chords miss it about equally."""
    density = np.sqrt(bends)
    amount = np.concatenate([[0.0], np.cumsum(density[1:] + 1e-3 * density.max())])
    return np.interp(np.linspace(0, amount[-1], _CELLS + 1), amount, points)


def merge_windows(terms: Counter[ScoreTerm]) -> tuple[Counter[ScoreTerm], Fraction]:
    """Merge windows that touch and have the same score; return the terms and a constant to add.

    A score where two windows touch is inside exactly one of them. Separate terms do not imply
    that: within rounding of a jump, a score may be on either side. Merging them is exact:

        WINDOW(a, b) + WINDOW(b, c) = WINDOW(a, c) - ε/2.
    """
    # Merge only terms that are equal except for their windows; equal forms are not enough.
    by_score = group_pairs(
        (replace(term, window=EVERYWHERE), term) for term in terms if term.link is Link.WINDOW
    )
    if not by_score:
        return terms, Fraction(0)
    result, constant = Counter(terms), Fraction(0)
    for windows in by_score.values():
        half = Fraction(windows[0].epsilon) / 2
        starting = group_pairs((term.window[0], term) for term in windows)
        while windows:
            left = windows.pop()
            right = next((term for term in starting.get(left.window[1], []) if result[term]), None)
            if right is None or not result[left]:
                continue
            times = min(result[left], result[right])
            result[left] -= times
            result[right] -= times
            constant -= half * times
            both = replace(left, window=(left.window[0], right.window[1]))
            windows.append(left)
            if both.window == EVERYWHERE:
                constant += half * times
                continue
            result[both] += times
            windows.append(both)
            starting[both.window[0]].append(both)
    return +result, constant
