"""Parabolas that touch logistic terms at a point of a node: a bound that needs no simplex.

In a small node the second derivatives of the terms hardly change. Then their common part
cancels in Σ q a aᵀ, and the bound is far smaller than that of hulls, and quicker.
"""

from __future__ import annotations

import math

import numpy as np

from expost.solver.kernels.bound import dual_bound
from expost.solver.kernels.branching import choose_coordinate
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.curvature import add_curvature, dominating_diagonal, start_curvatures
from expost.solver.kernels.layout import (
    COSH,
    SINH,
    VALUE,
    BoxProblem,
    H,
    Node,
    Workspace,
)
from expost.solver.kernels.links import LOGISTIC, score, second_derivative, slope, value
from expost.solver.kernels.points import ascend
from expost.solver.kernels.storage import TOUCHING, store_node

__all__ = [
    "all_logistic",
    "fit_parabolas",
    "grow_touching",
    "optimize_centre",
    "touching_parabola_bound",
]


@compiled
def all_logistic(problem: BoxProblem) -> bool:
    """Return whether all terms are logistic."""
    different = 0
    for i in range(len(problem.link)):
        different += problem.link[i] != LOGISTIC
    return different == 0


@compiled
def optimize_centre(problem: BoxProblem, work: Workspace, turns: int) -> None:
    """Move ``centre`` to approximately where F(x) - ½ Σ D (x - middle of the node)² is largest.

    There the bound of touching parabolas is smallest for this D: both ends of a coordinate add
    the same to it, or the centre is at one of them. Newton's steps.
    """
    A, l, u, x, D = problem.A, work.l, work.u, work.centre, work.D
    grad, step, M, F = work.grad, work.y, work.M, work.F
    n, d = A.shape
    for j in range(d):
        x[j] = min(u[j], max(l[j], x[j]))
    for _ in range(turns):
        for j in range(d):
            grad[j] = D[j] * (0.5 * (l[j] + u[j]) - x[j])
            for k in range(j):
                M[j, k] = 0.0
            M[j, j] = D[j]
        for i in range(n):
            t = score(problem, i, x)
            # Slope and bend, of one exponential.
            e = math.exp(-abs(t))
            below = e * (e + 2.0 * problem.par[i, COSH]) + 1.0
            s = problem.m[i] * 2.0 * problem.par[i, SINH] * e / below
            b = s * (e * e - 1.0) / below
            b = b if t > 0.0 else -b
            for j in range(d):
                grad[j] += s * A[i, j]
                a = b * A[i, j]
                for k in range(j + 1):
                    M[j, k] -= a * A[i, k]
        # Coordinates at an end to which the slope points stay there, and their rows are empty.
        for j in range(d):
            held = l[j] >= u[j] or (x[j] >= u[j] and grad[j] > 0.0)
            held = held or (x[j] <= l[j] and grad[j] < 0.0)
            step[j] = 0.0 if held else grad[j]
            F[j, j] = 0.0
            if held:
                continue
            least = 0.05 * (D[j] + abs(M[j, j])) + 1e-12
            for k in range(j + 1):
                if j > k and F[k, k] == 0.0:
                    continue
                f = M[j, k]
                for e in range(k):
                    if F[e, e] > 0.0:
                        f -= F[j, e] * F[k, e]
                if j > k:
                    F[j, k] = f / F[k, k]
                    step[j] -= F[j, k] * step[k]
                else:
                    F[j, j] = math.sqrt(max(f, least))
                    step[j] /= F[j, j]
        moved = 0.0
        for back in range(d):
            j = d - 1 - back
            if F[j, j] == 0.0:
                continue
            for k in range(j + 1, d):
                if F[k, k] > 0.0:
                    step[j] -= F[k, j] * step[k]
            step[j] /= F[j, j]
            before = x[j]
            x[j] = min(u[j], max(l[j], before + step[j]))
            moved = max(moved, abs(x[j] - before) / (u[j] - l[j]))
        if moved < 0.02:
            break


@compiled
def fit_parabolas(problem: BoxProblem, work: Workspace) -> bool:
    """Set tangents at ``centre``, and roughly the smallest q with parabolas above their terms.

    Returns False if no D suits them. ``second_contact`` is where a parabola touches its term again.
    """
    centre, grid, heights = work.centre, problem.grid, problem.heights
    start_curvatures(work)
    mass = 0.0
    for i in range(len(work.q)):
        m, lo, hi, row = problem.m[i], work.L[i], work.U[i], problem.table[i]
        t = score(problem, i, centre)
        here = value(problem.link, problem.par, i, t)
        tangent = slope(problem.link, problem.par, i, t)
        work.middle[i] = t
        work.lam[i] = m * tangent
        work.q[i] = 0.0
        work.gap[i] = 0.0  # D alone is the reason for the gap of such a bound
        work.second_contact[i] = t
        if lo >= hi:
            continue
        most = second_derivative(problem.par, i, min(hi, max(lo, t)))
        a, size = 0, problem.sizes[row]
        while a < size and grid[row, a] <= lo:
            a += 1
        # Between the tangent and another point of the term, as a parabola through both.
        far, f = lo, value(problem.link, problem.par, i, lo)
        while True:
            away = far - t
            if abs(away) > 1e-2:
                needed = 2.0 * (f - here - tangent * away) / (away * away)
                if needed > most:
                    most = needed
                    work.second_contact[i] = far
            if far >= hi:
                break
            if a < size and grid[row, a] < hi:
                far, f = grid[row, a], heights[row, a]
                a += 1
            else:
                far, f = hi, value(problem.link, problem.par, i, hi)
        # A little more, so that f is surely concave at the centre, and less elsewhere.
        work.q[i] = m * (most + 0.01 * abs(most) + 1e-3 * problem.par[i, H])
        mass += add_curvature(problem, work, i)
    return dominating_diagonal(work, mass, 4)


@compiled
def touching_parabola_bound(problem: BoxProblem, work: Workspace, turns: int) -> float:
    """Return the bound of parabolas that touch near ``centre``, where it is small."""
    optimize_centre(problem, work, turns)
    if not fit_parabolas(problem, work):
        return math.inf
    return dual_bound(problem, work, True)


@compiled
def grow_touching(
    problem: BoxProblem, work: Workspace, child: Node, lower: float, cut: float, tolerance: float
) -> float:
    """Make a half of a node whose bound is from touching parabolas, as :func:`nodes.grow_node`."""
    bound = touching_parabola_bound(problem, work, 3)
    if bound <= cut:
        return bound
    for j in range(len(work.trial)):
        work.trial[j] = np.rint(work.centre[j]) if problem.integer[j] else work.centre[j]
    worth = max(1e-9, 0.02 * tolerance)
    work.outcome[VALUE] = ascend(problem, work, lower - 0.3 * (bound - lower), worth)
    choose_coordinate(problem, work, work.centre)
    store_node(problem, work, child, TOUCHING)
    return bound
