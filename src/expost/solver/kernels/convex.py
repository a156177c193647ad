"""Nodes of a convex sum, of which only corners count."""

from __future__ import annotations

import math

from expost.solver.kernels.bound import dual_bound
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.curvature import dominate
from expost.solver.kernels.intervals import propagate
from expost.solver.kernels.layout import (
    CLIPPED_FALLING,
    FOOT,
    POINT,
    TIGHTENED,
    VALUE,
    VARIABLE,
    Node,
    Problem,
    Work,
)
from expost.solver.kernels.links import UNIT
from expost.solver.kernels.points import evaluate
from expost.solver.kernels.storage import PLAIN, load, note, store

__all__ = ["bow", "fix", "flip", "grow_corner", "part_of_end"]


@compiled
def flip(problem: Problem, work: Work) -> None:
    """Lead the corner in ``centre`` to one that is better than all its neighbours in the node."""
    A, m, x, G = problem.A, problem.m, work.centre, work.part
    n, d = A.shape
    for i in range(n):
        t = problem.c[i]
        for j in range(d):
            t += A[i, j] * x[j]
        G[i] = problem.par[i, FOOT] + 1.0 - t
    moved = True
    for _ in range(20):
        if not moved:
            break
        moved = False
        for j in range(d):
            if work.l[j] >= work.u[j]:
                continue
            other = work.l[j] if x[j] == work.u[j] else work.u[j]
            step = other - x[j]
            loss = 0.0
            product = 1.0
            for i in range(n):
                ratio = 1.0 - A[i, j] * step / G[i]
                if m[i] != 1.0:
                    loss += m[i] * math.log(ratio)
                    continue
                product *= ratio
                if product > 1e90 or product < 1e-90:
                    loss += math.log(product)
                    product = 1.0
            if loss + math.log(product) < -1e-9:
                moved = True
                x[j] = other
                for i in range(n):
                    G[i] -= A[i, j] * step


@compiled
def bow(problem: Problem, work: Work) -> None:
    """The tangents at the corner in ``centre``, and curvatures that lift them to the far ends.

    With q a tangent meets its term again at the largest score; it is above it in between, because
    ψ'' rises. D is then as small as it gets.
    """
    A, l, u, M, scale = problem.A, work.l, work.u, work.M, work.scale
    n, d = A.shape
    for j in range(d):
        scale[j] = u[j] - l[j]
        for k in range(j + 1):
            M[j, k] = 0.0
    mass = 0.0
    for i in range(n):
        t = problem.c[i]
        for j in range(d):
            t += A[i, j] * work.centre[j]
        G = problem.par[i, FOOT] + 1.0 - t
        r = min(0.999999, max(0.0, (work.U[i] - t) / G))
        q = 1.0 + r * (2.0 / 3.0 + 0.5 * r)
        if r > 0.01:
            q = -2.0 * (math.log1p(-r) + r) / (r * r)
        work.middle[i] = t
        work.lam[i] = problem.m[i] / G
        # A little more, so that f is surely concave at the corner.
        work.q[i] = q * work.lam[i] / G * (1.0 + 1e-6)
        for j in range(d):
            if scale[j] > 0.0:
                a = work.q[i] * A[i, j] * scale[j]
                mass += abs(a * A[i, j]) * scale[j]
                for k in range(j + 1):
                    M[j, k] += a * A[i, k] * scale[k]
    if not dominate(work, mass, 8):
        for i in range(n):
            work.q[i] = 0.0
        for j in range(d):
            work.D[j] = 0.0


@compiled
def part_of_end(work: Work, j: int, x: float) -> float:
    """What an end of a coordinate adds to the bound."""
    return work.w[j] * x + 0.5 * work.D[j] * (x - work.centre[j]) ** 2


@compiled
def fix(problem: Problem, work: Work, bound: float, cut: float) -> bool:
    """Fix coordinates at one end where the bound shows that the other one is at most ``cut``."""
    l, u = work.l, work.u
    n, d = problem.A.shape
    fixed = False
    for j in range(d):
        if l[j] >= u[j]:
            continue
        low, high = part_of_end(work, j, l[j]), part_of_end(work, j, u[j])
        reach = max(abs(l[j]), abs(u[j]))
        blur = (n + 8) * UNIT * work.weight[j] * reach
        blur += 32.0 * UNIT * work.D[j] * (reach + abs(work.centre[j])) ** 2
        if bound - cut + 2.0 * UNIT * (abs(bound) + abs(cut)) > abs(high - low) - 2.0 * blur:
            continue
        fixed = True
        work.found[TIGHTENED] = 1.0
        if high > low:
            l[j] = u[j]
        else:
            u[j] = l[j]
    return fixed


@compiled
def grow_corner(
    problem: Problem, work: Work, parent: Node, child: Node, half: int, cutting: bool, cut: float
) -> float:
    """:func:`nodes.grow_node` for a convex sum, whose halves are the two ends of a coordinate.

    The bound is made at the best corner of the node that flips lead to. It holds for corners, and
    so for all of the box.
    """
    n, d = problem.A.shape
    work.found[VALUE] = -math.inf
    work.found[TIGHTENED] = 0.0
    load(problem, work, parent, half)
    if half < 0:
        for j in range(d):
            work.centre[j] = work.values[j]
    if half == 1:
        j = int(parent.branch[VARIABLE]) - n
        work.l[j] = work.u[j]
    clipped = 2.0 * problem.facts[CLIPPED_FALLING]
    best = math.inf
    while True:
        propagate(problem, work, 1)
        for j in range(d):
            work.centre[j] = work.u[j] if work.centre[j] >= work.u[j] else work.l[j]
        flip(problem, work)
        value = evaluate(problem, work.centre, work.grad)
        if value > work.found[VALUE]:
            work.found[VALUE] = value
            for j in range(d):
                work.trial[j] = work.centre[j]
        bow(problem, work)
        bound = dual_bound(problem, work, False) + clipped
        bound += UNIT * abs(bound)
        if bound < best and not cutting:
            note(work)
        best = min(best, max(bound, cut) if work.found[TIGHTENED] else bound)
        if best <= cut or not cutting or not fix(problem, work, bound, cut):
            break
    work.branch[VARIABLE] = -1.0
    most = -math.inf
    for j in range(d):
        gain = part_of_end(work, j, work.l[j]) + part_of_end(work, j, work.u[j])
        gain -= 2.0 * part_of_end(work, j, work.centre[j])
        if work.l[j] < work.u[j] and gain > most:
            most = gain
            work.branch[VARIABLE] = n + j
            work.branch[POINT] = work.l[j]
    store(problem, work, child, PLAIN)
    return best
