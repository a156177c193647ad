"""Compiling the kernels with numba, which is imported only if no code is on disk."""

from __future__ import annotations

import os
from ctypes import c_double, c_int64
from typing import Any

# Intel's vector library, where there is one, would give different bits.
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import ENTRIES, target_machine
from expost.solver.kernels.layout import BoxProblem, ClimbArrays, CornerScratch, Frontier, Workspace
from expost.solver.kernels.references import pool_at, record_at

__all__ = ["build"]

_NUMBA = {None: types.void, c_double: types.float64, c_int64: types.int64}
_LLVM = {None: ir.VoidType(), c_double: ir.DoubleType(), c_int64: ir.IntType(64)}
# Functions of the C library, which every process has.
_C_FUNCTIONS = frozenset(("erfc", "exp", "log", "log1p", "sqrt"))


_problem_at, _work_at, _frontier_at = (
    record_at(BoxProblem),
    record_at(Workspace),
    record_at(Frontier),
)
_corners_at, _climb_at = record_at(CornerScratch), record_at(ClimbArrays)


def _derive_fields(problem: int, problem_layout: int) -> None:
    problems.derive_fields(_problem_at(problem, problem_layout))


def _advance(
    problem: int, problem_layout: int, work: int, work_layout: int, frontier: int,
    frontier_layout: int, pool: int, node_layout: int, node_size: int, rule: int, cutting: int,
    nodes: int, patience: int, steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    return trees.advance(
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


_FUNCTIONS = {
    "derive_fields": _derive_fields,
    "advance": _advance,
    "best_corner": _best_corner,
    "climb": _climb,
}


def build() -> bytes:
    """Compile an object file with all entries, which calls nothing but the C library."""
    machine = target_machine()
    linked = llvm.parse_assembly("")
    linked.triple, linked.data_layout = machine.triple, str(machine.target_data)
    for name, function in _FUNCTIONS.items():
        module = _compiled(function, name)
        needed = {callee.name for callee in module.functions if callee.is_declaration}
        unknown = {name for name in needed if not name.startswith("llvm.")} - _C_FUNCTIONS
        assert not unknown, f"{name} calls what a process may not have: {sorted(unknown)}"
        linked.link_in(module)
    linked.verify()
    return bytes(machine.emit_object(linked))


def _compiled(function: Any, name: str) -> Any:
    """Return a module with an entry that has the calling convention of C."""
    result, *arguments = (_NUMBA[kind] for kind in ENTRIES[name])
    kernel = njit(
        result(*arguments), error_model="numpy", _nrt=False,
        no_cpython_wrapper=True, no_cfunc_wrapper=True,
    )(function)  # fmt: skip
    module = llvm.parse_assembly(kernel.inspect_llvm(kernel.signatures[0]))
    (native,) = (
        defined.name
        for defined in module.functions
        if not defined.is_declaration and defined.linkage == llvm.Linkage.external
    )
    module.link_in(llvm.parse_assembly(_wrapper(name, native)))
    return module


def _wrapper(name: str, native: str) -> str:
    """Return a C function that calls one of numba.

    The latter has two more arguments: where to put its result and its exception (there is none).
    """
    pointer = ir.IntType(8).as_pointer()
    result, *parameters = (_LLVM[kind] for kind in ENTRIES[name])
    space = pointer if isinstance(result, ir.VoidType) else result
    module = ir.Module()
    arguments = [space.as_pointer(), pointer.as_pointer(), *parameters]
    callee = ir.Function(module, ir.FunctionType(ir.IntType(32), arguments), native)
    caller = ir.Function(module, ir.FunctionType(result, parameters), f"expost_{name}")
    builder = ir.IRBuilder(caller.append_basic_block())
    returned, raised = builder.alloca(space), builder.alloca(pointer)
    builder.call(callee, [returned, raised, *caller.args])
    if isinstance(result, ir.VoidType):
        builder.ret_void()
    else:
        builder.ret(builder.load(returned))
    return str(module)
