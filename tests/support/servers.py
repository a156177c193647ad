"""Worlds on a real PostgreSQL whose processes are killed, with two workers.

The server is killed before a commit is sent, while it is under way, and when it was confirmed; then
it is started again, and the ledger has to find out by itself what became of its commit.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

from expost.ledger import Ledger, Place
from expost.ledger.backend import Stale
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.digests import first_root
from expost.ledger.postgres import Postgres, backend, connection, schema, writing
from expost.ledger.postgres.writing import commit
from support.disks import Disk, DiskPlace
from support.mutants import MUTANTS
from support.postgres import fresh, shared_server
from support.sites import KINDS, POLICY, SUBJECTS

__all__ = ["MOMENTS", "OnServer"]

MOMENTS = ("before", "during", "during", "after")
_TABLES = (
    "commits", "subjects", "queries", "responses", "keys", "requests", "reservations", "heads",
    "closures", "kept", "ends",
)  # fmt: skip


class OnServer:
    """A schema of a server of our own."""

    workers = 2

    def __init__(self, chance: random.Random) -> None:
        self._server, self._chance = shared_server(), chance
        self._moment = ""
        self._timer: threading.Timer | None = None
        self._disk = Disk()
        self._open = ExitStack()
        self._dsn = self._open.enter_context(fresh(self._server.dsn))
        Postgres.create(self._dsn, POLICY.to_json(), first_root(POLICY.content_id))
        store = Postgres.open(self._dsn)
        Checkpoint(self.place(), POLICY.content_id, 1).write(store.tip())
        with Ledger.on(store, self.place(), every=1) as ledger:
            ledger.register(SUBJECTS)
        self._open.enter_context(patch.object(backend, "commit", self._commit))

    def _commit(self, statements: Any, change: Any, lines: Any, *after: Any) -> Any:
        self.reached("before")
        self.reached("during")
        tip = commit(statements, change, lines, *after)
        self.reached("after")
        return tip

    def reached(self, moment: str) -> None:
        """Where an attempt is; the server may end here."""
        if moment != self._moment:
            return
        self._moment = ""
        if moment != "during":
            self._restart()
            return
        # At the same time as the commit: it may be recorded or not.
        self._timer = threading.Timer(self._chance.random() * 0.002, self._kill_and_start)
        self._timer.start()

    def _restart(self) -> None:
        self._settle()
        self._kill_and_start()

    def _kill_and_start(self) -> None:
        self._server.kill()
        self._server.start()

    def _settle(self) -> None:
        """Wait for an end that is under way."""
        if self._timer is not None:
            self._timer.join()
            self._timer = None

    def place(self) -> Place:
        return DiskPlace(self._disk, "checkpoint")

    def backend(self, number: int = 0) -> Any:
        return Postgres.open(self._dsn)

    def backup(self) -> dict[str, bytes]:
        with psycopg.connect(self._dsn) as raw:
            return {table: _copied(raw, table) for table in _TABLES}

    def restore(self, backup: dict[str, bytes]) -> None:
        with psycopg.connect(self._dsn) as raw:
            # Whoever administers a database can do this, whatever triggers say.
            raw.execute("SET session_replication_role = replica")
            raw.execute(f"TRUNCATE {', '.join(_TABLES)}".encode())
            for table, rows in backup.items():
                with raw.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as copy:
                    copy.write(rows)

    def kill(self) -> None:
        if self._chance.random() < 0.5:
            self._restart()

    def lose_power(self, chance: random.Random) -> None:
        self._restart()

    def damage(self, chance: random.Random) -> bool:
        return False

    def arm(self, chance: random.Random) -> str:
        self._moment = self._chance.choice(MOMENTS)
        return "kill"

    def disarm(self) -> None:
        self._moment = ""
        self._settle()

    def end(self) -> None:
        self._open.close()


def _copied(raw: psycopg.Connection[Any], table: str) -> bytes:
    with raw.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)".encode()) as copy:
        return b"".join(map(bytes, copy))


KINDS["server"] = OnServer


@contextmanager
def asynchronous() -> Iterator[None]:
    """Commits do not wait for the disk."""
    weak = connection._SESSION + "; SET synchronous_commit = off"
    strong = {**connection._STRONG, "synchronous_commit": ("off",)}
    with (
        patch.object(connection, "_SESSION", weak),
        patch.object(connection, "_STRONG", strong),
        patch.object(schema, "MIGRATIONS", (_UNWATCHED,)),
        patch.object(backend, "MIGRATIONS", (_UNWATCHED,)),
    ):
        yield


_UNWATCHED = schema.MIGRATIONS[0].replace("current_setting('synchronous_commit')", "'on'")


def unlocked_and_not_compared() -> Any:
    """Heads are moved whoever else has moved them."""
    anything = writing._MOVE.replace("heads.sequence = was_sequence", "was_sequence IS NOT NULL")
    anything = anything.replace("heads.closed = was_closed", "was_closed IS NOT NULL")
    anything = anything.replace("heads.reserved = was_reserved", "was_reserved IS NOT NULL")
    return patch.object(writing, "_MOVE", anything)


def trusted_without_looking() -> Any:
    """A commit whose connection was lost is taken for recorded."""

    def append(self: Postgres, change: Any, lines: Any, after: Any = None) -> Any:
        try:
            return real(self, change, lines, after)
        except Stale:
            if self._connection.raw is used.get(id(self)):
                raise
            used[id(self)] = self._connection.raw
            return self.tip()

    real, used = Postgres.append, dict[int, Any]()
    return patch.object(Postgres, "append", append)


MUTANTS |= {
    "synchronous_commit off, in PostgreSQL": (asynchronous, "server"),
    "compare-and-swap dropped, in PostgreSQL": (unlocked_and_not_compared, "server"),
    "lost commits taken for recorded, in PostgreSQL": (trusted_without_looking, "server"),
}
