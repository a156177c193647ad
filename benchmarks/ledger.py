"""A ledger on SQLite beside what nobody can avoid: a synchronized write, and the bare rows.

Answers a second are wall time, because they wait for the disk, and are given as multiples of what a
bare ``fdatasync`` manages on the same disk in the same minute. How many that are depends on the
disk: where a synchronized write takes as little as the statements of SQLite do, no ledger reaches
half of it. So there are two disks: this one, with those statements alone beside the ledger; and
one on which every synchronization takes as long as on an ordinary disk, for which the limits are.
All else is processor time.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw
import numpy as np

import expost as xp
from benchmarks.ordinary_disk import LONGER, opened
from benchmarks.timing import once, timed

SINGLE, THREADS, BATCH, ROUND, OPENING = 0.5, 3.0, 20.0, 1.5, 5.0
"""Limits: × fdatasync, × fdatasync, µs an answer, × the bare rows, seconds."""

VALUES, SUBJECTS, ROUNDS, TOGETHER = 8, 50_000, 20, 256
MILLION = 1_000_000
QUERY = xp.randomized_response(epsilon="0.05")
BLOCK, BLOCKS = 0.25, 12
PART = 1 << 14
"""Rows of a commit, as a round over all has them."""


def run() -> bool:
    with _ledger(SUBJECTS, every=64, rounds=ROUNDS) as (ledger, folder):
        _single(ledger, "a checkpoint at every 64th commit")
        _statements(folder)
        _threads(ledger)
        results = [_batches(ledger), _round(ledger, folder)]
        ledger.close()
        with opened(folder / "study.db") as slow:
            results.append(_single(slow, "on an ordinary disk", LONGER))
            results.append(_threads(slow, LONGER))
    with _ledger(1_000, every=1) as (ledger, _):
        _single(ledger, "a checkpoint at every commit")
        _batches(ledger, limit=None)
    with _ledger(MILLION, every=64, rounds=ROUNDS) as (ledger, folder):
        results.append(_round(ledger, folder))
        ledger.close()
        results.append(_opening(folder / "study.db"))
    return all(results)


@contextmanager
def _ledger(subjects: int, every: int, rounds: int = 1) -> Iterator[tuple[xp.Ledger, Path]]:
    """With answers of everybody: after twenty, hardly two subjects have the same tally."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        place = Path(folder) / "study.db"
        guard = xp.BayesianFilter(epsilon=3)
        with xp.Ledger.create(place, _domain(), filter=guard, every=every) as ledger:
            ledger.register(range(subjects))
            for _ in range(rounds):
                ledger.ask(QUERY, _values(subjects))
            yield ledger, Path(folder)


def _domain() -> xp.FiniteSet:
    return xp.FiniteSet(range(VALUES))


def _values(count: int) -> object:
    return np.random.default_rng(1).integers(0, VALUES, count)


def _rate(action: Callable[[int], int], seconds: float = BLOCK) -> float:
    """How many a second, on the clock."""
    start, done, turn = time.perf_counter(), 0, 0
    while time.perf_counter() - start < seconds:
        done += action(turn)
        turn += 1
    return done / (time.perf_counter() - start)


def _against_syncs(answers: Callable[[], float], longer: float = 0) -> tuple[float, float]:
    """How many answers there are to a bare synchronized write, and how many of these a second.

    Both take turns, for a quarter of a second each, because disks change their minds. On an
    ordinary disk each of those takes so much longer.
    """
    with tempfile.NamedTemporaryFile(dir=".") as file:
        descriptor = file.fileno()
        os.write(descriptor, bytes(1 << 18))
        os.fsync(descriptor)

        def sync(turn: int) -> int:
            os.pwrite(descriptor, bytes(4096), turn % 64 * 4096)
            os.fdatasync(descriptor)
            if longer:
                time.sleep(longer)
            return 1

        turns = [(answers(), _rate(sync)) for _ in range(BLOCKS)]
    ours, peer = (sum(column) / BLOCKS for column in zip(*turns, strict=True))
    return ours / peer, peer


def _single(ledger: xp.Ledger, what: str, longer: float = 0) -> bool:
    turns, size = count(), len(ledger)

    def ask(_: int = 0) -> int:
        """Of somebody else every time, so that nothing is known of whom it is."""
        turn = next(turns)
        ledger.ask(QUERY, [turn % VALUES], [turn * 7919 % size])
        return 1

    spent = 1e3 * min(once(lambda: [ask() for _ in range(50)]) / 50 for _ in range(6))
    ratio, syncs = _against_syncs(lambda: _rate(ask), longer)
    said = f" (limit {SINGLE:g})" if longer else ""
    print(f"one after the other, {what}: {ratio:.2f} × fdatasync{said}", end="")
    print(f", of which there are {syncs:,.0f} a second; {spent:.2f} ms of processor time")
    return ratio >= SINGLE


def _statements(folder: Path) -> None:
    """The rows of one answer at a time, with nothing decided, drawn, chained or sealed."""
    copy = apsw.Connection(str(folder / "statements.db"))
    study = apsw.Connection(str(folder / "study.db"), apsw.SQLITE_OPEN_READONLY)
    with copy.backup("main", study, "main") as copying:
        copying.step()
    study.close()
    copy.pragma("journal_mode", "wal")
    copy.pragma("synchronous", "FULL")
    subjects, keys = count(1), count(1 << 40)
    ((digest, tally),) = copy.execute("SELECT digest, tally FROM heads WHERE subject = 1")

    def add(_: int) -> int:
        key, subject = next(keys), next(subjects) * 7919 % SUBJECTS + 1
        with copy:
            copy.execute("INSERT INTO commits VALUES (?, ?)", (key, digest))
            copy.execute("INSERT INTO keys VALUES (?, ?, 0)", (key, f"{key:032x}"))
            copy.execute("INSERT INTO requests VALUES (?, ?, 1, 1, 1, 1, 1)", (key, subject))
            copy.execute(
                "UPDATE heads SET sequence = sequence + 1, digest = ?, tally = ?, seal = 0"
                " WHERE subject = ?",
                (digest, tally, subject),
            )
        return 1

    ratio, _syncs = _against_syncs(lambda: _rate(add))
    print(f"the statements of an answer alone: {ratio:.2f} × fdatasync")
    copy.close()


