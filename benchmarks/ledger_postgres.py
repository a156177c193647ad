"""Ledgers on PostgreSQL beside ``pgbench -N -c 8``, on the same server, in turns.

Each of its transactions changes one row, adds another, and waits for the disk. A ledger decides,
draws, chains and records. Eight threads with one subject each at a time share their commits; a
batch has a hundred subjects. Both wait for the same disk, so the best of several short runs counts.
What else runs on a machine slows few threads more than many clients; the processor time of Python,
of which the least counts, depends less on it.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import expost as xp

__all__ = ["run"]

SINGLE, BATCHES = 0.7, 2.5
CLIENTS, TOGETHER, SUBJECTS = 8, 100, 4_000
SECONDS, TURNS = 1.0, 10

QUERY = xp.randomized_response(epsilon="0.25")


def run() -> bool:
    # The server of the tests, which runs on any machine.
    postgres = import_module("tests.support.postgres")
    with postgres.server_of_our_own(in_memory=False) as server, tempfile.TemporaryDirectory() as at:
        server.pgbench("-i", "-q", "-s", "8", "postgres")
        with postgres.fresh(server.dsn) as dsn, _ledger(dsn, Path(at) / "checkpoint") as ledger:
            (peer, _), single, batches = _in_turns(
                lambda: _pgbench(server), lambda: _threads(ledger), lambda: _batches(ledger)
            )
    good = [_told("8 threads, one subject each", *single, peer, SINGLE)]
    good.append(_told("batches of 100 subjects", *batches, peer, BATCHES))
    return all(good)


def _ledger(dsn: str, checkpoint: Path) -> xp.Ledger:
    ledger = xp.Ledger.create(
        dsn,
        xp.FiniteSet(["no", "yes"]),
        filter=xp.BayesianFilter(epsilon=1_000),
        checkpoint=checkpoint,
    )
    ledger.register([f"subject {number}" for number in range(SUBJECTS)])
    ledger.ask(QUERY, ["no"] * SUBJECTS)  # so that everybody is known, as in a study that goes on
    return ledger


def _in_turns(*measured: Callable[[], float]) -> list[tuple[float, float]]:
    """The best of several runs of each: how many a second, and seconds of our processor for one."""
    runs = [[_timed(each) for each in measured] for _ in range(TURNS)]
    return [
        (max(rate for rate, _ in column), min(own for _, own in column))
        for column in zip(*runs, strict=True)
    ]


def _timed(measured: Callable[[], float]) -> tuple[float, float]:
    start, used = time.monotonic(), time.process_time()
    rate = measured()
    return rate, (time.process_time() - used) / (rate * (time.monotonic() - start))


def _pgbench(server: Any) -> float:
    options = ("-N", "-c", f"{CLIENTS}", "-j", "2", "-T", f"{SECONDS:.0f}", "postgres")
    return float(server.pgbench(*options))


_round = itertools.count()


def _threads(ledger: xp.Ledger) -> float:
    """Answers a second, by threads that ask one subject after the other."""
    number, end = next(_round), time.monotonic() + SECONDS
    done = [0] * CLIENTS

    def ask(own: int) -> None:
        while time.monotonic() < end:
            subject = f"subject {(done[own] * CLIENTS + own) % SUBJECTS}"
            ledger.ask(QUERY, ["no"], [subject], key=f"{number} {own} {done[own]}")
            done[own] += 1

    threads = [threading.Thread(target=ask, args=(own,)) for own in range(CLIENTS)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - start)


def _batches(ledger: xp.Ledger) -> float:
    """Answers a second, by one thread that asks a hundred subjects at a time."""
    number, start, done = next(_round), time.monotonic(), 0
    while time.monotonic() < start + SECONDS:
        first = done % SUBJECTS
        subjects = [f"subject {place}" for place in range(first, first + TOGETHER)]
        ledger.ask(QUERY, ["no"] * TOGETHER, subjects, key=f"{number} {done}")
        done += TOGETHER
    return done / (time.monotonic() - start)


def _told(what: str, ours: float, used: float, peer: float, limit: float) -> bool:
    ratio = ours / peer
    print(
        f"ledger on PostgreSQL, {what}: {ours:,.0f} answers a second, {1e6 * used:.0f} µs of "
        f"processor in Python each, pgbench -N -c 8 {peer:,.0f}: {ratio:.2f} × (at least {limit} ×)"
    )
    return ratio >= limit


if __name__ == "__main__":
    run()
