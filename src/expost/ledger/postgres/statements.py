"""Statements that are prepared once on a connection, and sent together.

However many there are, that is one exchange with the server. The driver has pipelines too, but
talks to the socket at every statement, and takes ten times as long; here all are one message.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from expost.ledger.postgres.driver import driver

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn, PGresult

__all__ = ["Call", "Statements"]

Call = tuple[str, Sequence[bytes]]
"""A statement, and its values in PostgreSQL's binary format."""

_BINARY = 1


class Statements:
    """What one connection has prepared."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self._names: dict[str, bytes] = {}
        self._number = itertools.count()

    def run(self, *calls: Call) -> list[list[tuple[Any, ...]]]:
        """The rows of each of some statements.

        The error of the first that fails is raised, and none after it is executed. Where nobody
        knows what became of them, the connection is closed.
        """
        named = [(self._name(statement), values) for statement, values in calls]
        pgconn = self.raw.pgconn
        try:
            pgconn.enter_pipeline_mode()
            for name, values in named:
                pgconn.send_query_prepared(name, values, [_BINARY] * len(values), _BINARY)
            pgconn.pipeline_sync()
            results = self.raw.wait(_received(pgconn))
            pgconn.exit_pipeline_mode()
        except BaseException:
            self.raw.close()
            raise
        return [self._rows(result) for result in results]

    def forget(self) -> None:
        """Prepare everything anew."""
        self._names.clear()

    def _name(self, statement: str) -> bytes:
        """By which the server knows a statement."""
        name = self._names.get(statement)
        if name is None:
            name = b"expost %d" % next(self._number)
            self._rows(self.raw.pgconn.prepare(name, statement.encode()))
            self._names[statement] = name
        return name

    def _rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        psycopg = driver()
        if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            error = psycopg.errors.error_from_result(result)
            raise psycopg.OperationalError(str(error)) if self.raw.closed else error
        if not result.ntuples:
            return []
        loaded = psycopg.adapt.Transformer(self.raw)
        loaded.set_pgresult(result)
        rows: list[tuple[Any, ...]] = loaded.load_rows(0, result.ntuples, tuple)
        return rows


def _received(pgconn: PGconn) -> Generator[Any, Any, list[PGresult]]:
    """Send what is waiting, and take in one result of each statement."""
    psycopg = driver()
    pq, waiting = psycopg.pq, psycopg.waiting
    while pgconn.flush():
        if (yield waiting.Wait.RW) & waiting.Ready.R:
            pgconn.consume_input()
    results: list[PGresult] = []
    while True:
        while pgconn.is_busy():
            yield waiting.Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:  # which comes after each
            if pgconn.status == pq.ConnStatus.BAD:
                raise psycopg.OperationalError("the connection is lost")
        elif result.status == pq.ExecStatus.PIPELINE_SYNC:
            return results
        else:
            results.append(result)
