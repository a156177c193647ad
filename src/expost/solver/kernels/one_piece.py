"""Maxima of sums that are convex, or concave, on all of the box."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import FOOT, BoxProblem, ClimbArrays, CornerScratch, H
from expost.solver.kernels.links import UNIT, score

__all__ = ["best_corner", "climb"]


@compiled
def best_corner(problem: BoxProblem, corners: CornerScratch) -> float:
    """Return the largest sum of unclipped FALLING terms over all corners; leave the best in ``x``.

    With b = 1 + (1 - t)/foot a term is h - log b. The b are built up coordinate by coordinate, so
    each is a sum of d products however many corners there are; only the levels below the
    coordinate that flips are renewed.
    """
    A, m, par, base, x = problem.A, problem.m, problem.par, corners.base, corners.x
    n, d = A.shape
    free = 0
    shift = 0.0
    for i in range(n):
        base[d, i] = 1.0 + (1.0 - problem.c[i]) / par[i, FOOT]
        shift += m[i] * problem.par[i, H]
    for j in range(d):
        if problem.lo[j] == problem.hi[j]:
            for i in range(n):
                base[d, i] -= A[i, j] * problem.lo[j] / par[i, FOOT]
            continue
        for i in range(n):
            corners.low[free, i] = A[i, j] * problem.lo[j] / par[i, FOOT]
            corners.high[free, i] = A[i, j] * problem.hi[j] / par[i, FOOT]
        free += 1
    for i in range(n):
        base[free, i] = base[d, i]
    best = -math.inf
    best_code = 0
    for code in range(1 << free):
        # The coordinates whose bits differ from the last code are the lowest ones.
        changed = free if code == 0 else 1
        while changed < free and (code >> (changed - 1)) & 1 == 0:
            changed += 1
        for k in range(changed - 1, -1, -1):
            step = corners.high if (code >> k) & 1 else corners.low
            for i in range(n):
                base[k, i] = base[k + 1, i] - step[k, i]
        total = 0.0
        product = 1.0
        for i in range(n):
            if m[i] == 1.0:
                product *= base[0, i]
                if product > 1e90:  # and no factor is above 1e217
                    total -= math.log(product)
                    product = 1.0
            else:
                total -= m[i] * math.log(base[0, i])
        total -= math.log(product)
        if total > best:
            best, best_code = total, code
    k = 0
    for j in range(d):
        x[j] = problem.lo[j]
        if problem.lo[j] < problem.hi[j]:
            x[j] = problem.hi[j] if (best_code >> k) & 1 else problem.lo[j]
            k += 1
    return best + shift


@compiled
def climb(problem: BoxProblem, arrays: ClimbArrays, tolerance: float) -> None:
    """Maximize a sum of unclipped RISING terms of scores σ_i t_i, for each row of signs.

    With b = 1 + (1 + σt)/foot a term is log b - h, which is concave.

    Projected gradients. By concavity no point is above a value by more than its gap, which is
    the largest rise of the tangent over the box (Frank and Wolfe), with the rounding of it.
    """
    A, m, lo, hi, par = problem.A, problem.m, problem.lo, problem.hi, problem.par
    signs, x, y, grad, old = arrays.signs, arrays.x, arrays.y, arrays.grad, arrays.old
    n, d = A.shape
    size = 0.0
    shift = 0.0
    for i in range(n):
        size += m[i] * (1.0 + 2.0 * problem.par[i, H])
        for j in range(d):
            size += m[i] * abs(A[i, j]) / par[i, FOOT] * (hi[j] - lo[j])
        shift += m[i] * problem.par[i, H]
    blur = (n + d + 20) * 4.0 * UNIT * size
    for s in range(len(signs)):
        for j in range(d):
            g = 0.0
            for i in range(n):
                g += signs[s, i] * m[i] * A[i, j] / (par[i, FOOT] + 1.0)
            y[j] = hi[j] if g > 0.0 else lo[j]
            x[j] = y[j]
        best = -math.inf
        gap = math.inf
        rate = 0.0
        for turn in range(200):
            total = 0.0
            product = 1.0
            for j in range(d):
                old[j] = grad[j]
                grad[j] = 0.0
            for i in range(n):
                base = par[i, FOOT] + 1.0 + signs[s, i] * score(problem, i, y)
                if m[i] == 1.0:
                    product *= base / par[i, FOOT]
                    if product > 1e90:  # and no factor is above 1e217
                        total += math.log(product)
                        product = 1.0
                else:
                    total += m[i] * math.log(base / par[i, FOOT])
                slant = signs[s, i] * m[i] / base
                for j in range(d):
                    grad[j] += slant * A[i, j]
            total += math.log(product)
            rise = blur
            for j in range(d):
                rise += max(grad[j] * (hi[j] - y[j]), grad[j] * (lo[j] - y[j]))
            if turn == 0 or total + rise < best + gap:
                best, gap = total, rise
                for j in range(d):
                    arrays.at[s, j] = y[j]
            if gap <= tolerance:
                break
            moved = 0.0
            bent = 0.0
            steep = 0.0
            for j in range(d):
                step = y[j] - x[j]
                moved += step * step
                bent += step * (grad[j] - old[j])
                steep = max(steep, abs(grad[j]))
                x[j] = y[j]
            rate = moved / -bent if turn > 0 and bent < 0.0 else max(4.0 * rate, 0.1 / steep)
            for j in range(d):
                y[j] = min(hi[j], max(lo[j], x[j] + rate * grad[j]))
        arrays.values[s] = best - shift
        arrays.gaps[s] = gap
