"""Numba types for records: references of two words, which are quick to pass.

A tuple of all arrays of a record would be hundreds of words, which are copied at every call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, overload_method, register_model
from numba.np.arrayobj import make_array, populate_array

from expost.solver.kernels.layout import WORD, Node, NodePool, fields

__all__ = ["numba_type"]

_ELEMENTS = {np.float64: types.float64, np.int64: types.int64}
_WORD = ir.IntType(64)


class _Reference(types.Type):  # type: ignore[misc]
    """A record: the addresses of its block and of its directory."""

    words = "block", "directory"

    def __init__(self, record: type) -> None:
        super().__init__(name=f"reference({record.__name__})")
        self.arrays = {
            field.name: (index, types.Array(_ELEMENTS[field.type], len(field.shape), "C"))
            for index, field in enumerate(fields(record))
        }


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = _Reference

    def generic_resolve(self, reference: _Reference, name: str) -> Any:
        return reference.arrays[name][1]


@lower_getattr_generic(_Reference)
def _field(context: Any, builder: Any, reference: _Reference, value: Any, name: str) -> Any:
    """Load a field of a record: an array whose position is in the directory."""
    index, kind = reference.arrays[name]
    words = cgutils.create_struct_proxy(reference)(context, builder, value)
    directory = builder.inttoptr(words.directory, _WORD.as_pointer())
    word = ir.Constant(_WORD, WORD)

    def entry(column: int) -> Any:
        word_at = builder.load(builder.gep(directory, [ir.Constant(_WORD, 3 * index + column)]))
        # Nothing that a kernel writes changes it, so it need not be read again.
        word_at.set_metadata("invariant.load", builder.module.add_metadata([]))
        return word_at

    offset, length, width = map(entry, range(3))
    array = make_array(kind)(context, builder)
    data = builder.add(words.block, builder.mul(offset, word))
    populate_array(
        array,
        data=builder.inttoptr(data, array.data.type),
        shape=[length, width][: kind.ndim],
        strides=[builder.mul(width, word), word] if kind.ndim > 1 else [word],
        itemsize=word,
        meminfo=None,
    )
    return array._getvalue()


class _PoolReference(types.Type):  # type: ignore[misc]
    """A pool: the addresses of its first node and of a directory, and a node's size."""

    words = "block", "directory", "size"

    def __init__(self) -> None:
        super().__init__(name="pool")


@register_model(_Reference)
@register_model(_PoolReference)
class _Words(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: _Reference | _PoolReference) -> None:
        super().__init__(manager, reference, [(name, types.int64) for name in reference.words])


_POOL, _NODE = _PoolReference(), _Reference(Node)


@intrinsic
def _node_of(typing_context: Any, pool: Any, slot: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pool_words = cgutils.create_struct_proxy(_POOL)(context, builder, args[0])
        words = cgutils.create_struct_proxy(_NODE)(context, builder)
        words.block = builder.add(pool_words.block, builder.mul(args[1], pool_words.size))
        words.directory = pool_words.directory
        return words._getvalue()

    return _NODE(_POOL, types.int64), codegen


@overload_method(_PoolReference, "node")
def _node(pool: Any, slot: Any) -> Any:
    def node(pool: Any, slot: Any) -> Any:
        return _node_of(pool, slot)

    return node


_TYPES = {
    int: types.int64, bool: types.int64, float: types.float64, type(None): types.void,
    NodePool: _POOL,
}  # fmt: skip


def numba_type(kind: type) -> Any:
    """Return the type of a parameter of an entry; a record is passed as a reference."""
    return _TYPES.get(kind) or _Reference(kind)
