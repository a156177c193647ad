"""A connection to a PostgreSQL that will do for a ledger, made again when it is lost.

Whether the server keeps what it says that it keeps is a matter of its settings. They are read back
from every connection, and again in every transaction that writes, by the function ``agreed`` of
the schema: an administrator may change them at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from expost.errors import InvalidInput
from expost.ledger.errors import Behind, Broken, Damaged
from expost.ledger.postgres.driver import driver, first_line
from expost.ledger.postgres.statements import Statements
from expost.ledger.records import Tip

if TYPE_CHECKING:
    import psycopg

__all__ = ["Connection", "check_settings", "settings_of"]

OLDEST = 130_000
"""The oldest PostgreSQL that is still maintained anywhere, as it numbers its versions."""

_STRONG = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply", "remote_write", "local"),
}
_SETTINGS = f"SELECT {', '.join(f'current_setting({name!r})' for name in _STRONG)}"

# How long a server may take to start again, and how long another client may hold the ledger.
_PATIENCE = 30.0
_PAUSE = 0.05
# Rows that are fetched at a time.
_TOGETHER = 2000
_SESSION = """
SET client_encoding = 'UTF8';
SET lock_timeout = '60s';
SET idle_in_transaction_session_timeout = '60s';
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'
"""
# What is prepared is planned once, when tables are perhaps empty, and then used while they grow:
# so rows are found by their keys, and no table is read from end to end.
_BY_KEYS = """
SET plan_cache_mode = 'force_generic_plan';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off
"""


Values = Sequence[Any] | Mapping[str, Any]
"""Those of a statement, as the driver takes them."""


class Unreachable(InvalidInput):
    """There is no server, or none that takes connections."""


class _Unprepared(Exception):
    """The driver took a statement for prepared that is not."""


class Connection:
    """One connection, by a URL. What is lost between two statements is made again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.statements = _writer(url)
        self.confirmed: Tip | None = None
        """The last commit that the server has confirmed here."""
        self._view: Statements | None = None

    @property
    def raw(self) -> psycopg.Connection[Any]:
        """As the driver knows it."""
        return self.statements.raw

    def read(self, statement: str, values: Values = ()) -> list[Any]:
        """All rows of a statement that changes nothing."""
        return self._read(lambda by: _rows(by.raw, statement, values))

    def look(self, statement: str, values: Sequence[bytes]) -> list[Any]:
        """The same for what is read again and again, with values in binary."""
        return self._read(lambda by: by.run((statement, values))[0])

    def _read(self, rows: Callable[[Statements], list[Any]]) -> list[Any]:
        while True:
            by = self._view or self.statements
            try:
                with reading():
                    return rows(by)
            except _Unprepared:
                by.raw.execute("DEALLOCATE ALL")  # from which the driver learns that none is there
                by.forget()
            except driver().OperationalError as error:
                if by is self._view or not by.raw.closed:
                    raise Broken(f"the ledger cannot be read ({first_line(error)})") from None
                self.again()

    def stream(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """The same for many rows, a few at a time; from whole tables, in whatever way is best."""
        with ExitStack() as opened:
            raw = (self._view or opened.enter_context(_view(self._url))).raw
            try:
                with reading(), raw.cursor("rows", binary=True) as cursor:
                    cursor.itersize = _TOGETHER
                    yield from cursor.execute(statement.encode(), values)
            except driver().OperationalError as error:
                raise Broken(f"the ledger cannot be read ({first_line(error)})") from None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads within see the same commit."""
        with _view(self._url) as self._view:
            try:
                yield
            finally:
                self._view = None

    def again(self) -> None:
        """Connect anew, as soon as the server takes connections."""
        self.raw.close()
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                statements = _writer(self._url)
                break
            except Unreachable as error:
                if time.monotonic() > end:
                    raise Broken(f"the connection to the ledger was lost: {error}") from None
                time.sleep(_PAUSE)
        try:
            _check_confirmed(statements.raw, self.confirmed)
        except BaseException:
            statements.raw.close()
            raise
        self.statements = statements

    def close(self) -> None:
        self.raw.close()


def _check_confirmed(raw: psycopg.Connection[Any], tip: Tip | None) -> None:
    """Refuse a server that came back as an older one, such as a replica that was behind."""
    if tip is None:
        return
    found = raw.execute("SELECT root FROM commits WHERE number = %s", (tip.commits,)).fetchone()
    if found is None or found[0] != tip.root:
        raise Behind("the server came back without what it had confirmed")


def settings_of(raw: psycopg.Connection[Any]) -> Sequence[str]:
    """What says whether a server keeps what it confirms."""
    found: Sequence[str] | None = raw.execute(_SETTINGS).fetchone()
    return found or ()


def check_settings(found: Sequence[str]) -> None:
    """Refuse a server that may lose what it has confirmed; ``found`` are its settings."""
    for (name, strong), setting in zip(_STRONG.items(), found, strict=True):
        if setting not in strong:
            raise InvalidInput(
                f"its setting {name} is {setting}, and a loss of power could take back what was "
                f"released; mend it with ALTER SYSTEM SET {name} = on and SELECT pg_reload_conf()"
            )


@contextmanager
def _view(url: str) -> Iterator[Statements]:
    """A connection of its own, to all that is recorded now."""
    raw = _connected(url)
    try:
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield Statements(raw)
    finally:
        raw.close()


def _writer(url: str) -> Statements:
    """A connection for finding a few rows, and adding some, again and again."""
    return Statements(_connected(url, _BY_KEYS))


def _rows(raw: psycopg.Connection[Any], statement: str, values: Values) -> list[Any]:
    with raw.cursor(binary=True) as cursor:
        return cursor.execute(statement.encode(), values).fetchall()


def _connected(url: str, settings: str = "") -> psycopg.Connection[Any]:
    errors = driver()
    try:
        raw: psycopg.Connection[Any] = errors.connect(url, autocommit=True, connect_timeout=10)
    except errors.OperationalError as error:
        raise Unreachable(f"cannot be opened: {first_line(error)}") from None
    except errors.ProgrammingError as error:
        raise InvalidInput(f"cannot be opened: {first_line(error)}") from None
    try:
        raw.execute(_SESSION.encode())
        raw.execute(settings.encode())
        _check(raw)
    except errors.Error as error:
        raw.close()
        raise Unreachable(f"cannot be opened: {first_line(error)}") from None
    except BaseException:
        raw.close()
        raise
    return raw


def _check(raw: psycopg.Connection[Any]) -> None:
    if raw.info.server_version < OLDEST:
        raise InvalidInput(f"PostgreSQL {OLDEST // 10_000} or newer is needed")
    if raw.info.parameter_status("server_encoding") != "UTF8":
        raise InvalidInput("the encoding of the database has to be UTF8")
    check_settings(settings_of(raw))
    standby = raw.execute("SELECT pg_is_in_recovery(), current_schema()").fetchone()
    assert standby is not None
    if standby[0]:
        raise InvalidInput("is a standby server, which may be behind; name the primary server")
    if standby[1] is None:
        raise InvalidInput("none of the schemas of the search path is there")


@contextmanager
def reading() -> Iterator[None]:
    """What the server finds damaged is damaged, and so are tables that are not as they were."""
    psycopg = driver()
    try:
        yield
    except psycopg.errors.InvalidSqlStatementName:
        raise _Unprepared from None
    except (psycopg.InternalError, psycopg.ProgrammingError, psycopg.DataError) as error:
        raise Damaged(f"the database cannot be read ({first_line(error)})") from None
