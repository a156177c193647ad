"""Seals: checksums of the rows that decisions depend on, so that a flipped bit is noticed.

SQLite has none. They are against accidents; whoever changes rows on purpose is found by the chains.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from expost.ledger.errors import Damaged

__all__ = ["checked_name", "head_seal", "head_seals", "seal_of"]

_PRIME = (1 << 32) - 5


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
    # Numbers start the checksum. One that has another bit, however high, differs by a power of two
    # times its factor, which the prime does not divide: so any one bit changes it as well.
    start = (subject + sequence * 0x85EBCA6B + last * 0xC2B2AE35 + closed * 0x27D4EB2F) % _PRIME
    content = digest + tally
    return zlib.crc32(content + reserved.encode() if reserved else content, start)


def head_seals(subjects: Iterable[int], *columns: Iterable[Any]) -> list[int]:
    """The seals of heads in columns."""
    return list(map(head_seal, subjects, *columns))
