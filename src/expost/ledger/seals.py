"""Seals: checksums of the rows that decisions depend on, so that a flipped bit is noticed.

SQLite has none. They are against accidents; whoever changes rows on purpose is found by the chains.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.ledger.errors import Damaged
from expost.ledger.records import Heads

__all__ = ["checked_name", "head_seal", "head_seals", "seal_of"]

Words = NDArray[np.uint64]

# The seal of a head is the sum of its words of 64 bits, each times another power of an odd number,
# but for multiples of 2^64. One bit changes it by an odd number times a power of two below that.
_FACTOR = 0x9E3779B97F4A7C15
_BITS, _MASK = 64, (1 << 64) - 1
_WORD, _DIGEST = 8, 32
# Where they begin: numbers, digest, tally.
_AT = 0, 6, 10
# Up to so many heads, each by itself takes less than all together.
_FEW = 24


def seal_of(values: Sequence[Any]) -> int:
    """The seal of a row."""
    return zlib.crc32(repr(tuple(values)).encode())


def checked_name(number: int, name: str, seal: int) -> str:
    """The name of a subject, if it is the one that was recorded."""
    if seal != seal_of((number, name)):
        raise Damaged(f"subject number {number} is not what was recorded")
    return name


def head_seal(
    subject: int, sequence: int, digest: bytes, tally: bytes, closed: bool, reserved: str, last: int
) -> int:
    """The seal of a head."""
    content = digest + tally + reserved.encode()
    count = -(-len(content) // _WORD)
    words = struct.unpack(f"<{count}Q", content.ljust(count * _WORD, b"\0"))
    total = 0
    numbers = last, last >> _BITS, closed, subject, sequence, len(tally)
    for word in reversed((*numbers, *words)):
        total = (total + word) * _FACTOR & _MASK
    return total - (total >> _BITS - 1 << _BITS)


def head_seals(subjects: Sequence[int], heads: Heads) -> list[int]:
    """The seals of the heads of some subjects."""
    if len(heads) > _FEW and heads.reserved.count("") == len(heads):
        with suppress(TypeError, OverflowError):  # of what was damaged
            odd = (heads.digest.lengths != _DIGEST) | (heads.tally.lengths % _WORD != 0)
            if not odd.any():
                return _seals(subjects, heads)
    return list(map(head_seal, subjects, *heads.columns))


def _seals(subjects: Sequence[int], heads: Heads) -> list[int]:
    """The same of many at once, all of which is whole words, with nothing reserved."""
    columns = *_halves(heads.last), heads.closed, subjects, heads.sequence
    words = [array("Q", each) for each in columns]
    numbers = np.array([*words, heads.tally.lengths], dtype=np.uint64)
    sizes, ends = heads.tally.sizes, heads.tally.sizes.cumsum()
    starts = ends - sizes
    powers = _powers(int(sizes.max()).bit_length())
    number, digest, tally = (powers[start:] for start in _AT)
    total = number[: len(numbers)] @ numbers
    digests = np.frombuffer(heads.digest.whole, dtype="<u8").reshape(len(heads), -1)
    total += digests @ digest[: digests.shape[1]]
    place = np.arange(ends[-1]) - starts.repeat(sizes)
    sums = np.zeros(len(place) + 1, dtype=np.uint64)
    np.cumsum(heads.tally.pairs.view("<u8") * tally.take(place), out=sums[1:])
    total += sums[ends] - sums[starts]
    result: list[int] = total.view(np.int64).tolist()
    return result


def _halves(numbers: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """The lower and the upper words of numbers; those of PostgreSQL have two."""
    if max(numbers) <= _MASK:
        return numbers, [0] * len(numbers)
    return [number & _MASK for number in numbers], [number >> _BITS for number in numbers]


@cache
def _powers(bits: int) -> Words:
    """Those of the factor, for a tally that has fewer than ``2**bits`` words."""
    return np.multiply.accumulate(np.full(_AT[-1] + (1 << bits), _FACTOR, dtype=np.uint64))
