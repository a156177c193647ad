"""A ledger in a schema of a PostgreSQL database: one connection, every commit flushed to disk.

A writer holds an advisory lock for as long as its connection lives, and every commit compares the
epoch. A write that fails closes the connection: the server rolls back what it has not committed,
and opening the ledger again finds out which commit is the last.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from expost.errors import ExpostError, InvalidInput
from expost.ledger.backend import SCHEMA_VERSION, Commit, SqlBackend, check_schema_version
from expost.ledger.database_url import shown_url
from expost.ledger.errors import LedgerBroken, LedgerDamaged, LedgerLocked, LedgerReadOnly
from expost.ledger.tables import TABLES, CommitRow, SubjectRow
from expost.numbers import blocks

if TYPE_CHECKING:
    import psycopg

__all__ = ["MIGRATIONS", "REQUIRED", "Postgres"]

R = TypeVar("R", bound=tuple[Any, ...])

# As the server numbers its versions: PostgreSQL 13.
OLDEST_SERVER = 130_000
# Settings that must not be off. They are read again in every commit.
REQUIRED = ("fsync", "full_page_writes", "synchronous_commit")

_TYPES = {"integer": "bigint", "text": 'text COLLATE "C"', "bytes": "bytea"}
_ARRAYS = {"integer": "bigint[]", "text": "text[]", "bytes": "bytea[]"}
# Rows in one statement. A parameter may have a gigabyte, and a document a megabyte.
_STATEMENT_ROWS = 500
# Rows that a scan has in memory.
_SCAN_ROWS = 2000
# How long the server may take to notice that the last writer was killed, in seconds.
_PATIENCE = 2.0
_PAUSE = 0.02

# A lost connection raises an error of ours; psycopg would also print a line about it.
_NO_OUTPUT = logging.NullHandler()

_WRITE_FAILED = "the ledger could not be written ({}); open it again when that is fixed"
_COMMIT_FAILED = "it is not known whether the last commit was written ({}); open the ledger again"
_TAKEN_OVER = "another process has taken over this ledger; open it again"

# Plans are made once, perhaps while the tables are empty, and used while they grow. So rows are
# always found by their keys; only the scans of a snapshot may read a table from end to end.
_SESSION = """
SET lock_timeout = '60s'; SET idle_in_transaction_session_timeout = 0; SET jit = off;
SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'
"""
_SNAPSHOT = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL enable_seqscan = on; SET LOCAL cursor_tuple_fraction = 1
"""
_SETTINGS = ", ".join(f"current_setting('{name}')" for name in REQUIRED)
# The row is locked until the transaction ends, so no other process claims the ledger in between.
_STATE = f"SELECT epoch, (SELECT max(number) FROM commits), {_SETTINGS} FROM study FOR UPDATE"
_CLAIM = f"UPDATE study SET epoch = epoch + 1 RETURNING epoch, {_SETTINGS}"
_SCHEMA = "SELECT relnamespace FROM pg_class WHERE oid = 'study'::regclass"
# The first number stands for expost.
_LOCK_ID = f"1702391923, ({_SCHEMA})::integer"
_ENABLED_TRIGGERS = f"""
SELECT relname::text, tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = ({_SCHEMA}) AND tgenabled <> 'D'
"""


_STUDY = """
CREATE TABLE study(
    one bigint PRIMARY KEY CHECK (one = 1),
    document text NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL
);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION '%: rows are never changed or removed', TG_TABLE_NAME; END$$;
"""

# Triggers by table and name, and the statements that each of them refuses.
_TRIGGERS = {
    (table.name, "append_only"): "BEFORE UPDATE OR DELETE OR TRUNCATE ON {} FOR EACH STATEMENT"
    for row, table in TABLES.items()
    if row is not SubjectRow
} | {
    ("study", "permanent"): "BEFORE DELETE OR TRUNCATE ON {} FOR EACH STATEMENT",
    ("study", "fixed"): """BEFORE UPDATE ON {} FOR EACH ROW WHEN (
        NEW.document <> OLD.document OR NEW.epoch <> OLD.epoch + 1 OR NEW.version < OLD.version)""",
    ("subjects", "permanent"): "BEFORE DELETE OR TRUNCATE ON {} FOR EACH STATEMENT",
    # After the update: before it, each row would have to be locked first, which is also logged.
    ("subjects", "forward"): """AFTER UPDATE ON {} FOR EACH ROW WHEN (
        NEW.name <> OLD.name OR NEW.number <> OLD.number OR NEW.kind <> OLD.kind
        OR NEW.sequence < OLD.sequence OR (OLD.state = 'barred' AND NEW.state <> 'barred'))""",
}

