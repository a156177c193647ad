"""A ledger in an SQLite file: the write-ahead log, every commit synchronized."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from expost.errors import InvalidInput, at
from expost.files.durable import sync_directory
from expost.ledger.backend import SCHEMA_VERSION, Commit, SqlBackend, check_schema_version
from expost.ledger.errors import LedgerBroken, LedgerDamaged, LedgerLocked, LedgerReadOnly
from expost.ledger.tables import TABLES, CommitRow, SubjectRow

if TYPE_CHECKING:
    import apsw

__all__ = ["MIGRATIONS", "REQUIRED", "RequiredPragma", "Sqlite"]

R = TypeVar("R", bound=tuple[Any, ...])

#: Tells a ledger from other databases: "exps".
APPLICATION_ID = 0x65787073

#: Before this version, two connections could reset a write-ahead log that was still needed.
OLDEST_SQLITE = (3, 51, 3)

_TYPES = {"integer": "INTEGER", "text": "TEXT", "bytes": "BLOB"}
# Messages arrive in any order of subjects, and each writes a page: small pages write less.
_PAGE_BYTES = 2048
_LOG_PAGES = 20_000
_CACHE_KIB = 16_000
_BUSY_MS = 10_000
_SIDE_FILES = ("-wal", "-shm")
_READ_ONLY = "the ledger cannot be changed: this process may not write to its file and its folder"


class RequiredPragma(NamedTuple):
    """A setting that durability depends on: what to ask for, and which values will do."""

    wanted: str
    good: tuple[Any, ...]
    reason: str


#: Set on every connection, and read back.
REQUIRED = {
    "synchronous": RequiredPragma(
        "FULL", (2, 3), "a power failure would take back released answers"
    ),
    "fullfsync": RequiredPragma("ON", (1,), "a power failure would take back released answers"),
    "checkpoint_fullfsync": RequiredPragma("ON", (1,), "a power failure could damage the database"),
    "cell_size_check": RequiredPragma("ON", (1,), "a damaged page would be read as if it were not"),
    "trusted_schema": RequiredPragma(
        "OFF", (0,), "a file from elsewhere could run code of its own"
    ),
    "mmap_size": RequiredPragma("0", (0, None), "an error of the disk would end the process"),
}


def _append_only(name: str) -> str:
    return f"""
