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

from expost.solver.kernels.layout import WORD, Node, fields

__all__ = ["pool_at", "record_at"]

_TYPES = {np.float64: types.float64, np.int64: types.int64}
_WORD = ir.IntType(64)


class _Reference(types.Type):  # type: ignore[misc]
    """A record: the addresses of its block and of its directory."""

    def __init__(self, record: type) -> None:
        super().__init__(name=f"reference({record.__name__})")
        self.arrays = {
            field.name: (index, types.Array(_TYPES[field.type], len(field.shape), "C"))
            for index, field in enumerate(fields(record))
        }


@register_model(_Reference)
class _TwoWords(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: _Reference) -> None:
        super().__init__(manager, reference, [("block", types.int64), ("directory", types.int64)])


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


def record_at(record: type) -> Any:
    """Return a function of two addresses, of a block and of its directory: the record there."""
    reference = _Reference(record)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = cgutils.create_struct_proxy(reference)(context, builder)
        words.block, words.directory = args
        return words._getvalue()

    @intrinsic
    def at(typing_context: Any, block: Any, directory: Any) -> Any:
        return reference(types.int64, types.int64), codegen

    return at


class _PoolReference(types.Type):  # type: ignore[misc]
    """A pool: the addresses of its first node and of a directory, and a node's size."""

    def __init__(self) -> None:
        super().__init__(name="pool")


@register_model(_PoolReference)
class _ThreeWords(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: _PoolReference) -> None:
        words = [(name, types.int64) for name in ("block", "directory", "size")]
        super().__init__(manager, reference, words)


_POOL, _NODE = _PoolReference(), _Reference(Node)


@intrinsic
def pool_at(typing_context: Any, block: Any, directory: Any, size: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = cgutils.create_struct_proxy(_POOL)(context, builder)
        words.block, words.directory, words.size = args
        return words._getvalue()

    return _POOL(types.int64, types.int64, types.int64), codegen


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
