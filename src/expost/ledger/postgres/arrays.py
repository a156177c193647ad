"""Columns of rows in PostgreSQL's own binary format for arrays, which takes the least time.

An array is a head (one dimension, no nulls, the kind of its elements, how many, counted from 1),
and for every element its length in bytes and its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any

import numpy as np

__all__ = ["number", "packed"]

_HEAD = Struct(">iiIii").pack
_LENGTH = Struct(">i").pack
_NUMBER = Struct(">q").pack
_ELEMENT = Struct(">iq").pack
_ELEMENTS = np.dtype([("length", ">i4"), ("value", ">i8")])
_FLAGS = (b"\0\0\0\1\0", b"\0\0\0\1\1")

# Up to so many numbers, each by itself takes less than all together.
_FEW = 16

# What the server calls the kinds.
_BOOLEAN, _BYTES, _BIGINT, _TEXT = 16, 17, 20, 25


def packed(kinds: Iterable[str], columns: Iterable[Sequence[Any]]) -> list[bytes]:
    """Columns with one element at least, each of the kind that is named."""
    return [_PACKED[kind](column) for kind, column in zip(kinds, columns, strict=True)]


def number(value: int) -> bytes:
    """A single number."""
    return _NUMBER(value)


def _numbers(values: Sequence[int]) -> bytes:
    if len(values) <= _FEW:
        return _head(_BIGINT, values) + b"".join([_ELEMENT(8, value) for value in values])
    elements = np.empty(len(values), dtype=_ELEMENTS)
    elements["length"] = 8
    elements["value"] = values
    return _head(_BIGINT, values) + elements.tobytes()


def _flags(values: Sequence[bool]) -> bytes:
    return _head(_BOOLEAN, values) + b"".join([_FLAGS[value] for value in values])


def _contents(values: Sequence[bytes], kind: int = _BYTES) -> bytes:
    lengths = set(map(len, values))
    if len(lengths) == 1:  # digests and keys: nothing is done for each of them
        return _head(kind, values) + _LENGTH(*lengths).join((b"", *values))
    parts = [part for value in values for part in (_LENGTH(len(value)), value)]
    return _head(kind, values) + b"".join(parts)


def _texts(values: Sequence[str]) -> bytes:
    return _contents([value.encode() for value in values], _TEXT)


def _head(kind: int, values: Sequence[Any]) -> bytes:
    return _HEAD(1, 0, kind, len(values), 1)


_PACKED: dict[str, Callable[[Sequence[Any]], bytes]] = {
    "bigint": _numbers,
    "boolean": _flags,
    "bytea": _contents,
    "text": _texts,
}
