"""Nodes of a convex sum, which is largest at a corner."""

from __future__ import annotations

import math

from expost.solver.kernels.bound import dual_bound
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.curvature import add_curvature, dominating_diagonal
from expost.solver.kernels.intervals import propagate
from expost.solver.kernels.layout import (
    CLIPPED_FALLING,
    FOOT,
    POINT,
    TIGHTENED,
    VALUE,
    VARIABLE,
    BoxProblem,
    Node,
    Workspace,
)
from expost.solver.kernels.links import UNIT, score
from expost.solver.kernels.points import evaluate
from expost.solver.kernels.storage import PLAIN, load_half, save_multipliers, store_node

__all__ = [
    "corner_majorant",
    "end_contribution",
    "fix_coordinates",
    "grow_corner",
    "improve_corner",
]


@compiled
def improve_corner(problem: BoxProblem, work: Workspace) -> None:
    """Flip coordinates of the corner in ``centre`` until no neighbour in the node is better."""
    A, m, x, G = problem.A, problem.m, work.centre, work.part
    n, d = A.shape
    for i in range(n):
        G[i] = problem.par[i, FOOT] + 1.0 - score(problem, i, x)
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
def corner_majorant(problem: BoxProblem, work: Workspace) -> None:
    """Set tangents at the corner in ``centre``, and curvatures that lift them to the far ends.

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
        t = score(problem, i, work.centre)
        G = problem.par[i, FOOT] + 1.0 - t
        r = min(0.999999, max(0.0, (work.U[i] - t) / G))
        q = 1.0 + r * (2.0 / 3.0 + 0.5 * r)
        if r > 0.01:
            q = -2.0 * (math.log1p(-r) + r) / (r * r)
        work.middle[i] = t
        work.lam[i] = problem.m[i] / G
        # A little more, so that f is surely concave at the corner.
        work.q[i] = q * work.lam[i] / G * (1.0 + 1e-6)
        mass += add_curvature(problem, work, i)
    if not dominating_diagonal(work, mass, 8):
        for i in range(n):
            work.q[i] = 0.0
        for j in range(d):
            work.D[j] = 0.0


@compiled
def end_contribution(work: Workspace, j: int, x: float) -> float:
    """Return what one end of a coordinate adds to the bound."""
    return work.w[j] * x + 0.5 * work.D[j] * (x - work.centre[j]) ** 2


@compiled
def fix_coordinates(problem: BoxProblem, work: Workspace, bound: float, cut: float) -> bool:
    """Fix coordinates at one end where the bound shows that the other end is at most ``cut``."""
    l, u = work.l, work.u
    n, d = problem.A.shape
    fixed = False
    for j in range(d):
        if l[j] >= u[j]:
            continue
        low, high = end_contribution(work, j, l[j]), end_contribution(work, j, u[j])
        reach = max(abs(l[j]), abs(u[j]))
        blur = (n + 8) * UNIT * work.weight[j] * reach
        blur += 32.0 * UNIT * work.D[j] * (reach + abs(work.centre[j])) ** 2
        if bound - cut + 2.0 * UNIT * (abs(bound) + abs(cut)) > abs(high - low) - 2.0 * blur:
            continue
        fixed = True
        work.outcome[TIGHTENED] = 1.0
        if high > low:
            l[j] = u[j]
        else:
            u[j] = l[j]
    return fixed


@compiled
def grow_corner(
    problem: BoxProblem,
    work: Workspace,
    parent: Node,
    child: Node,
    half: int,
    cutting: bool,
    cut: float,
) -> float:
    """Make a node of a convex sum, whose halves are the two ends of a coordinate.

    The arguments are those of :func:`nodes.grow_node`. The bound is made at the best corner that
    flips lead to. It holds for corners, and so for all of the box.
    """
    n, d = problem.A.shape
    work.outcome[VALUE] = -math.inf
    work.outcome[TIGHTENED] = 0.0
    load_half(problem, work, parent, half)
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
        improve_corner(problem, work)
        value = evaluate(problem, work.centre, work.grad)
        if value > work.outcome[VALUE]:
            work.outcome[VALUE] = value
            for j in range(d):
                work.trial[j] = work.centre[j]
        corner_majorant(problem, work)
        bound = dual_bound(problem, work, False) + clipped
        bound += UNIT * abs(bound)
        if bound < best and not cutting:
            save_multipliers(work)
        best = min(best, max(bound, cut) if work.outcome[TIGHTENED] else bound)
        if best <= cut or not cutting or not fix_coordinates(problem, work, bound, cut):
            break
    work.branch[VARIABLE] = -1.0
    most = -math.inf
    for j in range(d):
        gain = end_contribution(work, j, work.l[j]) + end_contribution(work, j, work.u[j])
        gain -= 2.0 * end_contribution(work, j, work.centre[j])
        if work.l[j] < work.u[j] and gain > most:
            most = gain
            work.branch[VARIABLE] = n + j
            work.branch[POINT] = work.l[j]
    store_node(problem, work, child, PLAIN)
    return best
