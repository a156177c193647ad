"""The kernels that the solver calls: machine code, or plain Python if NUMBA_DISABLE_JIT is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import machine_code
from expost.solver.kernels.layout import (
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
    _run(problems.derive_fields, [problem])


def advance(
    problem: PackedProblem, work: PackedRecord[Workspace], pool: NodePool,
    frontier: PackedRecord[Frontier], *limits: float,
) -> int:  # fmt: skip
    """Take some steps of a search; the limits and the result are those of ``trees.advance``."""
    return int(_run(trees.advance, [problem, work, pool, frontier], *limits))


def best_corner(problem: PackedProblem) -> tuple[float, Floats]:
    """Return the largest sum of unclipped FALLING terms over all corners, and the best corner."""
    corners: PackedRecord[CornerScratch] = PackedRecord(layout(CornerScratch, *problem.shape))
    best = float(_run(one_piece.best_corner, [problem, corners]))
    return best, corners.view("x")


def climb(problem: PackedProblem, signs: Floats, tolerance: float) -> tuple[Floats, Floats, Floats]:
    """Maximize a sum of unclipped RISING terms of scores σ_i t_i, for each row of signs.

    Returns values, by how much each may be too small, and the points.
    """
    arrays: PackedRecord[ClimbArrays] = PackedRecord(
        layout(ClimbArrays, *problem.shape, rows=len(signs))
    )
    arrays.view("signs")[:] = signs
    _run(one_piece.climb, [problem, arrays], tolerance)
    return arrays.view("values"), arrays.view("gaps"), arrays.view("at")


def _run(kernel: Any, records: Sequence[PackedRecord[Any] | NodePool], *scalars: float) -> Any:
    """Call a kernel with records and scalars."""
    code = machine_code()
    if code is not None:
        words = [word for record in records for word in record.reference]
        return code.function(kernel)(*words, *scalars)
    views = [record if isinstance(record, NodePool) else record.views for record in records]
    with np.errstate(all="ignore"):  # machine code does not warn of overflows either
        return kernel(*views, *scalars)
