"""Worlds on a real PostgreSQL whose processes are killed.

The server is killed before a commit is sent, while it is under way, and after it was confirmed.
Then it is started again, and the ledger has to find out what became of its commit.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

from expost.ledger import Backend, CheckpointStore, LedgerBroken, _postgres
from expost.ledger._digests import first_root
from expost.ledger._postgres import Postgres
from expost.ledger.backend import Commit
from expost.ledger.tables import TABLES
from support.ledger_mutants import MUTANTS
from support.ledger_sites import KINDS, POLICY, Backup, Site, create_on
from support.postgres_server import fresh, shared_server
from support.simulated_disk import Content, Disk, DiskStore

__all__ = ["MOMENTS", "PostgresSite"]

MOMENTS = ("before", "during", "during", "after")
_TABLES = (*(table.name for table in TABLES.values()), "study")
_RESTARTS = 0.15
"""How often the server ends with the process."""


class PostgresSite(Site):
    """A schema of a server of our own, with a checkpoint on a disk that can lose power."""

    def __init__(self, chance: random.Random, copied: Backup | None = None) -> None:
        self._server, self._chance = shared_server(), chance
        self._moment = ""
        self._timer: threading.Timer | None = None
        self._disk = Disk()
        self._open = ExitStack()
        self._url = self._open.enter_context(fresh(self._server.dsn))
        Postgres.create(self._url, POLICY.to_json(), first_root(POLICY.content_id))
        create_on(Postgres.open(self._url), self.store())
        if copied is None:
            self._open.enter_context(patch.object(Postgres, "commit", self._commit()))
        else:
            self.restore(copied, checkpoint=True)

    def _commit(self) -> Any:
        """Return a commit during which the server may end."""
        write, site = Postgres.commit, self

        def commit(self: Postgres, whole: Commit) -> None:
            site.reach("before")
            site.reach("during")
            write(self, whole)
            site.reach("after")

        return commit

    def reach(self, moment: str) -> None:
        """Kill the server if this is the moment."""
        if moment != self._moment:
            return
        self._moment = ""
        if moment != "during":
            self._restart()
            return
        # At the same time as the commit, which may be written or not.
        self._timer = threading.Timer(self._chance.random() * 0.002, self._kill_and_start)
        self._timer.start()

    def _restart(self) -> None:
        self._wait()
        self._kill_and_start()

    def _kill_and_start(self) -> None:
        self._server.kill()
        self._server.start()

    def _wait(self) -> None:
        """Wait for a restart that is under way."""
        if self._timer is not None:
            self._timer.join()
            self._timer = None

    def store(self) -> CheckpointStore:
        return DiskStore(self._disk)

    def backend(self) -> Backend:
        self._wait()
        return Postgres.open(self._url)

    def backup(self) -> Backup:
        with psycopg.connect(self._url) as connection:
            tables = {table: _read_table(connection, table) for table in _TABLES}
        return Backup(tables, bytes(self._disk.files["checkpoint"].current))

    def restore(self, backup: Backup, *, checkpoint: bool) -> None:
        with psycopg.connect(self._url) as connection:
            # An administrator can do this, whatever triggers say.
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"TRUNCATE {', '.join(_TABLES)}".encode())
            for table, rows in backup.database.items():
                statement = f"COPY {table} FROM STDIN (FORMAT binary)".encode()
                with connection.cursor().copy(statement) as copy:
                    copy.write(rows)
        if checkpoint:
            data = backup.checkpoint
            self._disk.files["checkpoint"] = Content(bytearray(data), data)

    def lose_checkpoint(self) -> None:
        del self._disk.files["checkpoint"]

    def clone(self) -> Site:
        return PostgresSite(self._chance, self.backup())

    def kill(self) -> None:
        self._disk.kill()
        if self._chance.random() < _RESTARTS:
            self._restart()

    def lose_power(self, chance: random.Random) -> None:
        self._disk.lose_power(chance)
        self._restart()

    def steal_lock(self, holder: CheckpointStore) -> None:
        """End the connection of the writer, which has the lock on the server also."""
        self._disk.owner = None
        self._wait()
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
            )

    def arm(self, chance: random.Random) -> str:
        self._moment = self._chance.choice(MOMENTS)
        return "kill"

    def disarm(self) -> None:
        self._moment = ""
        self._wait()

    def end(self) -> None:
        self._open.close()


def _read_table(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)".encode()) as copy:
        return b"".join(map(bytes, copy))


KINDS["server"] = PostgresSite


@contextmanager
def asynchronous() -> Iterator[None]:
    """Commits do not wait for the disk."""
    with (
        patch.object(_postgres, "_SESSION", _postgres._SESSION + "; SET synchronous_commit = off"),
        patch.object(_postgres, "_check_settings", lambda *settings: None),
    ):
        yield


def lost_commits_trusted() -> Any:
    """A commit whose connection was lost is taken for written."""
    write = Postgres.commit

    def commit(self: Postgres, whole: Commit) -> None:
        try:
            write(self, whole)
        except LedgerBroken:
            self._connection = _postgres._connect(self._url)

    return patch.object(Postgres, "commit", commit)


MUTANTS |= {
    "synchronous_commit off, in PostgreSQL": (asynchronous, "server"),
    "lost commits trusted, in PostgreSQL": (lost_commits_trusted, "server"),
}
