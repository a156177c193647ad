"""The storage of a ledger: eleven methods in three groups, and the promise of each.

The engine decides and chains; a backend writes commits, finds rows by their keys, and scans tables.
tests/ledger/test_backends.py holds for every backend.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from expost.errors import InvalidInput
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import TABLES, SubjectRow

__all__ = ["SCHEMA_VERSION", "Backend", "Commit", "SqlBackend", "Tip", "check_schema_version"]

R = TypeVar("R", bound=tuple[Any, ...])

#: The version of the tables. Each backend has a list of migrations that lead to it from 2.
SCHEMA_VERSION = 2


class Tip(NamedTuple):
    """The number of a ledger's last commit, and the root after it."""

    commit_number: int
    root: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that one transaction writes."""

    tip: Tip
    #: The events that the checkpoint lists for this commit, as JSON.
    events: str
    #: New rows by their class.
    added: Mapping[type[Any], Sequence[tuple[Any, ...]]]
    #: Rows of registered subjects, as they are from now on.
    changed: Sequence[SubjectRow]


class Backend(Protocol):
    """Stores one ledger. Its methods are called by one thread at a time."""

    # -- write

    @abstractmethod
    def claim(self) -> None:
        """Become the only writer: an earlier one can no longer commit."""

    @abstractmethod
    def commit(self, commit: Commit) -> None:
        """Write a commit as a whole, durably: once this returns, no crash loses it.

        Raise :class:`LedgerBroken` if another writer has claimed the ledger, if the database was
        replaced, or if it is not known whether the commit was written.
        """

    @abstractmethod
    def release(self) -> None:
        """Stop being the writer, and let another process claim the ledger."""

    @abstractmethod
    def close(self) -> None:
        """Close the database."""

    # -- read

    @abstractmethod
    def policy(self) -> str:
        """Return the policy document that the ledger was created with."""

    @abstractmethod
    def tip(self) -> Tip:
        """Return the last commit; number 0 and the first root if there is none."""

    @abstractmethod
    def find(self, row: type[R], keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], R]:
        """Return the rows that have these primary keys, by their keys."""

    # -- scan

    @abstractmethod
    def scan(
        self, row: type[R], prefix: tuple[Any, ...] = (), *, after: int | None = None
    ) -> Iterator[R]:
        """Yield all rows of a table in the order of their primary keys.

        With a ``prefix``, only rows whose keys begin with it. With ``after``, only rows of later
        commits, and in the order of commits instead.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads within see the same commit."""

    @abstractmethod
    def check(self) -> list[str]:
        """Return what the database's own integrity check finds wrong."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Copy the database to a new file while it is in use."""


class SqlBackend(Backend):
    """Reads that are equal statements in all SQL databases."""

    #: Stands for a value in a statement.
    placeholder: ClassVar[str]

    @abstractmethod
    def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a statement."""

    @abstractmethod
    def _stream(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        """Yield the rows of a statement without reading all of them at once."""

    def policy(self) -> str:
        return str(self._fetch("SELECT document FROM study")[0][0])

    def tip(self) -> Tip:
        tips = self._fetch("SELECT number, root FROM commits ORDER BY number DESC LIMIT 1")
        if not tips:
            raise LedgerDamaged("there are no commits")
        return Tip(*tips[0])

    def scan(
        self, row: type[R], prefix: tuple[Any, ...] = (), *, after: int | None = None
    ) -> Iterator[R]:
        statement, values = TABLES[row].scan(prefix, after, self.placeholder)
        yield from map(row._make, self._stream(statement, values))  # type: ignore[attr-defined]


def check_schema_version(version: int) -> None:
    """Refuse tables that this version of expost cannot read."""
    if version < SCHEMA_VERSION:
        raise InvalidInput(
            f"was written by an older expost (schema version {version}, expected "
            f"{SCHEMA_VERSION}); finish the study with that version, or export and start again"
        )
    if version > SCHEMA_VERSION:
        raise InvalidInput(
            f"was written by a newer expost (schema version {version}, expected {SCHEMA_VERSION}); "
            "upgrade expost"
        )