_VERSION_2 = "".join(
    [
        *(
            # With room on its page, a row that changes needs no new entry in the index.
            table.definition(_TYPES, " WITH (fillfactor = 60)" if row is SubjectRow else "")
            for row, table in TABLES.items()
        ),
        _STUDY,
        *(
            f"CREATE TRIGGER {name} {event.format(table)} EXECUTE FUNCTION refuse();\n"
            for (table, name), event in _TRIGGERS.items()
        ),
    ]
)

#: Steps from schema version 2 on: version 2 + n is what the first n of these make of it.
MIGRATIONS: tuple[str, ...] = ()


@cache
def _statement(operation: str, row: type[Any]) -> str:
    """Return a statement about many rows, whose parameters are their columns."""
    table = TABLES[row]
    width = table.keys if operation == "find" else len(table.columns)
    arrays = ", ".join(f"%b::{_ARRAYS[operation]}" for operation in table.types[:width])
    parameters = f"unnest({arrays}) AS given({', '.join(table.quoted[:width])})"
    same_key = " AND ".join(f"stored.{name} = given.{name}" for name in table.quoted_key)
    if operation == "insert":
        return f"INSERT INTO {table.name}({', '.join(table.quoted)}) SELECT * FROM {parameters}"
    if operation == "find":
        columns = ", ".join(f"stored.{name}" for name in table.quoted)
        return f"SELECT {columns} FROM {parameters} JOIN {table.name} AS stored ON {same_key}"
    changes = ", ".join(f"{name} = given.{name}" for name in table.quoted[table.keys :])
    return f"UPDATE {table.name} AS stored SET {changes} FROM {parameters} WHERE {same_key}"


