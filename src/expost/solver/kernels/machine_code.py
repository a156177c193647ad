"""Compile the kernels with numba, which is imported only where nothing is kept yet."""

from __future__ import annotations

import os
from ctypes import c_double, c_int64
from typing import Any

# Intel's vector library, where there is one, would give other bits than everybody else's.
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import ENTRIES, target_machine
from expost.solver.kernels.layout import Climb, CornersOf, Frontier, Problem, Work
from expost.solver.kernels.references import pool_at, record_at

__all__ = ["build"]

_NUMBA = {None: types.void, c_double: types.float64, c_int64: types.int64}
_LLVM = {None: ir.VoidType(), c_double: ir.DoubleType(), c_int64: ir.IntType(64)}
# Of the C library, and so of every process.
_KNOWN = frozenset(("erfc", "exp", "log", "log1p", "sqrt"))


_problem_at, _work_at, _frontier_at = record_at(Problem), record_at(Work), record_at(Frontier)
_corners_at, _climb_at = record_at(CornersOf), record_at(Climb)


def _finish(problem: int, problem_layout: int) -> None:
    problems.finish(_problem_at(problem, problem_layout))


def _pursue(
    problem: int, problem_layout: int, work: int, work_layout: int, frontier: int,
    frontier_layout: int, pool: int, node_layout: int, node_size: int, rule: int, cutting: int,
    nodes: int, patience: int, steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    return trees.pursue(
        _problem_at(problem, problem_layout), _work_at(work, work_layout),
        pool_at(pool, node_layout, node_size), _frontier_at(frontier, frontier_layout),
        rule, cutting != 0, nodes, patience, steps, tolerance, enough,
    )  # fmt: skip


def _best_corner(problem: int, problem_layout: int, corners: int, corners_layout: int) -> float:
    return one_piece.best_corner(
        _problem_at(problem, problem_layout), _corners_at(corners, corners_layout)
    )


def _climb(
    problem: int, problem_layout: int, climb: int, climb_layout: int, tolerance: float
) -> None:
    one_piece.climb(_problem_at(problem, problem_layout), _climb_at(climb, climb_layout), tolerance)


_FUNCTIONS = {"finish": _finish, "pursue": _pursue, "best_corner": _best_corner, "climb": _climb}


def build() -> bytes:
    """An object file with all entries, which calls nothing but the C library."""
    machine = target_machine()
    whole = llvm.parse_assembly("")
    whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
    for name, function in _FUNCTIONS.items():
        module = _compiled(function, name)
        needed = {other.name for other in module.functions if other.is_declaration}
        unknown = {other for other in needed if not other.startswith("llvm.")} - _KNOWN
        assert not unknown, f"{name} calls what a process may not have: {sorted(unknown)}"
        whole.link_in(module)
    whole.verify()
    return bytes(machine.emit_object(whole))


def _compiled(function: Any, name: str) -> Any:
    """A module with an entry, which is called as functions of C are."""
    result, *given = (_NUMBA[kind] for kind in ENTRIES[name])
    kernel = njit(
        result(*given), error_model="numpy", _nrt=False,
        no_cpython_wrapper=True, no_cfunc_wrapper=True,
    )(function)  # fmt: skip
    module = llvm.parse_assembly(kernel.inspect_llvm(kernel.signatures[0]))
    (native,) = (
        other.name
        for other in module.functions
        if not other.is_declaration and other.linkage == llvm.Linkage.external
    )
    module.link_in(llvm.parse_assembly(_wrapper(name, native)))
    return module


def _wrapper(name: str, native: str) -> str:
    """A function of C that calls one of numba.

    The latter has two more arguments, where to put its result and its exception (there is none).
    """
    pointer = ir.IntType(8).as_pointer()
    result, *given = (_LLVM[kind] for kind in ENTRIES[name])
    space = pointer if isinstance(result, ir.VoidType) else result
    module = ir.Module()
    arguments = [space.as_pointer(), pointer.as_pointer(), *given]
    callee = ir.Function(module, ir.FunctionType(ir.IntType(32), arguments), native)
    caller = ir.Function(module, ir.FunctionType(result, given), f"expost_{name}")
    builder = ir.IRBuilder(caller.append_basic_block())
    returned, raised = builder.alloca(space), builder.alloca(pointer)
    builder.call(callee, [returned, raised, *caller.args])
    if isinstance(result, ir.VoidType):
        builder.ret_void()
    else:
        builder.ret(builder.load(returned))
    return str(module)
