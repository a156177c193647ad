"""Why a ledger stops. What it was given is another matter, and an :class:`InvalidInput`."""

from __future__ import annotations

from expost.errors import ExpostError, printable

__all__ = ["READ_ONLY", "Behind", "Broken", "Damaged", "LedgerStopped"]

READ_ONLY = "the ledger cannot be changed: this process may not write to its file and its folder"


class LedgerStopped(ExpostError):
    """The ledger cannot go on as it is. Nothing was released that is not recorded."""

    def __init__(self, reason: str) -> None:
        super().__init__(printable(reason))


class Broken(LedgerStopped):
    """A write failed, and nobody knows whether it is recorded. No further write is accepted.

    Open the ledger again and repeat the request with its key: it is answered once in any case.
    """


class Damaged(LedgerStopped):
    """What is kept is not what was recorded."""


class Behind(LedgerStopped):
    """The database is behind its checkpoint, or another one: somebody may have spent more."""
