"""A ledger on SQLite, compared with the unavoidable work.

Reserving is compared with its rows alone; receiving with ``json.loads``, SHA-256 and its rows. Both
write to a copy of the same database, in the same batches, with one synchronized commit each. These
are ratios of processor time. Single requests wait for the disk, so they are compared with bare
synchronized writes on the clock: a request takes two, one for the commit and one for the line of
the checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw

import expost as xp
from benchmarks.timing import once, timed
from expost.ledger._digests import chain_prefix, first_head, next_head

RESERVE, RECEIVE, SINGLE, OPENING = 8.0, 4.0, 0.5, 5.0
"""Aims: × the bare rows, × the bare work, × fdatasync at most, seconds."""
TOLERANCE = 1.5
"""A run fails if it misses an aim by more than this factor."""

SUBJECTS, BATCH, VALUES, ROUNDS = 4096, 256, 8, 6
MANY = 100_000
QUERY = xp.randomized_response(epsilon="0.05")


def run() -> bool:
    with _ledger(SUBJECTS) as (ledger, folder):
        results = _rounds(ledger, folder)
        _single(ledger)
    with _ledger(MANY) as (ledger, folder):
        ledger.close()
        results.append(_opening(folder / "study.db"))
    return all(results)


@contextmanager
def _ledger(subjects: int) -> Iterator[tuple[xp.Ledger, Path]]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        domain, filter_ = xp.FiniteSet(range(VALUES)), xp.BayesianFilter(epsilon=3)
        with xp.Ledger.create(Path(folder) / "study.db", domain, filter=filter_) as ledger:
            ledger.register([f"subject {index}" for index in range(subjects)])
            yield ledger, Path(folder)


class Devices:
    """The chains of all devices, and the messages that they send."""

    def __init__(self, ledger: xp.Ledger) -> None:
        self._policy_id = ledger.policy.content_id
        self.heads = {name: first_head(self._policy_id, name) for name in ledger.subjects}
        self._links = [chain_prefix(QUERY.content_id, float(value)) for value in range(VALUES)]

    def messages(self, key: str, sequence: int) -> list[bytes]:
        """Return the messages of all devices for one round."""
        result = []
        for index, (name, previous) in enumerate(self.heads.items()):
            response = (7 * index + sequence) % VALUES
            head = next_head(previous, self._links[response], sequence)
            self.heads[name] = head
            fields = {
                "ledger": self._policy_id,
                "subject": name,
                "sequence": sequence,
                "previous": previous.hex(),
                "key": key,
                "query": QUERY.content_id,
                "response": response,
                "head": head.hex(),
                "ticket": "0" * 64,  # not looked at while the reservation is open
            }
            result.append(json.dumps(fields).encode())
        return result


def _rounds(ledger: xp.Ledger, folder: Path) -> list[bool]:
    devices, names = Devices(ledger), list(ledger.subjects)
    batches = [slice(start, start + BATCH) for start in range(0, SUBJECTS, BATCH)]
    times: dict[str, list[float]] = {}
    for turn in range(1, ROUNDS + 1):
        key = f"round {turn}"

        def reserve(key: str = key) -> None:
            for batch in batches:
                ledger.reserve(QUERY, names[batch], key=key)

        with _bare(folder, ledger) as bare:
            times.setdefault("reserve", []).append(once(reserve))
            bare.read("requests")
            times.setdefault("its rows", []).append(once(partial(bare.write, [])))
        messages = devices.messages(key, turn)

        def receive(messages: list[bytes] = messages) -> None:
            for batch in batches:
                receipts = ledger.receive(messages[batch])
                assert all(receipt.outcome == "recorded" for receipt in receipts)

        with _bare(folder, ledger) as bare:
            times.setdefault("receive", []).append(once(receive))
            bare.read("exchanges")
            times.setdefault("its work", []).append(once(partial(bare.write, messages)))
    return [
        _print_ratio("reserve", times["reserve"], times["its rows"], RESERVE, "the bare rows"),
        _print_ratio("receive", times["receive"], times["its work"], RECEIVE, "the bare work"),
    ]


def _print_ratio(
    operation: str, ours: list[float], bare: list[float], aim: float, peer: str
) -> bool:
    ours_each, peer_each = (1e6 * min(times) / SUBJECTS for times in (ours, bare))
    print(
        f"{operation}, batches of {BATCH}: {ours_each / peer_each:.1f} × {peer} (aim {aim:g}), ",
        end="",
    )
    print(f"{ours_each:.1f} µs a subject and {peer_each:.1f}")
    return ours_each / peer_each <= aim * TOLERANCE


class _Bare:
    """A copy of a ledger's database, to which the same rows are written with nothing else."""

    def __init__(self, study: Path, path: Path, commit: int) -> None:
        self._study = apsw.Connection(str(study), apsw.SQLITE_OPEN_READONLY)
        self._copy, self._commit = apsw.Connection(str(path)), commit
        with self._copy.backup("main", self._study, "main") as copying:
            copying.step()
        self._copy.pragma("journal_mode", "wal")
        self._copy.pragma("synchronous", "FULL")

    def read(self, table: str) -> None:
        """Read the rows that the ledger has added since the copy was made."""
        self._rows: list[Any] = self._study.execute(
            f'SELECT * FROM {table} WHERE "commit" > ? ORDER BY "commit"', (self._commit,)
        ).fetchall()
        self._subjects = {row[0]: row for row in self._study.execute("SELECT * FROM subjects")}
        self._insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(self._rows[0]))})"
        column_rows = self._study.execute("PRAGMA table_info(subjects)")
        columns = [row[1] for row in column_rows]
        changes = ", ".join(f'"{name}" = ?{n}' for n, name in enumerate(columns[1:], 2))
        self._update = f"UPDATE subjects SET {changes} WHERE name = ?1"

    def write(self, messages: list[bytes]) -> None:
        """Parse and digest messages, and write the rows, a batch at a time."""
        for start in range(0, len(self._rows), BATCH):
            for message in messages[start : start + BATCH]:
                json.loads(message)
                hashlib.sha256(message).digest()
            rows = self._rows[start : start + BATCH]
            with self._copy:
                self._copy.executemany(self._insert, rows)
                self._copy.executemany(self._update, [self._subjects[row[0]] for row in rows])

    def close(self) -> None:
        self._copy.close()
        self._study.close()


