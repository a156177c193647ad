"""Curvatures that make a bound smaller, and a diagonal that compensates for them."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import PEAK, BoxProblem, Workspace
from expost.solver.kernels.links import LOGISTIC, UNIT, score, second_derivative

__all__ = [
    "adapt_curvatures",
    "add_curvature",
    "dominating_diagonal",
    "set_curvatures",
    "start_curvatures",
]


@compiled
def set_curvatures(problem: BoxProblem, work: Workspace) -> bool:
    """Set q by β, and D such that D - Σ q a aᵀ is certainly positive semidefinite."""
    A, l, u, centre = problem.A, work.l, work.u, work.centre
    q = work.q
    n, d = A.shape
    for j in range(d):
        centre[j] = min(u[j], max(l[j], centre[j]))
    start_curvatures(work)
    mass = 0.0
    for i in range(n):
        q[i] = 0.0
        work.middle[i] = score(problem, i, centre)
        lo, hi = work.L[i], work.U[i]
        if problem.link[i] != LOGISTIC or lo >= hi or hi - lo > 20.0:
            continue
        peak = min(hi, max(lo, -problem.par[i, PEAK]))
        most = problem.m[i] * max(
            second_derivative(problem.par, i, lo),
            second_derivative(problem.par, i, peak),
            second_derivative(problem.par, i, hi),
        )
        # Half of a negative curvature leaves the term concave everywhere on the interval.
        q[i] = (work.beta[i] if most > 0.0 else 0.5) * most
        mass += add_curvature(problem, work, i)
    return dominating_diagonal(work, mass, 4)


@compiled
def start_curvatures(work: Workspace) -> None:
    """Scale coordinates by the ellipse around ``centre`` that touches their ends; clear M."""
    l, u, centre = work.l, work.u, work.centre
    for j in range(len(l)):
        r = 0.5 * (u[j] - l[j])
        work.scale[j] = math.sqrt(0.8 * (u[j] - centre[j]) * (centre[j] - l[j]) + 0.2 * r * r)
        for k in range(j + 1):
            work.M[j, k] = 0.0


@compiled
def add_curvature(problem: BoxProblem, work: Workspace, i: int) -> float:
    """Add q a aᵀ of a term to M, scaled; return |q| (scale a)²."""
    A, M, scale = problem.A, work.M, work.scale
    mass = 0.0
    for j in range(len(scale)):
        a = work.q[i] * A[i, j] * scale[j]
        mass += abs(a * A[i, j]) * scale[j]
        for k in range(j + 1):
            M[j, k] += a * A[i, k] * scale[k]
    return mass


@compiled
def dominating_diagonal(work: Workspace, mass: float, sweeps: int) -> bool:
    """Set D such that it certainly dominates Σ q a aᵀ, scaled in M; return False if that fails.

    ``mass`` is Σ |q| (scale a)², by which the rounding of M is measured. Coordinates whose scale
    is 0 are fixed and left out.
    """
    D, M, V, F, scale = work.D, work.M, work.V, work.F, work.scale
    d = len(D)
    # The smallest diagonal above M is the dual of a small semidefinite program, which a few
    # sweeps of the mixing method nearly solve.
    trace = 0.0
    for _ in range(sweeps):
        trace = 0.0
        for j in range(d):
            g0 = g1 = g2 = g3 = 0.0
            for k in range(d):
                if k != j:
                    e = M[j, k] if k < j else M[k, j]
                    g0 += e * V[k, 0]
                    g1 += e * V[k, 1]
                    g2 += e * V[k, 2]
                    g3 += e * V[k, 3]
            norm = math.sqrt(g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3)
            D[j] = max(0.0, M[j, j] + norm)
            trace += D[j]
            if norm > 0.0:
                V[j, 0] = g0 / norm
                V[j, 1] = g1 / norm
                V[j, 2] = g2 / norm
                V[j, 3] = g3 / norm
    # A Cholesky factorization that runs to its end proves it, less a margin for its rounding.
    margin = 2e-9 * (trace + d * mass)
    shift = 1e-3 * trace / d
    for _ in range(12):
        good = True
        for j in range(d):
            if not good or scale[j] == 0.0:
                continue
            for k in range(j + 1):
                if scale[k] == 0.0:
                    continue
                f = -M[j, k]
                if j == k:
                    f += D[j] + shift - margin
                for e in range(k):
                    if scale[e] > 0.0:
                        f -= F[j, e] * F[k, e]
                if j > k:
                    F[j, k] = f / F[k, k]
                elif f > 0.0:
                    F[j, j] = math.sqrt(f)
                else:
                    good = mass == 0.0
        if good:
            for j in range(d):
                # Rounded up: D may be larger, never smaller.
                D[j] = (D[j] + shift) / scale[j] ** 2 * (1 + 8 * UNIT) if scale[j] > 0.0 else 0.0
            return True
        shift = 2.0 * shift + 1e-3 * (trace + mass) / d
    return False


@compiled
def adapt_curvatures(problem: BoxProblem, work: Workspace) -> None:
    """Move curvature to the terms whose hulls gain from it, and the centre towards the optimum.

    The derivative of the bound by q_i is half of what a unit of it costs in D, less what it takes
    off the hull at the optimum.
    """
    A, x, V, scale = problem.A, work.x, work.V, work.scale
    n, d = A.shape
    for i in range(n):
        if work.q[i] <= 0.0:
            continue
        t = problem.c[i]
        g0 = g1 = g2 = g3 = 0.0
        for j in range(d):
            t += A[i, j] * x[j]
            a = A[i, j] * scale[j]
            g0 += a * V[j, 0]
            g1 += a * V[j, 1]
            g2 += a * V[j, 2]
            g3 += a * V[j, 3]
        cost = g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3 + 1e-300
        gain = 0.0
        for s in range(work.knots[i] - 1):
            if work.knot[i, s] < t < work.knot[i, s + 1]:
                gain = (work.knot[i, s + 1] - t) * (t - work.knot[i, s])
        change = min(1.3, max(0.8, math.sqrt(gain / cost)))
        work.beta[i] = min(1.0, max(0.03, work.beta[i] * change))
    for j in range(d):
        work.centre[j] = 0.5 * (work.centre[j] + min(work.u[j], max(work.l[j], x[j])))
