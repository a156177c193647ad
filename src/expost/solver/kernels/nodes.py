"""A node of the search tree: its bound, a point of it, and where to split it next."""

from __future__ import annotations

import math

import numpy as np

from expost.solver.kernels.bound import dual_bound
from expost.solver.kernels.branching import (
    COORDINATES_ONLY,
    CORNERS,
    choose_branch,
    choose_coordinate,
    record_gain,
)
from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.convex import grow_corner
from expost.solver.kernels.curvature import adapt_curvatures, set_curvatures
from expost.solver.kernels.hulls import build_hulls, refine_hulls
from expost.solver.kernels.intervals import propagate, tighten
from expost.solver.kernels.layout import TIGHTENED, VALUE, BoxProblem, Node, Workspace
from expost.solver.kernels.points import ascend, choose_categories
from expost.solver.kernels.simplex import place_on_knots, restore_basis, simplex
from expost.solver.kernels.storage import (
    CURVED,
    PLAIN,
    TOUCHING,
    load_half,
    save_multipliers,
    store_node,
)
from expost.solver.kernels.touching import (
    all_logistic,
    fit_parabolas,
    grow_touching,
    touching_parabola_bound,
)

__all__ = ["grow_node"]


_CLOSER = 8
_ABOUT_AS_GOOD = 2.0


@compiled
def grow_node(
    problem: BoxProblem, work: Workspace, parent: Node, child: Node, half: int, rule: int,
    cutting: bool, level: int, lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    """Turn one half of a node, or the root, into a node; return its bound.

    ``lower`` is the best known value, ``above`` the bound of the parent. Unless ``cutting``,
    nothing is cut off a half, and only its scores follow from its coordinates: proofs are easier to
    check that way. Nothing is stored if the bound is at most ``cut``. Whatever the stored box
    leaves out of the half is at most ``cut`` too. The value of a feasible point is left in
    ``outcome``, and the point in ``trial``.
    """
    if rule == CORNERS:
        return grow_corner(problem, work, parent, child, half, cutting, cut)
    n, d = problem.A.shape
    work.outcome[VALUE] = -math.inf
    work.outcome[TIGHTENED] = 0.0
    mode = load_half(problem, work, parent, half)
    if not propagate(problem, work, 3 if cutting else 1):
        return -math.inf
    if mode == TOUCHING:
        return grow_touching(problem, work, child, lower, cut, tolerance)
    restore_basis(problem, work)
    best = math.inf
    plain = math.inf
    rounds = 2 if mode == CURVED else 1
    try_curved = mode == PLAIN and rule == COORDINATES_ONLY and level % 3 == 0
    closer = _CLOSER
    while rounds > 0:
        rounds -= 1
        if mode == CURVED and not set_curvatures(problem, work):
            if plain < math.inf:
                break
            mode, rounds = PLAIN, 0
        if mode == PLAIN:
            for i in range(n):
                work.q[i] = 0.0
            for j in range(d):
                work.D[j] = 0.0
        build_hulls(problem, work)
        place_on_knots(work)
        simplex(problem, work, 400 if level == 0 else 60)
        bound = dual_bound(problem, work, False)
        if bound < best and not cutting:
            save_multipliers(work)
        # All that is known of what tightening cut off the box is that it is at most cut.
        best = min(best, max(bound, cut) if work.outcome[TIGHTENED] else bound)
        if half >= 0 and best == bound and closer == _CLOSER:
            record_gain(problem, work, parent, half, above - max(bound, cut))
        if best <= cut:
            return best
        if work.outcome[VALUE] == -math.inf:
            for j in range(d):
                x = min(work.u[j], max(work.l[j], work.x[j]))
                work.trial[j] = np.rint(x) if problem.integer[j] else x
            choose_categories(problem, work.x, work.trial)
            worth = max(1e-9, 0.02 * tolerance)
            work.outcome[VALUE] = ascend(problem, work, lower - 0.3 * (best - lower), worth)
        if mode == CURVED:
            adapt_curvatures(problem, work)
            if rounds > 0 or plain <= best < math.inf:
                continue
        relaxed = choose_branch(problem, work, rule, max(lower, work.outcome[VALUE]))
        if mode == PLAIN:
            excess = bound - max(cut, max(lower, work.outcome[VALUE]) + tolerance)
            if closer > 0 and excess > 0.0 and bound - relaxed > 0.2 * excess:
                # The hulls are too coarse, rather than too far above the terms.
                closer -= 1
                rounds = 1
                refine_hulls(problem, work)
                continue
            if cutting:
                tighten(problem, work, bound, cut)
        store_node(problem, work, child, mode)
        if try_curved:
            try_curved = False
            plain = best
            mode, rounds = CURVED, 3 if level == 0 else 2
            if level == 0:
                for j in range(d):
                    work.centre[j] = work.x[j]
    if cutting and rule == COORDINATES_ONLY and (mode == CURVED or level % 3 == 0):
        for j in range(d):
            work.centre[j] = min(work.u[j], max(work.l[j], work.x[j]))
        if all_logistic(problem) and fit_parabolas(problem, work):
            bound = touching_parabola_bound(problem, work, 4)
            top = max(lower, work.outcome[VALUE])
            # Where curvature helps, such nodes are far cheaper, and their gaps fall faster.
            enough = _ABOUT_AS_GOOD if mode == CURVED and best < plain else 1.0
            if bound - top < enough * (best - top):
                best = min(best, max(bound, cut) if work.outcome[TIGHTENED] else bound)
                choose_coordinate(problem, work, work.centre)
                store_node(problem, work, child, TOUCHING)
    return best
