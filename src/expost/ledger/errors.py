"""Why a ledger stops. Bad arguments are another matter: :class:`InvalidInput`."""

from __future__ import annotations

from expost.errors import ExpostError, InvalidInput, make_printable

__all__ = [
    "LedgerBehind",
    "LedgerBroken",
    "LedgerDamaged",
    "LedgerLocked",
    "LedgerReadOnly",
    "LedgerStopped",
]


class LedgerStopped(ExpostError):
    """The ledger cannot continue as it is. Everything it released is recorded."""

    def __init__(self, reason: str) -> None:
        super().__init__(make_printable(reason))


class LedgerBroken(LedgerStopped):
    """A write failed, and it may or may not be recorded. No further write is accepted.

    Open the ledger again and repeat the request with its key: nothing is recorded twice.
    """


class LedgerDamaged(LedgerStopped):
    """The stored data is not what was recorded."""


class LedgerBehind(LedgerStopped):
    """The database is behind its checkpoint, or a fork: exchanges may be missing from it."""


class LedgerLocked(InvalidInput):
    """Another process is writing to the ledger."""


class LedgerReadOnly(InvalidInput):
    """This process may not write to the files of the ledger."""
