"""Torture ledgers: thousands of small studies in which everything fails, each from a seed.

    python tests/torture.py [--seeds 10000] [--first 0] [--kind disk|vault|file|server] [--mutants]

Of a hundred seeds one is played on a PostgreSQL that is killed, too.

What must hold is in tests/support/worlds.py. A violation is printed with its seed, which plays it
again: python tests/torture.py --first SEED --seeds 1
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

sys.path.insert(0, str(Path(__file__).parent))

from support import servers as _servers  # noqa: F401 - adds a kind of world, and mutants
from support.mutants import MUTANTS, caught
from support.worlds import KINDS, played

_TOGETHER = 25


def _some(task: tuple[int, int, str | None]) -> list[tuple[int, str, str]]:
    """Play some seeds: seed, kind, and what was violated."""
    first, last, kind = task
    result = []
    for seed in range(first, last):
        try:
            result.append((seed, played(seed, kind), ""))
        except Exception as error:
            result.append((seed, kind or "", repr(error)))
    return result


def _results(first: int, seeds: int, kind: str | None) -> Iterator[tuple[int, str, str]]:
    tasks = [
        (start, min(start + _TOGETHER, first + seeds), kind)
        for start in range(first, first + seeds, _TOGETHER)
    ]
    processes = min(len(tasks), os.cpu_count() or 1)
    if processes < 2 or kind == "server":  # there is one server for all of a process
        for task in tasks:
            yield from _some(task)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done in pool.imap(_some, tasks):
            yield from done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--mutants", action="store_true", help="only those")
    given = parser.parse_args()
    missed = 0
    for name in MUTANTS if given.mutants or given.seeds > 1 else ():
        found = caught(name, 200)
        missed += found is None
        print(f"{name}: {'MISSED' if found is None else f'caught by seed {found[0]}'}", flush=True)
    if given.mutants:
        return int(missed > 0)
    start, kinds, violations = time.monotonic(), Counter[str](), 0
    print(f"seeds {given.first} to {given.first + given.seeds - 1}", flush=True)
    servers = given.seeds // 100 if given.kind is None else 0
    total = given.seeds + servers
    results = chain(
        _results(given.first, given.seeds, given.kind), _results(given.first, servers, "server")
    )
    for number, (seed, kind, wrong) in enumerate(results, 1):
        kinds[kind] += 1
        if wrong:
            violations += 1
            print(f"\rseed {seed}: {wrong}", flush=True)
        if number % 100 == 0 or number == total:
            took = time.monotonic() - start
            print(f"\r{number:,} of {total:,} seeds, {took:.0f} s", end="", flush=True)
    counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
    print(f"\n{violations} violations in {total:,} seeds ({counts})")
    return int(violations > 0 or missed > 0)


if __name__ == "__main__":
    sys.exit(main())
