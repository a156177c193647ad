"""Seals: checksums of the rows that decisions depend on, so that a flipped bit is noticed.

SQLite has none. They are against accidents; whoever changes rows on purpose is found by the chains.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from expost.ledger.errors import Damaged

__all__ = ["checked_name", "head_seal", "seal_of"]


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
    # Numbers start the checksum, so that any one bit of them changes it as well.
    start = subject * 0x9E3779B1 ^ sequence * 0x85EBCA6B ^ last * 0xC2B2AE35 ^ closed
    seal = zlib.crc32(tally, zlib.crc32(digest, start & 0xFFFFFFFF))
    return zlib.crc32(reserved.encode(), seal) if reserved else seal
