"""Tightening of boxes and of score intervals, which cuts off nothing of interest."""

from __future__ import annotations

import math

from expost.solver.kernels.bound import conjugate_argmax
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import TIGHTENED, BoxProblem, Links, Workspace
from expost.solver.kernels.links import TENT, UNIT, tilted_value

__all__ = ["propagate", "tighten"]


@compiled
def propagate(problem: BoxProblem, work: Workspace, rounds: int) -> bool:
    """Tighten scores by coordinates and coordinates by scores, outward.

    Returns False if that empties the node. A score's range is computed within its slack. Where
    rows use coordinates that an earlier row has tightened meanwhile, their ranges are too wide,
    which is safe.
    """
    A, slack, l, u, L, U = problem.A, problem.slack, work.l, work.u, work.L, work.U
    n, d = A.shape
    for turn in range(rounds):
        changed = False
        for i in range(n):
            low = problem.c[i]
            high = problem.c[i]
            for j in range(d):
                a = A[i, j]
                low += a * (l[j] if a >= 0.0 else u[j])
                high += a * (u[j] if a >= 0.0 else l[j])
            L[i] = max(L[i], low - slack[i])
            U[i] = min(U[i], high + slack[i])
            if L[i] > U[i]:
                return False
            # The range of a coordinate, from its other end, if the score is cut on one side.
            above = U[i] - low + 2.0 * slack[i]
            below = high - L[i] + 2.0 * slack[i]
            if turn + 1 == rounds or min(above, below) > 0.999999 * (high - low):
                continue
            for j in range(d):
                a = abs(A[i, j])
                if a == 0.0:
                    continue
                for cut in range(2):
                    reach = (below if cut else above) / a * (1.0 + 4.0 * UNIT)
                    if not reach < u[j] - l[j]:
                        continue
                    if (A[i, j] > 0.0) == (cut == 0):
                        new = l[j] + max(reach, 0.0)
                        new += 2.0 * UNIT * abs(new)
                        new = math.floor(new) if problem.integer[j] else new
                        changed = changed or new < u[j]
                        u[j] = min(u[j], new)
                    else:
                        new = u[j] - max(reach, 0.0)
                        new -= 2.0 * UNIT * abs(new)
                        new = math.ceil(new) if problem.integer[j] else new
                        changed = changed or new > l[j]
                        l[j] = max(l[j], new)
                    if l[j] > u[j]:
                        return False
        if not changed and turn + 1 < rounds:
            return True
    return True


@compiled
def tighten(problem: BoxProblem, work: Workspace, bound: float, cut: float) -> None:
    """Drop coordinates and scores for which a plain bound shows that all is at most ``cut``.

    The bound falls by w per unit that a coordinate moves from its better end, and by what a score
    loses against its best one.
    """
    l, u, w = work.l, work.u, work.w
    links = Links(problem.link, problem.par, problem.m, problem.tau)
    n, d = problem.A.shape
    for j in range(d):
        sure = abs(w[j]) - (n + 4) * UNIT * work.weight[j]
        if sure <= 0.0 or bound - cut >= sure * (u[j] - l[j]):
            continue
        work.outcome[TIGHTENED] = 1.0
        reach = (bound - cut) / sure * (1.0 + 8.0 * UNIT)
        if w[j] > 0.0:
            new = u[j] - reach
            new -= 2.0 * UNIT * abs(new)
            l[j] = max(l[j], math.ceil(new) if problem.integer[j] else new)
        else:
            new = l[j] + reach
            new += 2.0 * UNIT * abs(new)
            u[j] = min(u[j], math.floor(new) if problem.integer[j] else new)
    for i in range(n):
        lam, lo, hi = work.lam[i], work.L[i], work.U[i]
        far = max(abs(lo), abs(hi))
        blur = UNIT * (4.0 * problem.error[i] + 80.0 * (abs(lam) + problem.wall[i]) * far)
        enough = work.part[i] - (bound - cut) - blur
        low = tilted_value(links, i, lam, lo)
        high = tilted_value(links, i, lam, hi)
        if lo >= hi or (low > enough and high > enough) or problem.link[i] >= TENT:
            continue
        # From its best point a term falls towards both ends, or is convex there.
        best = lo if low > high else hi
        concave = problem.tau[i] < hi
        if concave:
            top = min(hi, max(lo, problem.tau[i], conjugate_argmax(links, i, lam)))
            if tilted_value(links, i, lam, top) >= max(low, high):
                best = top
        for end in range(2):
            safe = hi if end else lo
            if (high if end else low) > enough or best == safe:
                continue
            if concave and end == 1 and best == lo:
                continue  # there may be a second hill in between
            near = best
            for _ in range(6):
                t = 0.5 * (safe + near)
                if tilted_value(links, i, lam, t) <= enough:
                    safe = t
                else:
                    near = t
            work.outcome[TIGHTENED] = 1.0
            if end:
                work.U[i] = safe
            else:
                work.L[i] = safe
