"""Storing nodes, and loading their halves."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import POINT, VARIABLE, BoxProblem, Node, Workspace
from expost.solver.kernels.links import FLAT

__all__ = ["init_root", "load_half", "save_multipliers", "store_node"]


PLAIN, CURVED, TOUCHING = 0, 1, 2  # how the bound of a node was computed


@compiled
def init_root(problem: BoxProblem, work: Workspace) -> None:
    """Set the root: the box with its middle, and the corner in the direction of the mean slope."""
    n, d = problem.A.shape
    for j in range(d):
        work.l[j], work.u[j] = problem.lo[j], problem.hi[j]
        work.centre[j] = 0.5 * (problem.lo[j] + problem.hi[j])
        direction = 0.0
        for i in range(n):
            direction += problem.m[i] * problem.A[i, j]
        work.values[j] = problem.hi[j] if direction > 0.0 else problem.lo[j]
        work.labels[j] = n + j
    for i in range(n):
        flat = problem.link[i] == FLAT
        work.L[i], work.U[i] = 1.0 if flat else -math.inf, 1.0 if flat else math.inf
        work.beta[i] = 0.3
        work.focus[i, 0] = work.focus[i, 1] = work.focus[i, 2] = math.inf


@compiled
def load_half(problem: BoxProblem, work: Workspace, node: Node, half: int) -> int:
    """Load one half of a stored node into ``work``, or the root if half < 0; return its mode."""
    n, d = problem.A.shape
    if half < 0:
        init_root(problem, work)
        return PLAIN
    for j in range(d):
        work.l[j] = node.l[j]
        work.u[j] = node.u[j]
        work.values[j] = node.values[j]
        work.centre[j] = node.centre[j]
        work.D[j] = node.D[j]
        work.labels[j] = node.labels[j]
    for i in range(n):
        work.L[i] = node.L[i]
        work.U[i] = node.U[i]
        work.beta[i] = node.beta[i]
        work.focus[i, 0] = work.focus[i, 1] = work.focus[i, 2] = math.inf
    v = int(node.branch[VARIABLE])
    point = node.branch[POINT]
    if half == 0:
        if v < n:
            work.U[v] = point
        else:
            work.u[v - n] = point
    elif v < n:
        work.L[v] = point
    else:
        work.l[v - n] = point + 1.0 if problem.integer[v - n] else point
    return int(node.mode[0])


@compiled
def store_node(problem: BoxProblem, work: Workspace, node: Node, mode: int) -> None:
    """Store the current node."""
    n, d = problem.A.shape
    for j in range(d):
        node.l[j] = work.l[j]
        node.u[j] = work.u[j]
        node.values[j] = work.values[j]
        node.centre[j] = work.centre[j]
        node.D[j] = work.D[j]
        node.labels[j] = work.labels[j]
    for i in range(n):
        node.L[i] = work.L[i]
        node.U[i] = work.U[i]
        node.beta[i] = work.beta[i]
    node.branch[VARIABLE] = work.branch[VARIABLE]
    node.branch[POINT] = work.branch[POINT]
    node.mode[0] = mode
    v = int(work.branch[VARIABLE])
    node.gap[0] = work.gap[v] if 0 <= v < n else 0.0


@compiled
def save_multipliers(work: Workspace) -> None:
    """Save the multipliers, curvatures, centre and diagonal of the current bound, for a proof."""
    for i in range(len(work.lam)):
        work.best_lam[i] = work.lam[i]
        work.best_q[i] = work.q[i]
    for j in range(len(work.D)):
        work.best_centre[j] = work.centre[j]
        work.best_diagonal[j] = work.D[j]
