"""Compile the kernels with numba. Nothing else imports it, and only where nothing is kept yet."""

from __future__ import annotations

import os
from ctypes import c_double, c_int64
from typing import Any

# Intel's vector library, where there is one, would give other bits than everybody else's.
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from expost.solver.kernels import nodes, one_piece, problems
from expost.solver.kernels.compiled import ENTRIES, target_machine
from expost.solver.kernels.layout import WORD, Climb, CornersOf, Node, Problem, Work, fields

__all__ = ["build"]

_TYPES = {np.float64: types.float64, np.int64: types.int64}
_NUMBA = {None: types.void, c_double: types.float64, c_int64: types.int64}
_LLVM = {None: ir.VoidType(), c_double: ir.DoubleType(), c_int64: ir.IntType(64)}
_WORD = ir.IntType(64)
# Of the C library, and so of every process.
_KNOWN = frozenset(("erfc", "exp", "log", "log1p", "sqrt"))


def _at(record: type) -> Any:
    """A function of two addresses, of a block and of its directory: the record there."""
    table = fields(record)
    arrays = [types.Array(_TYPES[field.type], len(field.shape), "C") for field in table]
    tuple_type = types.NamedTuple(arrays, record)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block, directory = args
        directory = builder.inttoptr(directory, _WORD.as_pointer())
        word = ir.Constant(_WORD, WORD)

        def entry(place: int) -> Any:
            return builder.load(builder.gep(directory, [ir.Constant(_WORD, place)]))

        values = []
        for place, kind in enumerate(arrays):
            offset, length, width = (entry(3 * place + k) for k in range(3))
            array = make_array(kind)(context, builder)
            row = builder.mul(width, word)
            data = builder.add(block, builder.mul(offset, word))
            populate_array(
                array,
                data=builder.inttoptr(data, array.data.type),
                shape=[length, width][: kind.ndim],
                strides=[row, word] if kind.ndim > 1 else [word],
                itemsize=word,
                meminfo=None,
            )
            values.append(array._getvalue())
        return context.make_tuple(builder, tuple_type, values)

    @intrinsic
    def at(typing_context: Any, block: Any, directory: Any) -> Any:
        return tuple_type(types.int64, types.int64), codegen

    return at


_problem_at, _work_at, _node_at = _at(Problem), _at(Work), _at(Node)
_corners_at, _climb_at = _at(CornersOf), _at(Climb)


def _finish(problem: int, problem_layout: int) -> None:
    problems.finish(_problem_at(problem, problem_layout))


def _grow(
    problem: int, problem_layout: int, work: int, work_layout: int, parent: int, child: int,
    node_layout: int, place: int, half: int, rule: int, cutting: int, level: int,
    lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    return nodes.grow(
        _problem_at(problem, problem_layout), _work_at(work, work_layout),
        _node_at(parent, node_layout), _node_at(child, node_layout),
        place, half, rule, cutting != 0, level, lower, cut, tolerance, above,
    )  # fmt: skip


def _best_corner(problem: int, problem_layout: int, corners: int, corners_layout: int) -> float:
    return one_piece.best_corner(
        _problem_at(problem, problem_layout), _corners_at(corners, corners_layout)
    )


def _climb(
    problem: int, problem_layout: int, climb: int, climb_layout: int, tolerance: float
) -> None:
    one_piece.climb(_problem_at(problem, problem_layout), _climb_at(climb, climb_layout), tolerance)


_FUNCTIONS = {"finish": _finish, "grow": _grow, "best_corner": _best_corner, "climb": _climb}


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
