"""Torture ledgers: thousands of small studies in which everything fails, each from a seed.

    python tests/torture.py [--seeds 10000] [--first 0] [--kind disk|memory|file|server] [--mutants]

One seed in 200 is also played on a PostgreSQL that is killed.

What must hold is in tests/support/simulated_studies.py. A violation is printed with its seed. To
play it again: python tests/torture.py --first SEED --seeds 1
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from support import postgres_sites as _servers  # noqa: F401 - adds a kind of world, and mutants
from support.ledger_mutants import MUTANTS, caught
from support.simulated_studies import KINDS, play

_TOGETHER = 25


class Result(NamedTuple):
    """What became of a seed."""

    seed: int
    kind: str
    violation: str
    redraws: int
    """How often a device restored from a backup drew again what the ledger had not received."""


def _play_some(task: tuple[int, int, str | None]) -> list[Result]:
    first, last, kind = task
    results = []
    for seed in range(first, last):
        try:
            world = play(seed, kind)
            results.append(Result(seed, world.kind, "", world.redraws))
        except Exception as error:
            results.append(Result(seed, kind or "", repr(error), 0))
    return results


def _results(first: int, seeds: int, kind: str | None) -> Iterator[Result]:
    tasks = [
        (start, min(start + _TOGETHER, first + seeds), kind)
        for start in range(first, first + seeds, _TOGETHER)
    ]
    processes = min(len(tasks), os.cpu_count() or 1)
    if processes < 2 or kind == "server":  # a process has one server
        for task in tasks:
            yield from _play_some(task)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done in pool.imap(_play_some, tasks):
            yield from done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--mutants", action="store_true", help="play only mutants")
    given = parser.parse_args()
    missed = 0
    for name in MUTANTS if given.mutants or given.seeds > 1 else ():
        found = caught(name, 200)
        missed += found is None
        print(f"{name}: {'MISSED' if found is None else f'caught by seed {found[0]}'}", flush=True)
    if given.mutants:
        return int(missed > 0)
    start, kinds, violations, redraws = time.monotonic(), Counter[str](), 0, 0
    print(f"seeds {given.first} to {given.first + given.seeds - 1}", flush=True)
    servers = given.seeds // 200 if given.kind is None else 0
    total = given.seeds + servers
    results = chain(
        _results(given.first, given.seeds, given.kind), _results(given.first, servers, "server")
    )
    for number, result in enumerate(results, 1):
        kinds[result.kind] += 1
        redraws += result.redraws
        if result.violation:
            violations += 1
            print(f"\rseed {result.seed} {result.kind}: {result.violation}", flush=True)
        if number % 100 == 0 or number == total:
            took = time.monotonic() - start
            print(f"\r{number:,} of {total:,} seeds, {took:.0f} s", end="", flush=True)
    counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
    print(f"\n{violations} violations in {total:,} seeds ({counts})")
    print(f"{redraws:,} draws repeated by devices restored from a backup")
    return int(violations > 0 or missed > 0)


if __name__ == "__main__":
    sys.exit(main())