class Postgres(SqlBackend):
    """One connection to a database; the tables are in the first schema of its search path."""

    placeholder = "%s"

    def __init__(self, url: str, connection: psycopg.Connection[Any]) -> None:
        self._url = url
        self._connection = connection
        self._epoch = -1  # not claimed: no ledger has this epoch
        self._may_reconnect = True
        self._in_snapshot = False
        self._scans = count(1)

    @classmethod
    def create(cls, url: str, document: str, root: bytes) -> None:
        """Make the tables in an existing schema."""
        psycopg = driver()
        connection = _connect(url)
        try:
            with connection.transaction():
                for step in (_VERSION_2, *MIGRATIONS):
                    connection.execute(step.encode(), prepare=False)
                policy = (document, SCHEMA_VERSION)
                connection.execute("INSERT INTO study VALUES (1, %s, 0, %s)", policy)
                connection.execute(_statement("insert", CommitRow).encode(), [[0], [root], ["[]"]])
        except (psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
            raise InvalidInput("already exists; ledgers are never overwritten") from None
        except psycopg.ProgrammingError as error:
            raise InvalidInput(f"cannot be created: {_first_line(error)}") from None
        except psycopg.Error as error:
            raise LedgerBroken(f"the ledger could not be created ({_first_line(error)})") from None
        finally:
            connection.close()

    @classmethod
    def open(cls, url: str) -> Postgres:
        """Open an existing ledger, if all settings of its server will do."""
        return cls(url, _connect(url, existing=True))

    def claim(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self._fetch(f"SELECT pg_try_advisory_lock({_LOCK_ID})")[0][0]:
            if time.monotonic() > deadline:
                raise LedgerLocked(
                    "another process is writing to this ledger; stop it, or send the request to it"
                )
            time.sleep(_PAUSE)
        errors = driver().errors
        with self._writing(_WRITE_FAILED):
            try:
                claimed = self._connection.execute(_CLAIM.encode()).fetchall()
            except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
                self.release()
                claimed = []
            for epoch, *settings in claimed:
                _check_settings(settings, LedgerBroken)
                self._epoch, self._may_reconnect = epoch, False
        if not claimed:
            raise LedgerReadOnly("this user may not write to the tables of the ledger")

    def commit(self, commit: Commit) -> None:
        with self._writing(_WRITE_FAILED):
            self._write(commit)
        with self._writing(_COMMIT_FAILED):
            outcome = self._connection.execute("COMMIT").statusmessage
            if outcome != "COMMIT":
                raise LedgerBroken(_WRITE_FAILED.format(outcome))

    def _write(self, commit: Commit) -> None:
        """Send all rows in one round trip, and refuse if they must not be committed."""
        execute = self._connection.execute
        added = [(CommitRow, [CommitRow(*commit.tip, commit.events)]), *commit.added.items()]
        with self._connection.pipeline():
            execute("BEGIN")
            state = execute(_STATE.encode())
            for row, rows in added:
                for columns in _columns(rows):
                    execute(_statement("insert", row).encode(), columns)
            update = _statement("update", SubjectRow).encode()
            updates = [execute(update, columns) for columns in _columns(commit.changed)]
        ((epoch, last, *settings),) = state
        if (epoch, last + 1) != (self._epoch, commit.tip.commit_number):
            raise LedgerBroken(_TAKEN_OVER)
        _check_settings(settings, LedgerBroken)
        if sum(cursor.rowcount for cursor in updates) != len(commit.changed):
            raise LedgerDamaged("a subject that was read cannot be found again")

    @contextmanager
    def _writing(self, failure: str) -> Iterator[None]:
        """Close the connection if anything fails: the server then rolls back."""
        psycopg = driver()
        try:
            yield
        except psycopg.Error as error:
            self.close()
            # Another writer has made the commit with this number.
            taken_over = error.diag.constraint_name == "commits_pkey"
            reason = _TAKEN_OVER if taken_over else failure.format(_first_line(error))
            raise LedgerBroken(reason) from None
        except BaseException:
            self.close()
            raise

    def release(self) -> None:
        with suppress(driver().Error):  # a lost connection has lost the lock too
            self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._epoch, self._may_reconnect = -1, True

    def close(self) -> None:
        self._may_reconnect = False
        self._connection.close()

    def find(self, row: type[R], keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], R]:
        width, make = TABLES[row].keys, row._make  # type: ignore[attr-defined]
        # A text has no null character in PostgreSQL, so no row has such a key.
        keys = [key for key in keys if "\0" not in "".join(map(str, key))]
        rows_by_key: dict[tuple[Any, ...], R] = {}
        for columns in _columns(keys):
            fetched = self._fetch(_statement("find", row), columns)
            rows_by_key.update({values[:width]: make(values) for values in fetched})
        return rows_by_key

    def _stream(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        """Yield rows. In a snapshot a few are fetched at a time, and several scans may be open."""
        if not self._in_snapshot:
            yield from self._fetch(statement, values)
            return
        with _reading(), self._connection.cursor(f"scan{next(self._scans)}", binary=True) as cursor:
            cursor.itersize = _SCAN_ROWS
            yield from cursor.execute(statement.encode(), values)

    def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows. After a restart of the server, a reader connects again, once.

        A writer does not: it has lost its lock with the connection.
        """
        with _reading():
            try:
                return self._connection.execute(statement.encode(), values, binary=True).fetchall()
            except driver().OperationalError:
                if self._in_snapshot or not (self._may_reconnect and self._connection.closed):
                    raise
            try:
                self._connection = _connect(self._url, existing=True)
            except InvalidInput as error:
                raise LedgerBroken(f"the ledger cannot be read ({error}); open it again") from None
            return self._connection.execute(statement.encode(), values, binary=True).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._fetch("SELECT 1")  # connects again if necessary
        with _reading():
            self._connection.execute(_SNAPSHOT.encode(), prepare=False)
            self._in_snapshot = True
            try:
                yield
            finally:
                self._in_snapshot = False
                with suppress(driver().Error):
                    self._connection.execute("ROLLBACK")

    def check(self) -> list[str]:
        enabled = set(self._fetch(_ENABLED_TRIGGERS))
        return [
            f"the trigger {name} of table {table} is missing or disabled"
            for table, name in _TRIGGERS
            if (table, name) not in enabled
        ]

    def backup(self, path: Path) -> None:
        ((schema,),) = self._fetch(f"SELECT ({_SCHEMA})::regnamespace::text")
        arguments = ["pg_dump", "--format=custom", f"--schema={schema}", f"--file={path}"]
        command = shlex.join([*arguments, shown_url(self._url)])
        raise InvalidInput(f"a ledger on a server is copied by pg_dump: {command}")


def driver() -> Any:
    """Return psycopg, or say what to install."""
    try:
        import psycopg
    except ImportError:
        message = "a ledger on PostgreSQL requires the extra: pip install 'expost[postgres]'"
        raise InvalidInput(message) from None
    logging.getLogger("psycopg").addHandler(_NO_OUTPUT)  # once, however often this is called
    return psycopg


def _connect(url: str, *, existing: bool = False) -> psycopg.Connection[Any]:
    """Connect to a server that will do for a ledger, or to an existing ledger."""
    shown_url(url)  # refuses a URL that is none
    psycopg = driver()
    with ExitStack() as failed:
        try:
            connection = psycopg.connect(
                url, autocommit=True, connect_timeout=10, client_encoding="UTF8"
            )
            failed.callback(connection.close)
            connection.execute(_SESSION.encode())
            _check_server(connection)
            if existing:
                _check_tables(connection)
        except psycopg.Error as error:
            # The line about a bad URL may quote the password.
            bad_url = isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
            line = "its URL is not valid" if bad_url else _first_line(error)
            raise InvalidInput(f"cannot be opened: {line}") from None
        connection.prepare_threshold = 0
        failed.pop_all()
    return connection  # type: ignore[no-any-return]


def _check_server(connection: psycopg.Connection[Any]) -> None:
    version, oldest = connection.info.server_version, OLDEST_SERVER
    if version < oldest:
        raise InvalidInput(
            f"is PostgreSQL {version // 10_000}; it must be {oldest // 10_000} or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise InvalidInput(f"the encoding of the database is {encoding}; it must be UTF8")
    ((standby, schema, *settings),) = connection.execute(
        f"SELECT pg_is_in_recovery(), current_schema(), {_SETTINGS}".encode()
    )
    if standby:
        raise InvalidInput("is a standby server, which may be behind; name the primary server")
    if schema is None:
        raise InvalidInput("no schema of its search path exists; create one first")
    _check_settings(settings, InvalidInput)


def _check_settings(settings: Sequence[str], error: type[ExpostError]) -> None:
    for name, value in zip(REQUIRED, settings, strict=True):
        if value == "off":
            raise error(
                f"the server's setting {name} is off, and a power failure could take back released "
                f"answers; fix it with ALTER SYSTEM SET {name} = on and SELECT pg_reload_conf()"
            )


def _check_tables(connection: psycopg.Connection[Any]) -> None:
    for table in ("study", "ledger"):  # the second is that of schema version 1
        with suppress(driver().errors.UndefinedTable):
            for (version,) in connection.execute(f"SELECT version FROM {table}".encode()):
                check_schema_version(version)
            return
    raise InvalidInput("there is no ledger in this database")


def _columns(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[list[Any]]]:
    """Yield the columns of some rows at a time, as the parameters of a statement."""
    for part in blocks(len(rows), _STATEMENT_ROWS):
        yield list(map(list, zip(*rows[part], strict=True)))


def _first_line(error: Exception) -> str:
    """Return the first line of an error; for data, which it may quote, only the error's name."""
    if isinstance(error, driver().DataError):
        return type(error).__name__
    return str(error).strip().partition("\n")[0]


@contextmanager
def _reading() -> Iterator[None]:
    """Raise unreadable data as :class:`LedgerDamaged`, a lost connection as broken."""
    psycopg = driver()
    try:
        yield
    except UnicodeDecodeError:
        raise LedgerDamaged("the database cannot be read (a text is not UTF-8)") from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise InvalidInput(f"cannot be read: {_first_line(error)}") from None
    except (psycopg.InternalError, psycopg.ProgrammingError, psycopg.DataError) as error:
        raise LedgerDamaged(f"the database cannot be read ({_first_line(error)})") from None
    except psycopg.Error as error:
        raise LedgerBroken(
            f"the ledger cannot be read ({_first_line(error)}); open it again"
        ) from None
