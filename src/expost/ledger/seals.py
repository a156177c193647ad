"""Seals: checksums of the rows that decisions depend on, so that a flipped bit is noticed.

SQLite has none. They are against accidents; whoever changes rows on purpose is found by the chains.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from expost.ledger.errors import Damaged

__all__ = ["checked_name", "head_seal", "head_seals", "seal_of"]

_PRIME = (1 << 32) - 5
_SEQUENCE, _LAST, _CLOSED = 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F
_FACTORS = np.array([1, _SEQUENCE, _LAST, _CLOSED])
# A digest is one number of eight words, of which each counts 2^32 times as much as the one before:
# five times as much, but for multiples of the prime.
_DIGEST, _WORDS = 32, 5 ** np.arange(8)
# Sums of numbers below this, times their factors, fit into a word.
_SMALL = 1 << 30
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
    # Numbers start the checksum, and the digest is one of them. One that has another bit, however
    # high, differs by a power of two times its factor, which the prime does not divide: so any one
    # bit changes it as well.
    numbers = subject + sequence * _SEQUENCE + last * _LAST + closed * _CLOSED
    start = (numbers + int.from_bytes(digest, "little")) % _PRIME
    return zlib.crc32(tally + reserved.encode() if reserved else tally, start)


def head_seals(
    subjects: Sequence[int],
    sequence: Sequence[int],
    digest: Sequence[bytes],
    tally: Sequence[bytes],
    closed: Sequence[bool],
    reserved: Sequence[str],
    last: Sequence[int],
) -> list[int]:
    """The seals of heads in columns."""
    if len(subjects) > _FEW and not any(reserved):
        digests = b"".join(digest)
        # What does not fit, or is no number at all, was damaged or comes from PostgreSQL.
        with suppress(TypeError, OverflowError):
            numbers = np.array([array("q", each) for each in (subjects, sequence, last, closed)])
            fits = numbers.min() >= 0 and numbers.max() < _SMALL
            if fits and len(digests) == _DIGEST * len(subjects):
                words = np.frombuffer(digests, dtype="<u4").reshape(len(subjects), -1)
                starts = (_FACTORS @ numbers + words @ _WORDS) % _PRIME
                return list(map(zlib.crc32, tally, starts.tolist()))
    return list(map(head_seal, subjects, sequence, digest, tally, closed, reserved, last))
