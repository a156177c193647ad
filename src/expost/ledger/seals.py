"""Seals: checksums of rows that decisions depend on, so that a flipped bit is noticed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from expost.ledger.errors import Damaged

__all__ = ["checked_name", "head_seal", "sealed"]


def sealed(values: Sequence[Any]) -> int:
    """The seal of a row."""
    return zlib.crc32(repr(tuple(values)).encode())


def checked_name(number: int, name: str, found: int) -> str:
    """The name of a subject, if it has this seal."""
    if found != sealed((number, name)):
        raise Damaged(f"subject number {number} is not what was recorded")
    return name


def head_seal(
    subject: int, sequence: int, digest: bytes, tally: bytes, closed: bool, reserved: str, last: int
) -> int:
    """The seal of a head."""
    start = b"%d %d %d %d %s " % (subject, sequence, closed, last, reserved.encode())
    return zlib.crc32(tally, zlib.crc32(start + digest))
