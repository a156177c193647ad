"""What the solver calls: machine code, or the same as plain Python if NUMBA_DISABLE_JIT says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import machine_code
from expost.solver.kernels.layout import (
    WORD,
    Climb,
    CornersOf,
    Floats,
    Frontier,
    PackedProblem,
    Pool,
    Record,
    Work,
    layout,
)

__all__ = ["best_corner", "climb", "finish", "pursue"]


def finish(problem: PackedProblem) -> None:
    """Work out all fields of a problem that follow from those that are given."""
    code = machine_code()
    if code is None:
        _plain(problems.finish, problem.views)
    else:
        code.finish(problem.address, problem.layout.address)


def pursue(
    problem: PackedProblem, work: Record[Work], pool: Pool, frontier: Record[Frontier], rule: int,
    cutting: bool, nodes: int, patience: int, steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    """Up to so many steps of a search: DONE, FULL or MORE of ``kernels/trees.py``."""
    code = machine_code()
    if code is None:
        return int(_plain(
            trees.pursue, problem.views, work.views, pool, frontier.views, rule, cutting, nodes,
            patience, steps, tolerance, enough,
        ))  # fmt: skip
    return code.pursue(
        problem.address, problem.layout.address, work.address, work.layout.address,
        frontier.address, frontier.layout.address, pool.address, pool.layout.address,
        pool.layout.size * WORD, rule, cutting, nodes, patience, steps, tolerance, enough,
    )  # fmt: skip


def best_corner(problem: PackedProblem) -> tuple[float, Floats]:
    """The largest sum of FALLING terms, unclipped, over all corners, and a corner that has it."""
    corners: Record[CornersOf] = Record(layout(CornersOf, *problem.shape))
    code = machine_code()
    if code is None:
        best = float(_plain(one_piece.best_corner, problem.views, corners.views))
    else:
        best = code.best_corner(
            problem.address, problem.layout.address, corners.address, corners.layout.address
        )
    return best, corners.view("x")


def climb(problem: PackedProblem, signs: Floats, tolerance: float) -> tuple[Floats, Floats, Floats]:
    """For each row of signs the largest sum of RISING terms, unclipped, of scores σ_i t_i.

    Returns values, by how much they may be too small, and where they are.
    """
    many: Record[Climb] = Record(layout(Climb, *problem.shape, rows=len(signs)))
    many.view("signs")[:] = signs
    code = machine_code()
    if code is None:
        _plain(one_piece.climb, problem.views, many.views, tolerance)
    else:
        code.climb(
            problem.address, problem.layout.address, many.address, many.layout.address, tolerance
        )
    return many.view("values"), many.view("gaps"), many.view("at")


def _plain(kernel: Callable[..., Any], *given: Any) -> Any:
    """Plain Python, which is as silent about what overflows as machine code."""
    with np.errstate(all="ignore"):
        return kernel(*given)
