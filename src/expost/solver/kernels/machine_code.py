"""Compiling the kernels with numba, which is imported only if no code is on disk."""

from __future__ import annotations

import os
from ctypes import c_double, c_int64
from typing import Any

# Intel's vector library, where there is one, would give different bits.
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit

from expost.solver.kernels import one_piece, problems, trees
from expost.solver.kernels.compiled import JitKernel, target_machine
from expost.solver.kernels.references import numba_type

__all__ = ["build"]

_LLVM = {None: ir.VoidType(), c_double: ir.DoubleType(), c_int64: ir.IntType(64)}
# Functions of the C library, which every process has.
_C_FUNCTIONS = frozenset(("erfc", "exp", "log", "log1p", "sqrt"))
_ENTRIES = problems.derive_fields, trees.advance, one_piece.best_corner, one_piece.climb


def build() -> bytes:
    """Compile an object file with all entries, which calls nothing but the C library."""
    machine = target_machine()
    linked = llvm.parse_assembly("")
    linked.triple, linked.data_layout = machine.triple, str(machine.target_data)
    for kernel in _ENTRIES:
        assert isinstance(kernel, JitKernel)
        module = _compiled(kernel)
        needed = {callee.name for callee in module.functions if callee.is_declaration}
        unknown = {name for name in needed if not name.startswith("llvm.")} - _C_FUNCTIONS
        assert not unknown, f"{kernel.symbol} calls what a process may not have: {sorted(unknown)}"
        linked.link_in(module)
    linked.verify()
    return bytes(machine.emit_object(linked))


def _compiled(kernel: JitKernel) -> Any:
    """Return a module with an entry that has the calling convention of C."""
    result, parameters = kernel.signature
    function = njit(
        numba_type(result)(*map(numba_type, parameters)), error_model="numpy", _nrt=False,
        no_cpython_wrapper=True, no_cfunc_wrapper=True,
    )(kernel.func)  # fmt: skip
    module = llvm.parse_assembly(function.inspect_llvm(function.signatures[0]))
    (native,) = (
        defined.name
        for defined in module.functions
        if not defined.is_declaration and defined.linkage == llvm.Linkage.external
    )
    module.link_in(llvm.parse_assembly(_wrapper(kernel, native)))
    return module


def _wrapper(kernel: JitKernel, native: str) -> str:
    """Return a C function that calls one of numba.

    The latter has two more arguments: where to put its result and its exception (there is none).
    Numba passes the words of a reference one by one, too.
    """
    pointer = ir.IntType(8).as_pointer()
    c_result, c_parameters = kernel.c_signature
    result, parameters = _LLVM[c_result], [_LLVM[kind] for kind in c_parameters]
    space = pointer if isinstance(result, ir.VoidType) else result
    module = ir.Module()
    arguments = [space.as_pointer(), pointer.as_pointer(), *parameters]
    callee = ir.Function(module, ir.FunctionType(ir.IntType(32), arguments), native)
    caller = ir.Function(module, ir.FunctionType(result, parameters), kernel.symbol)
    builder = ir.IRBuilder(caller.append_basic_block())
    returned, raised = builder.alloca(space), builder.alloca(pointer)
    builder.call(callee, [returned, raised, *caller.args])
    if isinstance(result, ir.VoidType):
        builder.ret_void()
    else:
        builder.ret(builder.load(returned))
    return str(module)
