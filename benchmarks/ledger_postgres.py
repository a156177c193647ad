"""A ledger on PostgreSQL, compared with its rows alone on the same server, in turns.

The bare rows go to copies of the tables, in the same batches, with one commit each: inserted and
updated by the driver's ``executemany``. Both wait for the same server and disk, so these are ratios
on the clock, of the best of several rounds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg

import expost as xp
from benchmarks.ledger import QUERY, TOLERANCE, VALUES, Devices

__all__ = ["run"]

RESERVE, RECEIVE = 2.0, 2.0
"""Aims: × the bare rows."""
SUBJECTS, BATCH, ROUNDS = 2048, 256, 5


def run() -> bool:
    # The server of the tests, which runs on any machine.
    postgres = import_module("tests.support.postgres_server")
    with (
        postgres.server_of_our_own(in_memory=False) as server,
        tempfile.TemporaryDirectory() as folder,
        postgres.fresh(server.dsn) as dsn,
    ):
        return _measured(dsn, Path(folder) / "checkpoint")


def _measured(dsn: str, checkpoint: Path) -> bool:
    domain, filter_ = xp.FiniteSet(range(VALUES)), xp.BayesianFilter(epsilon=3)
    times: dict[str, list[float]] = {"reserve": [], "its rows": [], "receive": [], "its work": []}
    with (
        xp.Ledger.create(dsn, domain, filter=filter_, checkpoint=checkpoint) as ledger,
        psycopg.connect(dsn, autocommit=True) as bare,
    ):
        names = [f"subject {index}" for index in range(SUBJECTS)]
        ledger.register(names)
        for table in ("requests", "exchanges", "subjects"):
            bare.execute(f"CREATE TABLE bare_{table} (LIKE {table} INCLUDING ALL)".encode())
        bare.execute("INSERT INTO bare_subjects SELECT * FROM subjects")
        devices = Devices(ledger)
        for turn in range(1, ROUNDS + 1):
            reserve = partial(ledger.reserve, QUERY, key=f"round {turn}")
            times["reserve"].append(_clock(reserve, names))
            times["its rows"].append(_clock(*_bare_rows(bare, "requests")))
            times["receive"].append(_clock(ledger.receive, devices.messages(f"round {turn}", turn)))
            times["its work"].append(_clock(*_bare_rows(bare, "exchanges")))
    reserved = _print_ratio("reserve", times["reserve"], times["its rows"], RESERVE)
    return _print_ratio("receive", times["receive"], times["its work"], RECEIVE) and reserved


def _clock(action: Callable[[list[Any]], object], rows: list[Any]) -> float:
    """Measure the seconds for all rows, a batch at a time."""
    start = time.perf_counter()
    for first in range(0, len(rows), BATCH):
        action(rows[first : first + BATCH])
    return time.perf_counter() - start


def _bare_rows(
    bare: psycopg.Connection[Any], table: str
) -> tuple[Callable[[list[Any]], None], list[Any]]:
    """Return the rows that the ledger has added, and what writes them to copies of its tables."""
    rows = bare.execute(
        f"SELECT * FROM {table} EXCEPT SELECT * FROM bare_{table}".encode()
    ).fetchall()
    subject_cursor = bare.execute("SELECT * FROM subjects")
    columns = [column.name for column in subject_cursor.description or ()]
    subjects = {row[0]: row for row in subject_cursor.fetchall()}
    changes = ", ".join(f'"{name}" = %s' for name in columns[1:])
    insert = f"INSERT INTO bare_{table} VALUES ({', '.join(['%s'] * len(rows[0]))})".encode()
    update = f"UPDATE bare_subjects SET {changes} WHERE name = %s".encode()

    def write(batch: list[Any]) -> None:
        with bare.transaction(), bare.cursor() as cursor:
            cursor.executemany(insert, batch)
            changed = [subjects[row[0]] for row in batch]
            cursor.executemany(update, [(*row[1:], row[0]) for row in changed])

    return write, rows


def _print_ratio(operation: str, ours: list[float], peer: list[float], aim: float) -> bool:
    ours_each, bare_each = (1e6 * min(times) / SUBJECTS for times in (ours, peer))
    print(
        f"{operation} on PostgreSQL, batches of {BATCH}: {ours_each / bare_each:.1f} × bare rows ",
        end="",
    )
    print(f"(aim {aim:g}), {ours_each:.0f} µs a subject and {bare_each:.0f}")
    return ours_each / bare_each <= aim * TOLERANCE


if __name__ == "__main__":
    run()
