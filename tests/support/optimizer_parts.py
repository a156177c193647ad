"""The parts of the optimizer: one side of a case, a node, and the kernels in plain Python.

Oracles for the parts are in mpmath and fractions, from the definitions in docs/theory/extrema.md.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import mpmath
import numpy as np
from numpy.typing import NDArray

from expost.solver import BoxColumns, TermArrays, pack_both_directions
from expost.solver import kernels as package
from expost.solver.kernels import entries
from expost.solver.kernels.compiled import JitKernel
from expost.solver.kernels.layout import BoxProblem, Links, PackedProblem, Workspace, new_workspace
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
from expost.terms import Link, ScoreTerm
from support import oracles
from support.box_cases import Case, Point

Floats = NDArray[np.float64]

UNIT = 2.0**-53


def _kernels() -> Any:
    """All kernels and their constants, as if they were in one module."""
    names: dict[str, Any] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in ("machine_code", "references", "entries"):
            names |= vars(importlib.import_module(f"{package.__name__}.{module.name}"))
    return types.SimpleNamespace(**names)


kernels = _kernels()


def plain_kernels() -> Any:
    """A copy of the kernels whose functions can be replaced: they call each other by name."""
    copy = _kernels()
    for name, kernel in vars(kernels).items():
        if isinstance(kernel, JitKernel):
            setattr(copy, name, types.FunctionType(kernel.func.__code__, vars(copy), name))
    return copy


@contextmanager
def solver_of(module: Any) -> Iterator[None]:
    """The solver calls these kernels, as plain Python."""
    with (
        mock.patch.object(entries, "machine_code", return_value=None),
        mock.patch.object(entries, "trees", module),
    ):
        yield


def without_rounding(module: Any, name: str) -> Any:
    """A function of the plain kernels to which roundoff is nothing."""
    function = getattr(module, name)
    return types.FunctionType(function.__code__, {**vars(module), "UNIT": 0.0})


def sides_of(case: Case) -> tuple[BoxProblem, BoxProblem]:
    """What is maximized for the largest and for the smallest log-likelihood of a case."""
    sides = case.sides
    integers = [side.integer for side in sides]
    return make_sides(
        case.terms, [side.lo for side in sides], [side.hi for side in sides], integers
    )


def packed_of(case: Case) -> tuple[PackedProblem, PackedProblem]:
    """The same, as the solver has them."""
    sides = case.sides
    integers = [side.integer for side in sides]
    return make_packed(
        case.terms, [side.lo for side in sides], [side.hi for side in sides], integers
    )


def make_sides(
    terms: Iterable[ScoreTerm],
    lo: Sequence[float],
    hi: Sequence[float],
    integer: Sequence[bool] | None = None,
) -> tuple[BoxProblem, BoxProblem]:
    highest, lowest = make_packed(terms, lo, hi, integer)
    return highest.views, lowest.views


def make_packed(
    terms: Iterable[ScoreTerm],
    lo: Sequence[float],
    hi: Sequence[float],
    integer: Sequence[bool] | None = None,
) -> tuple[PackedProblem, PackedProblem]:
    integers = np.array(integer or [False] * len(lo), dtype=np.int64)
    box = BoxColumns(np.array(lo, dtype=np.float64), np.array(hi, dtype=np.float64), integers)
    counted = Counter(terms)
    arrays = TermArrays(
        shapes=tuple((term.link, term.epsilon, term.window) for term in counted),
        m=np.array(list(counted.values()), dtype=np.float64),
        A=np.array([term.weights for term in counted], dtype=np.float64),
        c=np.array([term.offset for term in counted], dtype=np.float64),
    )
    return pack_both_directions(arrays, box)


def single(
    kind: int, epsilon: float, times: int = 1, window: tuple[float, float] = (-1.0, 1.0)
) -> BoxProblem:
    """A side of one term, whose score is its only coordinate."""
    link = {
        LOGISTIC: Link.LOGISTIC,
        PROBIT: Link.PROBIT,
        MIRRORED: Link.PROBIT,
        TENT: Link.TENT,
        VALLEY: Link.TENT,
        WINDOW: Link.WINDOW,
        HOLE: Link.WINDOW,
        HILL: Link.HILL,
        BOWL: Link.HILL,
    }.get(kind, Link.CLIPPED)
    term = ScoreTerm(link, epsilon, (1.0,), 0.0, 0.0, window)
    pair = make_sides([term] * times, [-1.0], [1.0])
    return pair[1] if kind in (FALLING, MIRRORED, VALLEY, HOLE, BOWL) else pair[0]


def links_of(side: BoxProblem) -> Links:
    return Links(side.link, side.par, side.m, side.tau)


def make_node(side: BoxProblem, lo: Floats | None = None, hi: Floats | None = None) -> Workspace:
    """A node: a box, scores without limits, and nothing of its relaxation."""
    n, d = side.A.shape
    work = new_workspace(n, d).views
    work.l[:] = side.lo if lo is None else lo
    work.u[:] = side.hi if hi is None else hi
    work.L[:] = -np.inf
    work.U[:] = np.inf
    work.beta[:] = 0.3
    work.centre[:] = (work.l + work.u) / 2
    work.focus[:] = np.inf
    work.labels[:] = np.arange(n, n + d)
    work.values[:] = work.l
    return work


def some_node(side: BoxProblem, generator: random.Random) -> Workspace:
    """A random box inside of a side's own, and the scores that it allows."""
    lo, hi = side.lo.copy(), side.hi.copy()
    for j in range(len(lo)):
        a, b = sorted((generator.uniform(lo[j], hi[j]), generator.uniform(lo[j], hi[j])))
        if side.integer[j]:
            a, b = float(np.floor(a)), float(np.ceil(b))
        shape = generator.random()
        lo[j] = a if shape < 0.6 else lo[j]
        hi[j] = lo[j] if shape > 0.92 else b if shape > 0.4 else hi[j]
        hi[j] = max(lo[j], hi[j])
    work = make_node(side, lo, hi)
    assert kernels.propagate(side, work, 3)
    return work


