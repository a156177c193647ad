"""Databases of ledgers that are put back to an earlier state, as an operator restores a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expost.ledger import Ledger
from expost.ledger.tables import TABLES
from support.scripted_devices import restore

__all__ = ["FileSite", "PostgresSite"]


class FileSite:
    """A ledger in a file."""

    count = 500

    def __init__(self, folder: Path) -> None:
        self.place, self.checkpoint = str(folder / "study.db"), folder / "checkpoint"
        self._backup = folder / "backup.db"

    def save(self, ledger: Ledger) -> None:
        ledger.backup(self._backup)

    def restore(self) -> None:
        restore(self._backup, Path(self.place))


class PostgresSite:
    """A ledger in a schema of a PostgreSQL server."""

    count = 60

    def __init__(self, folder: Path, dsn: str) -> None:
        self.place, self.checkpoint = dsn, folder / "checkpoint"
        self._rows: dict[str, list[Any]] = {}

    def save(self, ledger: Ledger) -> None:
        import psycopg

        with psycopg.connect(self.place) as connection:
            for name in ("study", *(table.name for table in TABLES.values())):
                rows = connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
                self._rows[name] = rows

    def restore(self) -> None:
        """Put all rows back, as the owner of a server can: without any trigger."""
        import psycopg

        with psycopg.connect(self.place) as connection:
            connection.execute("SET session_replication_role = replica")
            for name, rows in self._rows.items():
                connection.execute(f"DELETE FROM {name}".encode())
                for row in rows:
                    marks = ", ".join(["%s"] * len(row))
                    connection.execute(f"INSERT INTO {name} VALUES ({marks})".encode(), row)
