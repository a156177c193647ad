"""Feasible points of the box, their values, and a local ascent."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import SURE_LEFT, SURE_RIGHT, BoxProblem, Floats, H, Workspace
from expost.solver.kernels.links import FLAT, HOLE, WINDOW, score, slope, value

__all__ = ["ascend", "certain_value", "choose_categories", "evaluate"]


@compiled
def certain_value(kind: int, par: Floats, i: int, t: float, slack: float) -> float:
    """Return the smallest ψ_i of a WINDOW or a HOLE within the slack around t."""
    left, right = par[i, SURE_LEFT], par[i, SURE_RIGHT]
    if kind == WINDOW:
        return par[i, H] if left + slack <= t <= right - slack else -par[i, H]
    return par[i, H] if t <= left - slack or t >= right + slack else -par[i, H]


@compiled
def choose_categories(problem: BoxProblem, x: Floats, point: Floats) -> None:
    """Set the category with the largest x to 1, in every group of coordinates."""
    n, d = problem.A.shape
    for i in range(n):
        if problem.link[i] != FLAT:
            continue
        best = -1
        for j in range(d):
            if problem.A[i, j] != 0.0:
                point[j] = 0.0
                if best < 0 or x[j] > x[best]:
                    best = j
        point[best] = 1.0


@compiled
def evaluate(problem: BoxProblem, x: Floats, grad: Floats) -> float:
    """Return Σ m ψ(a·x + c), and leave its gradient in ``grad``."""
    n, d = problem.A.shape
    for j in range(d):
        grad[j] = 0.0
    total = 0.0
    for i in range(n):
        t = score(problem, i, x)
        if problem.link[i] == WINDOW or problem.link[i] == HOLE:
            total += problem.m[i] * certain_value(
                problem.link[i], problem.par, i, t, problem.slack[i]
            )
            continue
        total += problem.m[i] * value(problem.link, problem.par, i, t)
        s = problem.m[i] * slope(problem.link, problem.par, i, t)
        for j in range(d):
            grad[j] += s * problem.A[i, j]
    return total


@compiled
def ascend(problem: BoxProblem, work: Workspace, threshold: float, worth: float) -> float:
    """Climb from work.trial if its value is above a threshold, while steps are worth it.

    Projected gradients with the step lengths of Barzilai and Borwein. Integers stay as they are.
    """
    lo, hi, x, y, grad, newgrad = (
        problem.lo,
        problem.hi,
        work.trial,
        work.y,
        work.grad,
        work.newgrad,
    )
    d = len(x)
    best = -math.inf
    rate = 0.0
    for j in range(d):
        y[j] = x[j]
    for turn in range(30):
        f = evaluate(problem, y, newgrad)
        if f <= best:
            rate *= 0.25
        else:
            gained = f - best
            moved = 0.0
            bent = 0.0
            size = 0.0
            for j in range(d):
                s = y[j] - x[j]
                moved += s * s
                bent += s * (newgrad[j] - grad[j])
                x[j] = y[j]
                grad[j] = newgrad[j]
                if hi[j] > lo[j] and not problem.integer[j]:
                    size = max(size, abs(grad[j]) / (hi[j] - lo[j]))
            best = f
            if f < threshold or gained < worth or size == 0.0:
                break
            if turn == 0:
                rate = 0.25 / size
            else:
                rate = moved / -bent if bent < 0.0 else 4.0 * rate
        moved = 0.0
        for j in range(d):
            if not problem.integer[j]:
                y[j] = min(hi[j], max(lo[j], x[j] + rate * grad[j]))
                moved = max(moved, abs(y[j] - x[j]) / (hi[j] - lo[j] + 1e-300))
        if moved < 1e-9:
            break
    return best