def some_point(work: Workspace, side: BoxProblem, generator: random.Random) -> Point:
    """A point of a node, often at its ends."""
    point = []
    for lo, hi, integers in zip(work.l, work.u, side.integer, strict=True):
        x = generator.choice([lo, hi, generator.uniform(lo, hi), generator.uniform(lo, hi)])
        point.append(float(min(hi, max(lo, round(x) if integers else x))))
    return tuple(point)


def relax(side: BoxProblem, work: Workspace, module: Any = kernels) -> None:
    """Good multipliers for a node."""
    module.build_hulls(side, work)
    module.restore_basis(side, work)
    module.place_on_knots(work)
    module.simplex(side, work, 400)


def score(side: BoxProblem, i: int, point: Sequence[float]) -> Fraction:
    return oracles.affine(side.A[i].tolist(), float(side.c[i]), point)


def exact_link(side: BoxProblem, i: int, t: Fraction) -> mpmath.mpf:
    """ψ of a term; where a jump is left open by rounding, the larger of its values."""
    kind, epsilon = int(side.link[i]), epsilon_of(side, i)
    if kind in (WINDOW, HOLE):
        left, right = jumps(side, i)
        high = left <= t <= right if kind == WINDOW else not left < t < right
        return mpmath.mpf(epsilon) / 2 * (1 if high else -1)
    if kind == FLAT:
        return mpmath.mpf(0)
    if kind == LOGISTIC:
        # Beyond that it is level, to hundreds of digits, and the logarithms would only cancel.
        return oracles.logistic_link(min(Fraction(2000), max(Fraction(-2000), t)), epsilon)
    if kind in (TENT, VALLEY):
        return abs(oracles._mpf(t)) * (-1 if kind == TENT else 1)
    if kind in (HILL, BOWL):
        return oracles._mpf(t * t / 2) * (-1 if kind == HILL else 1)
    if kind in (PROBIT, MIRRORED):
        sign = 1 if kind == PROBIT else -1
        return sign * oracles.probit_link(sign * t, epsilon)
    if kind == RISING:
        return oracles.rising_link(t, epsilon)
    return -oracles.rising_link(-t, epsilon)


def jumps(side: BoxProblem, i: int) -> tuple[float, float]:
    return float(side.par[i, kernels.LEFT]), float(side.par[i, kernels.RIGHT])


def epsilon_of(side: BoxProblem, i: int) -> float:
    return 2.0 * float(side.par[i, kernels.H])


def exact_sum(side: BoxProblem, point: Sequence[float]) -> mpmath.mpf:
    """Σ m ψ(a·x + c) in the working precision."""
    total = mpmath.mpf(0)
    for i, m in enumerate(side.m):
        t = score(side, i, point)
        total += int(m) * exact_link(side, i, t)
    return total