def _threads(ledger: xp.Ledger, longer: float = 0, threads: int = 8) -> bool:
    def answers() -> float:
        counts = [0.0] * threads

        def asks(number: int) -> None:
            counts[number] = _rate(
                lambda turn: len(ledger.ask(QUERY, [0], [number + threads * (turn % 1000)]))
            )

        workers = [threading.Thread(target=asks, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(counts)

    before = ledger.tip.commits, int(ledger.status().exchanges.sum())
    ratio, syncs = _against_syncs(answers, longer)
    commits = ledger.tip.commits - before[0]
    each = (int(ledger.status().exchanges.sum()) - before[1]) / commits
    said = f" on an ordinary disk: {ratio:.2f} × fdatasync (limit {THREADS:g})"
    print(f"{threads} threads{said if longer else f': {ratio:.2f} × fdatasync'}", end="")
    print(f", of which there are {syncs:,.0f} a second; {each:.1f} answers a commit")
    return ratio >= THREADS


def _batches(ledger: xp.Ledger, limit: float | None = BATCH, batches: int = 30) -> bool:
    """Batches of neighbours, as in a round; and of whoever comes."""
    generator, values, size = np.random.default_rng(2), _values(TOGETHER), len(ledger)
    start = TOGETHER * (np.arange(batches) % (size // TOGETHER))
    neighbours = [list(range(first, first + TOGETHER)) for first in start.tolist()]
    anybody = [generator.choice(size, TOGETHER, replace=False).tolist() for _ in range(batches)]

    def answered(groups: list[list[int]]) -> float:
        ledger.ask(QUERY, values, groups[0])
        spent = min(
            once(lambda: [ledger.ask(QUERY, values, own) for own in groups]) for _ in range(3)
        )
        return 1e6 * spent / batches / TOGETHER

    found = [answered(neighbours), answered(anybody)]
    said = "" if limit is None else f" (limit {limit:g})"
    print(f"batches of {TOGETHER}: {found[0]:.1f} µs an answer{said}", end="")
    print(f"; of random subjects {found[1]:.1f}")
    return limit is None or max(found) <= limit


def _round(ledger: xp.Ledger, folder: Path, turns: int = 6) -> bool:
    """One round over all, beside the same rows with nothing decided, drawn, chained or sealed."""
    size, values = len(ledger), _values(len(ledger))
    ours, peer = [], []
    for turn in range(turns):
        bare = _Bare(folder / "study.db", folder / f"bare{turn}.db", ledger.tip.commits)
        ours.append(once(lambda: ledger.ask(QUERY, values)))
        bare.look()
        peer.append(once(bare.write))
        bare.close()
    ratio = min(ours) / min(peer)
    print(f"a round over {size:,}: {ratio:.2f} × the bare rows (limit {ROUND:g})", end="")
    print(f", {1e6 * min(ours) / size:.1f} µs a subject and {1e6 * min(peer) / size:.1f}")
    return ratio <= ROUND


class _Bare:
    """A copy of a ledger's database, and what a round adds to it: to the byte the same rows.

    So it has the same columns, indices and triggers. Rows are at hand when it begins.
    """

    def __init__(self, study: Path, place: Path, commits: int) -> None:
        self._study = apsw.Connection(str(study), apsw.SQLITE_OPEN_READONLY)
        self._copy, self._commits = apsw.Connection(str(place)), commits
        with self._copy.backup("main", self._study, "main") as copying:
            copying.step()
        self._copy.pragma("journal_mode", "wal")
        self._copy.pragma("synchronous", "FULL")

    def look(self) -> None:
        """See what was added since it was copied."""
        self._requests = self._study.execute(
            "SELECT * FROM requests WHERE made > ?", (self._commits,)
        ).fetchall()
        self._heads = self._study.execute(
            "SELECT sequence, digest, tally, closed, reserved, last, seal, subject, sequence - 1,"
            " closed, reserved FROM heads"
        ).fetchall()

    def write(self) -> None:
        for start in range(0, len(self._requests), PART):
            own = slice(start, start + PART)
            with self._copy:
                self._copy.executemany(
                    "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", self._requests[own]
                )
                self._copy.executemany(
                    "UPDATE heads SET sequence = ?, digest = ?, tally = ?, closed = ?,"
                    " reserved = ?, last = ?, seal = ?"
                    " WHERE subject = ? AND sequence = ? AND closed = ? AND reserved = ?",
                    self._heads[own],
                )

    def close(self) -> None:
        assert self._copy.total_changes() >= len(self._requests) + len(self._heads)
        place = self._copy.filename
        self._copy.close()
        self._study.close()
        os.unlink(place)


def _opening(place: Path) -> bool:
    """And one answer, for which somebody has to be found."""

    def answered() -> int:
        with xp.Ledger(place) as ledger:
            size = len(ledger)
            ledger.ask(QUERY, [0], [size // 2])
        return size

    runs = [timed(answered) for _ in range(3)]
    size, took = runs[0][0], min(spent for _, spent in runs)
    print(f"opened, and one answer, of {size:,} subjects: {took:.2f} s (limit {OPENING:g})")
    return took <= OPENING


if __name__ == "__main__":
    run()
