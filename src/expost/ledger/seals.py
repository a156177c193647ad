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
    columns = ((subject,), (sequence,), (digest,), (tally,), (closed,), (reserved,), (last,))
    return head_seals(*columns)[0]


def head_seals(
    subjects: Iterable[int],
    sequences: Iterable[int],
    digests: Iterable[bytes],
    tallies: Iterable[bytes],
    closed: Iterable[bool],
    reserved: Iterable[str],
    last: Iterable[int],
) -> list[int]:
    """The seals of heads in columns."""
    crc32 = zlib.crc32
    # Numbers start the checksum. One that has another bit, however high, differs by a power of two
    # times its factor, which the prime does not divide: so any one bit changes it as well.
    return [
        crc32(
            digest + tally + key.encode() if key else digest + tally,
            (subject + sequence * 0x85EBCA6B + at * 0xC2B2AE35 + shut * 0x27D4EB2F) % _PRIME,
        )
        for subject, sequence, digest, tally, shut, key, at in zip(
            subjects, sequences, digests, tallies, closed, reserved, last, strict=False
        )
    ]
