"""Where to split a node, also by the gains of earlier splits."""

from __future__ import annotations

import math

import numpy as np

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import (
    LEFT,
    POINT,
    RIGHT,
    VARIABLE,
    BoxProblem,
    Floats,
    Node,
    Workspace,
)
from expost.solver.kernels.links import HILL, HOLE, WINDOW, score, value

__all__ = ["choose_branch", "choose_coordinate", "record_gain", "split_beside_jump"]


_EDGE = 2.0**-22  # how far from a jump to split
SCORES_FIRST, COORDINATES_ONLY, CORNERS = 0, 1, 2  # rules


@compiled
def split_beside_jump(kind: int, par: Floats, i: int, lo: float, t: float, hi: float) -> float:
    """Return a point next to the jump nearest to t, on its lower side: one part has no jump."""
    out = _EDGE if kind == WINDOW else -_EDGE
    left, right = par[i, LEFT] - out, par[i, RIGHT] + out
    if not lo < left or (right < hi and abs(right - t) < abs(left - t)):
        return right
    return left


@compiled
def choose_branch(problem: BoxProblem, work: Workspace, rule: int, lower: float) -> float:
    """Set where to split next, as (variable, point), or -1 if nothing remains to split.

    ``lower`` is the value of a point.

    Returns the sum of the hulls at the relaxed optimum.
    """
    L, U, x, gap = work.L, work.U, work.x, work.gap
    total = 0.0
    hull_gap = 0.0
    most = 0.0
    work.branch[VARIABLE] = -1.0
    for i in range(len(gap)):
        gap[i] = 0.0
        if U[i] <= L[i]:
            total += problem.m[i] * value(problem.link, problem.par, i, L[i])
            continue
        curve = 0.5 * work.q[i]
        t = min(U[i], max(L[i], score(problem, i, x)))
        s = 0
        while s < work.knots[i] - 2 and work.knot[i, s + 1] < t:
            s += 1
        # The hull at t, from the knot before it.
        a = work.knot[i, s]
        f = (
            problem.m[i] * value(problem.link, problem.par, i, a)
            - curve * (a - work.middle[i]) ** 2
        )
        f += work.rise[i, s] * (t - a)
        f += curve * (t - work.middle[i]) ** 2
        gap[i] = max(0.0, f - problem.m[i] * value(problem.link, problem.par, i, t))
        total += f
        hull_gap += gap[i]
        if rule == SCORES_FIRST and gap[i] > 1e-10:
            # What a split at this score is likely to gain, from the gains of earlier ones.
            gained = work.split_gains[i]
            below = gap[i] * (gained[0] + 1.0) / (gained[1] + 1.0)
            above = gap[i] * (gained[2] + 1.0) / (gained[3] + 1.0)
            if (below + 1e-4) * (above + 1e-4) <= most:
                continue
            margin = 0.05 * (U[i] - L[i])
            split_at = 0.75 * t + 0.25 * problem.tau[i] if problem.link[i] < HILL else t
            split_at = min(U[i] - margin, max(L[i] + margin, split_at))
            if problem.link[i] == WINDOW or problem.link[i] == HOLE:
                split_at = split_beside_jump(problem.link[i], problem.par, i, L[i], t, U[i])
                if not L[i] < split_at < U[i]:
                    continue
            most = (below + 1e-4) * (above + 1e-4)
            work.branch[VARIABLE] = i
            work.branch[POINT] = split_at
    # Where the hulls do not cause most of the gap, coordinates between integers do.
    if work.branch[VARIABLE] >= 0.0 and hull_gap >= 0.5 * (total - lower):
        return total
    choose_coordinate(problem, work, x)
    return total


@compiled
def choose_coordinate(problem: BoxProblem, work: Workspace, x: Floats) -> None:
    """Choose a coordinate to split at a point, by the gaps of hulls, by D, and by integers."""
    l, u, gap = work.l, work.u, work.gap
    n, d = problem.A.shape
    work.branch[VARIABLE] = -1.0
    best = 0.0
    for j in range(d):
        if l[j] >= u[j]:
            continue
        # Where no hull is above its term, any split is as good.
        merit = 1e-12 * (u[j] - l[j]) / (problem.hi[j] - problem.lo[j])
        gaps = 0.0
        for i in range(n):
            if gap[i] > 0.0:
                gaps += gap[i] * abs(problem.A[i, j]) / (work.U[i] - work.L[i])
        merit += gaps * (u[j] - l[j])
        merit += 0.5 * work.D[j] * max(0.0, (u[j] - x[j]) * (x[j] - l[j]))
        if problem.integer[j]:
            merit += abs(x[j] - np.rint(x[j]))
        if merit > best:
            best = merit
            middle = 0.5 * (l[j] + u[j])
            work.branch[VARIABLE] = n + j
            work.branch[POINT] = math.floor(middle) if problem.integer[j] else middle


@compiled
def record_gain(problem: BoxProblem, work: Workspace, parent: Node, half: int, gain: float) -> None:
    """Record what the split of a parent at a merit gained on one half."""
    n, _ = problem.A.shape
    v = int(parent.branch[VARIABLE])
    gap = parent.gap[0]
    if v < n and gap > 1e-6:
        work.split_gains[v, 2 * half] += min(10.0, max(0.0, gain) / gap)
        work.split_gains[v, 2 * half + 1] += 1.0
