"""Piecewise-linear upper hulls of the terms on a node."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import BoxProblem, Workspace
from expost.solver.kernels.links import score, value

__all__ = ["build_hulls", "refine_hulls"]


@compiled
def build_hulls(problem: BoxProblem, work: Workspace) -> None:
    """Build the upper hull of every variable's function from its ends, table and focus points."""
    knot, rise, count, grid, heights = (
        work.knot,
        work.rise,
        work.knots,
        problem.grid,
        problem.heights,
    )
    n, d = problem.A.shape
    for i in range(n):
        lo, hi, m, mid, curve = work.L[i], work.U[i], problem.m[i], work.middle[i], 0.5 * work.q[i]
        row = problem.table[i]
        knot[i, 0] = lo
        count[i] = 1
        if lo >= hi:
            continue
        # Left of τ a term is convex, and no point but its end can be on the hull.
        tau = problem.tau[i] if curve <= 0.0 else lo
        g, size = 0, problem.sizes[row]
        while g < size and not (grid[row, g] > lo and grid[row, g] >= tau):
            g += 1
        extra = 0
        while extra < 3 and not (work.focus[i, extra] > lo and work.focus[i, extra] >= tau):
            extra += 1
        before = m * value(problem.link, problem.par, i, lo) - curve * (lo - mid) ** 2
        k = 1
        more = True
        while more:
            t = grid[row, g] if g < size else math.inf
            focus_point = work.focus[i, extra] if extra < 3 else math.inf
            if min(t, focus_point) >= hi:
                t = hi
                f = m * value(problem.link, problem.par, i, hi)
                more = False
            elif t <= focus_point:
                f = m * heights[row, g]
                g += 1
                extra += t == focus_point
            else:
                t = focus_point
                f = m * value(problem.link, problem.par, i, t)
                extra += 1
            f -= curve * (t - mid) ** 2
            s = (f - before) / (t - knot[i, k - 1])
            while k >= 2 and rise[i, k - 2] <= s:
                before -= rise[i, k - 2] * (knot[i, k - 1] - knot[i, k - 2])
                k -= 1
                s = (f - before) / (t - knot[i, k - 1])
            rise[i, k - 1] = s
            knot[i, k] = t
            before = f
            k += 1
        count[i] = k
    for j in range(d):
        knot[n + j, 0] = work.l[j]
        count[n + j] = 1
        if work.l[j] < work.u[j]:
            knot[n + j, 1] = work.u[j]
            rise[n + j, 0] = 0.5 * work.D[j] * (work.l[j] + work.u[j] - 2.0 * work.centre[j])
            count[n + j] = 2


@compiled
def refine_hulls(problem: BoxProblem, work: Workspace) -> None:
    """Set focus points around the optimum, so that the next hulls are finer there."""
    for i in range(len(problem.A)):
        t = score(problem, i, work.x)
        width = 0.0
        for s in range(work.knots[i] - 1):
            if work.knot[i, s] <= t <= work.knot[i, s + 1]:
                width = max(width, work.knot[i, s + 1] - work.knot[i, s])
        work.focus[i, 0] = t - 0.125 * width
        work.focus[i, 1] = t
        work.focus[i, 2] = t + 0.125 * width
