"""Connections to a database of SQLite: made, opened, upgraded, and waited for."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from expost.errors import InvalidInput
from expost.files.durable import sync_directory
from expost.ledger.errors import Broken, Damaged
from expost.ledger.schema import APPLICATION, MIGRATIONS
from expost.ledger.settings import apply, check_version

if TYPE_CHECKING:
    import apsw

__all__ = ["connect", "copy_database", "create_database", "is_writable", "library", "reading"]

# The write-ahead log of a database, and the index of that log.
_WITH_DATABASE = ("-wal", "-shm")
# Another process holds the database for as long as one commit takes, so this is a minute or so.
_PATIENCE = 60_000
_PAUSE = 0.001
# Those who answer are anywhere, and a page is written for each: smaller ones than usual take less.
_PAGE = 2048
# Pages of the log before they are copied into the database, some 40 MB. With a shorter one most
# pages would be copied for one row each.
_LOG = 20_000
# KiB of pages in memory: as many as a commit of a round reads first and then writes.
_KEPT = 16_000


def create_database(path: Path, document: str, root: bytes, *, vfs: str | None = None) -> None:
    """Make a new database with a policy and the root before the first commit.

    One that is there already is never written over.
    """
    apsw = library()
    flags = apsw.SQLITE_OPEN_READWRITE
    if vfs is None:
        _reserve_name(path)
    else:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(str(path), flags, vfs)
    try:
        if vfs is not None:
            connection.pragma("locking_mode", "EXCLUSIVE")
        connection.pragma("page_size", _PAGE)
        connection.pragma("journal_mode", "wal")
        apply(connection)
        connection.execute("BEGIN IMMEDIATE")
        _migrate(connection, 0)
        connection.pragma("application_id", APPLICATION)
        connection.execute("INSERT INTO policy VALUES (1, ?)", (document,))
        connection.execute("INSERT INTO commits VALUES (0, ?)", (root,))
        connection.execute("COMMIT")
    except apsw.Error as error:
        raise Broken(f"the ledger could not be created ({error})") from None
    finally:
        connection.close()
    if vfs is None:
        sync_directory(path.parent)


def connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    """Open a database that is there, if all of its settings will do.

    A ``vfs`` of your own, as for tests, has the database to itself.
    """
    apsw = library()
    with reading:
        try:
            connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE, vfs)
        except apsw.CantOpenError:
            raise InvalidInput("is no file that may be read and written") from None
        try:
            connection.set_busy_handler(_wait)
            connection.wal_autocheckpoint(_LOG)
            if vfs is not None:
                connection.pragma("locking_mode", "EXCLUSIVE")
            if connection.pragma("application_id") != APPLICATION:
                raise InvalidInput("is not a ledger")
            connection.pragma("cache_size", -_KEPT)
            apply(connection)
            _settle(connection)
            _upgrade(connection)
        except BaseException:
            connection.close()
            raise
    return connection  # type: ignore[no-any-return]


def is_writable(path: Path) -> bool:
    """Whether this process may write to a database and create the files that go with it."""
    files = [path, *(Path(f"{path}{suffix}") for suffix in _WITH_DATABASE)]
    return all(os.access(file if file.exists() else file.parent, os.W_OK) for file in files)


def copy_database(path: Path, folder: Path) -> Path:
    """Copy a database that cannot be written, with all of its commits, into a folder that can.

    SQLite cannot open a database with a write-ahead log where it may not make an index of the log.
    A process that has the database open keeps both files; then SQLite copies it between commits.
    """
    copy = folder / path.name
    log, index = (Path(f"{path}{suffix}") for suffix in _WITH_DATABASE)
    if log.exists() and index.exists():
        _back_up(path, copy)
        return copy
    try:
        shutil.copyfile(path, copy)
        if log.exists():
            shutil.copyfile(log, f"{copy}{_WITH_DATABASE[0]}")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    if index.exists():
        raise InvalidInput("another process has just opened it; try again")
    return copy


def _back_up(path: Path, copy: Path) -> None:
    apsw = library()
    with reading:
        try:
            with (
                closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as source,
                closing(apsw.Connection(str(copy))) as target,
                target.backup("main", source, "main") as backup,
            ):
                source.set_busy_handler(_wait)
                backup.step()
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError) as error:
            raise InvalidInput(f"cannot be read: {error}") from None


def _settle(connection: apsw.Connection) -> None:
    """Have everything on the disk that can be read.

    A process that was killed may have written a commit that is not synchronized. It is found when
    the log is recovered, and would be released by a retry; a loss of power would take it back.
    """
    apsw = library()
    for tries in itertools.count():
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return
        except apsw.BusyError:
            if not _wait(tries):
                raise InvalidInput("another process holds it and does not let go") from None


def library() -> ModuleType:
    """The library, or what to do to have it; none with a known bug."""
    try:
        import apsw
    except ModuleNotFoundError:
        raise InvalidInput("a ledger needs apsw: pip install 'expost[ledger]'") from None
    check_version(apsw.sqlite_lib_version())
    return apsw


def _wait(tries: int) -> bool:
    """Wait for another process, for no round time: whoever waits in step stays in step."""
    jitter = time.perf_counter_ns() * 2_654_435_761 % 1_000_003 / 1_000_003
    time.sleep(_PAUSE * jitter)
    return tries < _PATIENCE


class _Reading:
    """What SQLite cannot read is damaged."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            return
        import apsw

        unreadable = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.IOError)
        if issubclass(kind, unreadable):
            raise Damaged(f"the database cannot be read ({error})") from None
        if issubclass(kind, UnicodeDecodeError):
            raise Damaged("the database cannot be read (a text is not UTF-8)") from None


reading = _Reading()
"""One for all, for it holds nothing; a generator for each statement would take longer."""


def _reserve_name(path: Path) -> None:
    """Have an empty file, unless there is one already."""
    try:
        path.open("xb").close()
    except FileExistsError:
        raise InvalidInput("is there already, and is not written over") from None
    except OSError as error:
        raise InvalidInput(f"cannot be created: {error.strerror}") from None


def _migrate(connection: apsw.Connection, version: int) -> None:
    """Go through the steps after a version."""
    for step in MIGRATIONS[version:]:
        connection.execute(step)
    connection.pragma("user_version", len(MIGRATIONS))


def _upgrade(connection: apsw.Connection) -> None:
    """Bring an older database to the current schema, as a whole or not at all."""
    version = int(connection.pragma("user_version") or 0)
    if not 0 < version <= len(MIGRATIONS):
        raise InvalidInput(
            f"has schema version {version}, and this expost knows {len(MIGRATIONS)}; a newer "
            "expost wrote it"
        )
    if version < len(MIGRATIONS):
        with connection:
            _migrate(connection, version)