@contextmanager
def _bare(folder: Path, ledger: xp.Ledger) -> Iterator[_Bare]:
    bare = _Bare(folder / "study.db", folder / "bare.db", ledger.tip.commit_number)
    try:
        yield bare
    finally:
        bare.close()
        for path in folder.glob("bare.db*"):
            path.unlink()


def _rate(action: Callable[[int], None], seconds: float = 0.25) -> float:
    """Count actions per second of wall-clock time."""
    start = time.perf_counter()
    for turn in count():
        if time.perf_counter() - start >= seconds:
            return turn / (time.perf_counter() - start)
        action(turn)
    raise AssertionError


def _single(ledger: xp.Ledger) -> None:
    """Single reservations next to bare synchronized writes, in turns."""
    names, turns = list(ledger.subjects), count()

    def reserve(_: int) -> None:
        turn = next(turns)
        ledger.reserve(QUERY, [names[turn % len(names)]], key=f"single {turn // len(names)}")

    with tempfile.NamedTemporaryFile(dir=".") as file:
        descriptor = file.fileno()
        os.write(descriptor, bytes(1 << 18))
        os.fsync(descriptor)

        def sync(turn: int) -> None:
            os.pwrite(descriptor, bytes(4096), turn % 64 * 4096)
            os.fdatasync(descriptor)

        runs = [(_rate(reserve), _rate(sync)) for _ in range(8)]
    ours, peer = (sum(column) / len(runs) for column in zip(*runs, strict=True))
    print(f"single reservations: {ours / peer:.2f} × fdatasync (at most {SINGLE:g}), ", end="")
    print(f"of which there are {peer:,.0f} a second")


def _opening(path: Path) -> bool:
    """Open a ledger, find one subject, and reserve its first exchange."""
    keys = count()

    def reserved() -> None:
        with xp.Ledger(path) as ledger:
            ledger.reserve(QUERY, [f"subject {MANY // 2 + next(keys)}"])

    took = min(spent for _, spent in (timed(reserved) for _ in range(3)))
    print(f"opened, and one reservation, of {MANY:,} subjects: {took:.2f} s (aim {OPENING:g})")
    return took <= OPENING * TOLERANCE


if __name__ == "__main__":
    run()
