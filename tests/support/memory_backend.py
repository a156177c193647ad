"""A ledger in memory, for speed: a backend that several processes may open, and that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from expost.errors import InvalidInput
from expost.ledger import Backend, Tip
from expost.ledger.backend import Commit
from expost.ledger.errors import LedgerBroken, LedgerDamaged
from expost.ledger.tables import TABLES, CommitRow, SubjectRow

__all__ = ["MemoryBackend", "MemoryRecords"]

R = TypeVar("R", bound=tuple[Any, ...])
Rows = dict[tuple[Any, ...], Any]


@dataclass
class MemoryRecords:
    """Everything that is durable."""

    document: str
    tables: dict[type[Any], Rows] = field(default_factory=dict)
    epoch: int = 0

    @classmethod
    def create(cls, document: str, root: bytes) -> MemoryRecords:
        """Make a new ledger."""
        tables: dict[type[Any], Rows] = {row: {} for row in TABLES}
        tables[CommitRow][0,] = CommitRow(0, root, "[]")
        return cls(document, tables)

    def copy(self) -> MemoryRecords:
        """Return a backup."""
        tables = {row: dict(rows) for row, rows in self.tables.items()}
        return MemoryRecords(self.document, tables, self.epoch)

    def restore(self, backup: MemoryRecords) -> None:
        """Put a backup in place, under every process that has this ledger open."""
        self.tables, self.epoch = backup.copy().tables, backup.epoch


class MemoryBackend(Backend):
    """A backend on records in memory."""

    compares_epoch = True
    """A backend that does not is a mutant."""

    def __init__(
        self, records: MemoryRecords, ending: Callable[[str], str] = lambda moment: ""
    ) -> None:
        self.records = records
        self._ending = ending
        """Called "before" and "after" a commit; anything it returns is why that fails."""
        self._epoch = 0

    def claim(self) -> None:
        self.records.epoch += 1
        self._epoch = self.records.epoch

    def commit(self, commit: Commit) -> None:
        self._fail("before")
        last = self.tip().commit_number
        if (self.compares_epoch and self._epoch != self.records.epoch) or (
            commit.tip.commit_number != last + 1
        ):
            raise LedgerBroken("another process has taken over this ledger; open it again")
        tables = {row: dict(rows) for row, rows in self.records.tables.items()}
        new = {**commit.added, CommitRow: [CommitRow(*commit.tip, commit.events)]}
        for row, rows in new.items():
            for each in rows:
                self._insert(tables[row], each[: TABLES[row].keys], each)
        for subject in commit.changed:
            if (subject.name,) not in tables[SubjectRow]:
                raise LedgerDamaged("a subject that was read cannot be found again")
            tables[SubjectRow][subject.name,] = subject
        self.records.tables = tables
        self._fail("after")

    def _fail(self, moment: str) -> None:
        reason = self._ending(moment)
        if reason:
            raise LedgerBroken(reason)

    @staticmethod
    def _insert(rows: Rows, key: tuple[Any, ...], row: Any) -> None:
        if key in rows:
            raise LedgerBroken("a key appears twice")
        rows[key] = row

    def release(self) -> None:
        pass

    def close(self) -> None:
        pass

    def policy(self) -> str:
        return self.records.document

    def tip(self) -> Tip:
        row = self.records.tables[CommitRow][max(self.records.tables[CommitRow])]
        return Tip(row.number, row.root)

    def find(self, row: type[R], keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], R]:
        rows = self.records.tables[row]
        return {key: rows[key] for key in keys if key in rows}

    def scan(
        self, row: type[R], prefix: tuple[Any, ...] = (), *, after: int | None = None
    ) -> Iterator[R]:
        rows = self.records.tables[row]
        if after is not None:
            own = [(each[0] if row is CommitRow else each.commit, each) for each in rows.values()]
            made = sorted((pair for pair in own if pair[0] > after), key=lambda pair: pair[0])
            return iter([each for _, each in made])
        keys = sorted(key for key in rows if key[: len(prefix)] == prefix)
        return iter([rows[key] for key in keys])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        yield

    def check(self) -> list[str]:
        return []

    def backup(self, path: Path) -> None:
        raise InvalidInput("a ledger in memory is not copied to a file")
