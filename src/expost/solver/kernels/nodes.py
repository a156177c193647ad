"""A node of the search tree: its bound, a point of it, and where to split it next."""

from __future__ import annotations

import math

import numpy as np

from expost.solver.kernels.bound import dual_bound
from expost.solver.kernels.branching import COORDINATES_ONLY, CORNERS, choose_branch, learn
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.convex import grow_corner
from expost.solver.kernels.curvature import adapt, curvatures
from expost.solver.kernels.hulls import build_hulls, look_closer
from expost.solver.kernels.intervals import propagate, tighten
from expost.solver.kernels.layout import TIGHTENED, VALUE, Node, Problem, Work
from expost.solver.kernels.points import ascend, choose_categories
from expost.solver.kernels.simplex import arrange, seat, simplex
from expost.solver.kernels.storage import CURVED, PLAIN, TOUCHING, load, note, store
from expost.solver.kernels.touching import grow_touching, halve, smooth, touch, touching

__all__ = ["grow", "grow_node"]


_CLOSER = 8
_ABOUT_AS_GOOD = 2.0


@compiled
def grow_node(
    problem: Problem, work: Work, parent: Node, child: Node, place: int, half: int, rule: int,
    cutting: bool, level: int, lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    """Make one half of a node, or the root, a node of its own; returns its bound.

    The parent is at a ``place`` of its own. ``lower`` is the best known value, ``above`` the bound
    of the parent. Unless ``cutting``, a half is taken whole, and only its scores follow from its
    coordinates: proofs are easier to check that way. Nothing is stored if the bound is at most
    ``cut``. Whatever the stored box leaves out of the half is at most ``cut`` too. The value of a
    point that was found is left in ``found``, and the point in ``trial``.
    """
    n, d = problem.A.shape
    work.found[VALUE] = -math.inf
    work.found[TIGHTENED] = 0.0
    mode = load(problem, work, parent, half)
    if not propagate(problem, work, 3 if cutting else 1):
        work.arranged[0] = -1
        return -math.inf
    if mode == TOUCHING:
        return grow_touching(problem, work, child, lower, cut, tolerance)
    arrange(problem, work, half == 1 and work.arranged[0] == place)
    work.arranged[0] = place if half == 0 else -1
    best = math.inf
    plain = math.inf
    left = 2 if mode == CURVED else 1
    try_curved = mode == PLAIN and rule == COORDINATES_ONLY and level % 3 == 0
    closer = _CLOSER
    while left > 0:
        left -= 1
        if mode == CURVED and not curvatures(problem, work):
            if plain < math.inf:
                break
            mode, left = PLAIN, 0
        if mode == PLAIN:
            for i in range(n):
                work.q[i] = 0.0
            for j in range(d):
                work.D[j] = 0.0
        build_hulls(problem, work)
        seat(work)
        simplex(problem, work, 400 if level == 0 else 60)
        bound = dual_bound(problem, work, False)
        if bound < best and not cutting:
            note(work)
        # What tightening dropped from the box is at most cut, and that is all that is known of it.
        best = min(best, max(bound, cut) if work.found[TIGHTENED] else bound)
        if half >= 0 and best == bound and closer == _CLOSER:
            learn(problem, work, parent, half, above - max(bound, cut))
        if best <= cut:
            return best
        if work.found[VALUE] == -math.inf:
            for j in range(d):
                x = min(work.u[j], max(work.l[j], work.x[j]))
                work.trial[j] = np.rint(x) if problem.integer[j] else x
            choose_categories(problem, work.x, work.trial)
            worth = max(1e-9, 0.02 * tolerance)
            work.found[VALUE] = ascend(problem, work, lower - 0.3 * (best - lower), worth)
        if mode == CURVED:
            adapt(problem, work)
            if left > 0 or plain <= best < math.inf:
                continue
        relaxed = choose_branch(problem, work, rule, max(lower, work.found[VALUE]))
        if mode == PLAIN:
            excess = bound - max(cut, max(lower, work.found[VALUE]) + tolerance)
            if closer > 0 and excess > 0.0 and bound - relaxed > 0.2 * excess:
                # The hulls are too coarse, rather than too far above the terms.
                closer -= 1
                left = 1
                look_closer(problem, work)
                continue
            if cutting:
                tighten(problem, work, bound, cut)
        store(problem, work, child, mode)
        if try_curved:
            try_curved = False
            plain = best
            mode, left = CURVED, 3 if level == 0 else 2
            if level == 0:
                for j in range(d):
                    work.centre[j] = work.x[j]
    if cutting and rule == COORDINATES_ONLY and (mode == CURVED or level % 3 == 0):
        for j in range(d):
            work.centre[j] = min(work.u[j], max(work.l[j], work.x[j]))
        if smooth(problem) and touch(problem, work):
            bound = touching(problem, work, 4)
            top = max(lower, work.found[VALUE])
            # Where curvature helps, such nodes are far cheaper, and their gaps fall faster.
            enough = _ABOUT_AS_GOOD if mode == CURVED and best < plain else 1.0
            if bound - top < enough * (best - top):
                best = min(best, max(bound, cut) if work.found[TIGHTENED] else bound)
                halve(problem, work)
                store(problem, work, child, TOUCHING)
    return best


@compiled
def grow(
    problem: Problem, work: Work, parent: Node, child: Node, place: int, half: int, rule: int,
    cutting: bool, level: int, lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    """A node by the rule that is given."""
    if rule == CORNERS:
        return grow_corner(problem, work, parent, child, half, cutting, cut)
    return grow_node(
        problem, work, parent, child, place, half, rule, cutting, level, lower, cut, tolerance,
        above,
    )  # fmt: skip
