"""The kernels that the solver calls: machine code, or plain Python if NUMBA_DISABLE_JIT is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import machine_code
from expost.solver.kernels.layout import (
    WORD,
    ClimbArrays,
    CornerScratch,
    Floats,
    Frontier,
    NodePool,
    PackedProblem,
    PackedRecord,
    Workspace,
    layout,
)

__all__ = ["advance", "best_corner", "climb", "derive_fields"]


def derive_fields(problem: PackedProblem) -> None:
    """Compute all fields of a problem that follow from its inputs."""
    code = machine_code()
    if code is None:
        _plain(problems.derive_fields, problem.views)
    else:
        code.derive_fields(problem.address, problem.layout.address)


def advance(
    problem: PackedProblem, work: PackedRecord[Workspace], pool: NodePool,
    frontier: PackedRecord[Frontier], rule: int, cutting: bool, nodes: int, patience: int,
    steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    """Take up to ``steps`` steps of a search; return DONE, FULL or PAUSED of ``trees``."""
    code = machine_code()
    if code is None:
        return int(_plain(
            trees.advance, problem.views, work.views, pool, frontier.views, rule, cutting, nodes,
            patience, steps, tolerance, enough,
        ))  # fmt: skip
    return code.advance(
        problem.address, problem.layout.address, work.address, work.layout.address,
        frontier.address, frontier.layout.address, pool.address, pool.layout.address,
        pool.layout.size * WORD, rule, cutting, nodes, patience, steps, tolerance, enough,
    )  # fmt: skip


def best_corner(problem: PackedProblem) -> tuple[float, Floats]:
    """Return the largest sum of unclipped FALLING terms over all corners, and the best corner."""
    corners: PackedRecord[CornerScratch] = PackedRecord(layout(CornerScratch, *problem.shape))
    code = machine_code()
    if code is None:
        best = float(_plain(one_piece.best_corner, problem.views, corners.views))
    else:
        best = code.best_corner(
            problem.address, problem.layout.address, corners.address, corners.layout.address
        )
    return best, corners.view("x")


def climb(problem: PackedProblem, signs: Floats, tolerance: float) -> tuple[Floats, Floats, Floats]:
    """Maximize a sum of unclipped RISING terms of scores σ_i t_i, for each row of signs.

    Returns values, by how much each may be too small, and the points.
    """
    arrays: PackedRecord[ClimbArrays] = PackedRecord(
        layout(ClimbArrays, *problem.shape, rows=len(signs))
    )
    arrays.view("signs")[:] = signs
    code = machine_code()
    if code is None:
        _plain(one_piece.climb, problem.views, arrays.views, tolerance)
    else:
        code.climb(
            problem.address,
            problem.layout.address,
            arrays.address,
            arrays.layout.address,
            tolerance,
        )
    return arrays.view("values"), arrays.view("gaps"), arrays.view("at")


def _plain(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Run plain Python that, like machine code, does not warn of overflows."""
    with np.errstate(all="ignore"):
        return kernel(*arguments)