def highest(
    side: BoxProblem, i: int, lam: float, lo: float, hi: float, q: float = 0.0, mid: float = 0.0
) -> mpmath.mpf:
    """The largest value of m ψ(t) - λt - q/2 (t - mid)² on [lo, hi], or one close to it."""
    kind, epsilon, m = int(side.link[i]), epsilon_of(side, i), int(side.m[i])

    def f(t: mpmath.mpf) -> mpmath.mpf:
        at = Fraction(*map(int, mpmath.mpf(t).as_integer_ratio()))
        at = min(Fraction(hi), max(Fraction(lo), at))
        square = (at - Fraction(mid)) ** 2 * Fraction(q) / 2
        return m * exact_link(side, i, at) - oracles._mpf(Fraction(lam) * at + square)

    candidates = [mpmath.mpf(lo), mpmath.mpf(hi), *map(mpmath.mpf, (-1, 0, 1))]
    candidates += [mpmath.mpf(t) for t in jumps(side, i) if abs(t) < float("inf")]
    h, mu = mpmath.mpf(epsilon) / 2, mpmath.mpf(lam) / m
    candidates += [-mu] if kind == HILL else []
    if q == 0.0 and mu > 0:
        if kind == RISING:
            candidates.append(1 / mu - 1 - 2 / mpmath.expm1(2 * h))
        elif kind == LOGISTIC:
            y = mpmath.sinh(h) / mu - mpmath.cosh(h)
            candidates += [mpmath.acosh(y)] if y >= 1 else []
    if q != 0.0 or kind in (PROBIT, MIRRORED):
        grid = np.linspace(lo, hi, 81)
        values = np.array([kernels.value(side.link, side.par, i, t) for t in grid])
        values = m * values - lam * grid - 0.5 * q * (grid - mid) ** 2
        for k in np.argsort(-values)[:2]:
            a, b = grid[max(0, k - 1)], grid[min(80, k + 1)]
            a, b = mpmath.mpf(float(a)), mpmath.mpf(float(b))
            for _ in range(40):
                third = (b - a) / 3
                if f(a + third) < f(b - third):
                    a += third
                else:
                    b -= third
            candidates.append((a + b) / 2)
    return max(f(t) for t in candidates)


def exact_dual(side: BoxProblem, work: Workspace) -> mpmath.mpf:
    """The dual function of a node at its multipliers, in real numbers."""
    n, d = side.A.shape
    lam, rows = [Fraction(float(y)) for y in work.lam], side.A.tolist()
    total = mpmath.mpf(0)
    for i in range(n):
        ends = float(work.L[i]), float(work.U[i])
        total += highest(side, i, float(lam[i]), *ends, float(work.q[i]), float(work.middle[i]))
        total += oracles._mpf(lam[i] * Fraction(float(side.c[i])))
    for j in range(d):
        w = sum((lam[i] * Fraction(rows[i][j]) for i in range(n)), Fraction(0))
        D, middle = Fraction(float(work.D[j])) / 2, Fraction(float(work.centre[j]))  # noqa: N806
        ends_of = (Fraction(float(work.l[j])), Fraction(float(work.u[j])))
        total += oracles._mpf(max(w * x + D * (x - middle) ** 2 for x in ends_of))
    return total


def is_positive_semidefinite(matrix: list[list[Fraction]]) -> bool:
    """By elimination in rational numbers."""
    rows = [row[:] for row in matrix]
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[k][k:])):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot
            for j in range(k, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return True


def curvature_left(side: BoxProblem, work: Workspace) -> list[list[Fraction]]:
    """D - Σ q a aᵀ over the coordinates that are not fixed."""
    free = [j for j in range(len(side.lo)) if work.l[j] < work.u[j]]
    A = [[Fraction(float(row[j])) for j in free] for row in side.A]  # noqa: N806
    q = [Fraction(float(x)) for x in work.q]
    matrix = [
        [-sum((s * row[j] * row[k] for s, row in zip(q, A, strict=True)), Fraction(0))
         for k in range(len(free))] for j in range(len(free))
    ]  # fmt: skip
    for index, j in enumerate(free):
        matrix[index][index] += Fraction(float(work.D[j]))
    return matrix