CREATE TRIGGER {name}_no_delete BEFORE DELETE ON {name}
BEGIN SELECT RAISE(ABORT, '{name}: rows are never removed'); END;
CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {name}
BEGIN SELECT RAISE(ABORT, '{name}: rows are never changed'); END;
"""


_STUDY = """
CREATE TABLE study(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    document TEXT NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;
CREATE TRIGGER study_no_delete BEFORE DELETE ON study
BEGIN SELECT RAISE(ABORT, 'study: the policy is never removed'); END;
CREATE TRIGGER study_fixed BEFORE UPDATE ON study
WHEN new.document <> old.document OR new.epoch <> old.epoch + 1
BEGIN SELECT RAISE(ABORT, 'study: the policy is never changed'); END;
CREATE TRIGGER subjects_no_delete BEFORE DELETE ON subjects
BEGIN SELECT RAISE(ABORT, 'subjects: rows are never removed'); END;
CREATE TRIGGER subjects_forward BEFORE UPDATE ON subjects
WHEN new.name <> old.name OR new.number <> old.number OR new.kind <> old.kind
    OR new.sequence < old.sequence OR (old.state = 'barred' AND new.state <> 'barred')
BEGIN SELECT RAISE(ABORT, 'subjects: chains only grow'); END;
"""

_VERSION_2 = (
    "".join(table.definition(_TYPES, " STRICT, WITHOUT ROWID") for table in TABLES.values())
    + _STUDY
    + "".join(_append_only(table.name) for row, table in TABLES.items() if row is not SubjectRow)
)

#: Steps from schema version 2 on: version 2 + n is what the first n of these make of it.
MIGRATIONS: tuple[str, ...] = ()


_INSERT = {
    row: f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(table.columns))})"
    for row, table in TABLES.items()
}
_FIND = {
    row: f"SELECT {', '.join(table.quoted)} FROM {table.name} WHERE "
    + " AND ".join(f"{name} = ?" for name in table.quoted_key)
    for row, table in TABLES.items()
}
# The name comes first in a row and last in this statement.
_CHANGE = "UPDATE subjects SET {} WHERE name = ?1".format(
    ", ".join(f"{name} = ?{n}" for n, name in enumerate(TABLES[SubjectRow].quoted[1:], 2))
)

_STATE = "SELECT epoch, (SELECT max(number) FROM commits) FROM study"


class Sqlite(SqlBackend):
    """One connection to a database file."""

    placeholder = "?"

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path | None,
        copy: TemporaryDirectory[str] | None = None,
    ) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._path = path
        self._copy = copy
        self._epoch: Any = -1  # not claimed: no ledger has this epoch
        self._file = None if path is None else os.stat(path)

    @classmethod
    def create(cls, path: Path, document: str, root: bytes, *, vfs: str | None = None) -> None:
        """Make a new database file, which only its owner may read."""
        apsw = library()
        flags = apsw.SQLITE_OPEN_READWRITE
        if vfs is None:
            _create_file(path)
        else:
            flags |= apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(path), flags, vfs)
        try:
            if vfs is not None:
                connection.pragma("locking_mode", "EXCLUSIVE")
            connection.pragma("page_size", _PAGE_BYTES)
            connection.pragma("journal_mode", "wal")
            _apply_settings(connection)
            connection.execute("BEGIN IMMEDIATE")
            for step in (_VERSION_2, *MIGRATIONS):
                connection.execute(step)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA_VERSION)
            connection.execute("INSERT INTO study VALUES (1, ?, 0)", (document,))
            connection.execute(_INSERT[CommitRow], CommitRow(0, root, "[]"))
            connection.execute("COMMIT")
        except apsw.Error as error:
            raise LedgerBroken(f"the ledger could not be created ({error})") from None
        finally:
            connection.close()
        if vfs is None:
            sync_directory(path.parent)

    @classmethod
    def open(cls, path: Path, *, vfs: str | None = None) -> Sqlite:
        """Open an existing database, if all of its settings will do.

        A database that this process may not write is read from a temporary copy. A ``vfs`` of your
        own, as in tests, has the database to itself.
        """
        if vfs is not None:
            return cls(_connect(path, vfs), None)
        if is_writable(path):
            return cls(_connect(path), path)
        copy = TemporaryDirectory(prefix="expost-")
        try:
            return cls(_connect(_copy_database(path, Path(copy.name))), path, copy)
        except BaseException:
            copy.cleanup()
            raise

    def claim(self) -> None:
        if self._copy is not None:
            raise LedgerReadOnly(_READ_ONLY)
        self._check_file()
        apsw = library()
        try:
            # A killed process may have left a commit in the log that is not synchronized. It must
            # be on the disk before a checkpoint line says that it is.
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.execute("UPDATE study SET epoch = epoch + 1")
            ((self._epoch,),) = self._cursor.execute("SELECT epoch FROM study").fetchall()
            self._cursor.execute("COMMIT")
        except apsw.BusyError:
            self._roll_back()
            raise LedgerLocked("is locked by another process; try again") from None
        except apsw.Error as error:
            self._roll_back()
            raise LedgerBroken(f"the ledger could not be written ({error})") from None

    def commit(self, commit: Commit) -> None:
        apsw = library()
        self._check_file()
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            self._write(commit)
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            self._roll_back()
            raise LedgerBroken(
                f"the ledger could not be written ({error}); open it again when that is fixed"
            ) from None
        except BaseException:
            self._roll_back()
            raise

    def _write(self, commit: Commit) -> None:
        state = self._cursor.execute(_STATE).fetchall()
        if state != [(self._epoch, commit.tip.commit_number - 1)]:
            raise LedgerBroken("another process has taken over this ledger; open it again")
        insert = self._cursor.executemany
        insert(_INSERT[CommitRow], [CommitRow(*commit.tip, commit.events)])
        for row, rows in commit.added.items():
            insert(_INSERT[row], rows)
        if commit.changed:
            before = self._connection.total_changes()
            insert(_CHANGE, commit.changed)
            if self._connection.total_changes() - before != len(commit.changed):
                raise LedgerDamaged("a subject that was read cannot be found again")

    def _check_file(self) -> None:
        """Refuse to write to a file that was moved or replaced, or that has a second name."""
        if self._path is None or self._file is None:
            return
        try:
            now = os.stat(self._path)
        except OSError:
            raise LedgerBroken(f"the ledger is no longer at {self._path}") from None
        if not os.path.samestat(now, self._file):
            raise LedgerBroken(f"{self._path} was replaced by another file; open the ledger again")
        if now.st_nlink != 1:
            raise LedgerBroken(
                f"{self._path} has {now.st_nlink} names (hard links); remove all but one"
            )

    def _roll_back(self) -> None:
        with suppress(library().Error):
            self._cursor.execute("ROLLBACK")

    def release(self) -> None:
        self._epoch = -1

    def close(self) -> None:
        # Everything is durable already: an error while the log is copied loses nothing.
        with suppress(library().Error):
            self._connection.close(True)  # even if a statement was interrupted by an error
        if self._copy is not None:
            self._copy.cleanup()

    def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _reading:
            return self._cursor.execute(statement, values).fetchall()

    def _stream(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        with _reading:
            yield from self._connection.execute(statement, values)

    def find(self, row: type[R], keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], R]:
        width, make_row = TABLES[row].keys, row._make  # type: ignore[attr-defined]
        with _reading:
            rows = self._cursor.executemany(_FIND[row], keys)
            return {values[:width]: make_row(values) for values in rows}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with _reading:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    def check(self) -> list[str]:
        findings = self._fetch("PRAGMA integrity_check")
        return [f"the database is damaged: {line}" for (line,) in findings if line != "ok"]

    def backup(self, path: Path) -> None:
        with at(str(path), ": "):
            _create_file(path)
        try:
            _copy_open(self._connection, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        sync_directory(path.parent)


def library() -> ModuleType:
    """Return apsw, or say what to install; refuse a version with a known bug."""
    try:
        import apsw
    except ModuleNotFoundError:
        raise InvalidInput("a ledger requires apsw: pip install 'expost[ledger]'") from None
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise InvalidInput(
            f"got SQLite {version}, which can lose commits (the WAL-reset bug); expected {oldest} "
            "or newer. Run pip install -U apsw"
        )
    return apsw


def is_writable(path: Path) -> bool:
    """Return whether this process may write a database and the files next to it."""
    files = [path, *(Path(f"{path}{suffix}") for suffix in _SIDE_FILES)]
    return all(os.access(file if file.exists() else file.parent, os.W_OK) for file in files)


def _connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    apsw = library()
    with _reading:
        try:
            connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE, vfs)
        except apsw.CantOpenError:
            raise InvalidInput("cannot be opened as a database") from None
        try:
            connection.set_busy_timeout(_BUSY_MS)
            connection.wal_autocheckpoint(_LOG_PAGES)
            if vfs is not None:
                connection.pragma("locking_mode", "EXCLUSIVE")
            if connection.pragma("application_id") != APPLICATION_ID:
                raise InvalidInput("is not a ledger")
            connection.pragma("cache_size", -_CACHE_KIB)
            check_schema_version(int(connection.pragma("user_version") or 0))
            _apply_settings(connection)
        except BaseException:
            connection.close()
            raise
    return connection  # type: ignore[no-any-return]


def _apply_settings(connection: apsw.Connection) -> None:
    mode = connection.pragma("journal_mode")
    if mode != "wal":
        raise InvalidInput(
            f"got journal mode {mode!r}, with which a power failure could damage the ledger; "
            "expected 'wal'. Run PRAGMA journal_mode=wal in the sqlite3 shell"
        )
    # Otherwise SQLite reads a column that a damaged schema does not have as a string.
    connection.config(library().SQLITE_DBCONFIG_DQS_DML, 0)
    for name, (wanted, acceptable, reason) in REQUIRED.items():
        connection.pragma(name, wanted)
        setting = connection.pragma(name)
        if setting not in acceptable:
            raise InvalidInput(
                f"PRAGMA {name} is {setting!r} and cannot be set to {wanted}: {reason}"
            )


def _create_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidInput("already exists; ledgers are never overwritten") from None
    except OSError as error:
        raise InvalidInput(f"cannot be created: {error.strerror}") from None


def _copy_database(path: Path, folder: Path) -> Path:
    """Copy a database that cannot be written, with all of its commits, to a folder that can.

    SQLite cannot read a write-ahead log where it may not create an index of it. If another process
    has the database open, both files exist, and SQLite copies between two commits.
    """
    apsw = library()
    copy = folder / path.name
    log, index = (Path(f"{path}{suffix}") for suffix in _SIDE_FILES)
    try:
        if log.exists() and index.exists():
            source = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
            try:
                _copy_open(source, copy)
            finally:
                source.close()
            return copy
        shutil.copyfile(path, copy)
        if log.exists():
            shutil.copyfile(log, f"{copy}{_SIDE_FILES[0]}")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError) as error:
        raise InvalidInput(f"cannot be read: {error}") from None
    if index.exists():
        raise InvalidInput("another process has just opened it; try again")
    return copy


def _copy_open(source: apsw.Connection, path: Path) -> None:
    apsw = library()
    target = apsw.Connection(str(path))
    try:
        with target.backup("main", source, "main") as backup:
            backup.step()
        target.pragma("journal_mode", "wal")
    except apsw.Error as error:
        raise InvalidInput(f"cannot be copied: {error}", str(path)) from None
    finally:
        target.close()


class _Reading:
    """Raises what SQLite cannot read as damage. One object for all statements: it is stateless."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            return
        if issubclass(kind, UnicodeDecodeError):
            raise LedgerDamaged("the database cannot be read (a text is not UTF-8)") from None
        if issubclass(kind, library().BusyError):
            raise LedgerLocked("is locked by another process; try again") from None
        if issubclass(kind, library().Error):
            raise LedgerDamaged(f"the database cannot be read ({error})") from None


_reading = _Reading()
