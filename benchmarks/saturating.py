"""A saturating query on many values: after another one, and after answers with many classes."""

from __future__ import annotations

from functools import partial

import expost as xp
from benchmarks.timing import best

SIZE = 100_000
LIMIT = 1.0


def run() -> bool:
    domain = xp.FiniteSet(range(SIZE))
    start = xp.Odometer(xp.Transcript(domain))
    once = start.add(xp.saturating(start, "value < 40000", cap=1), 1)
    hashed = start
    for number in range(6):
        hashed = hashed.add(
            xp.local_hashing(seed=f"{number:02x}", buckets=2, epsilon="0.2"), number % 2
        )
    print(f"a saturating query on {SIZE:,} values (limit {LIMIT:g} s)")
    within = True
    for name, odometer in (("after another one", once), ("after six hashes", hashed)):
        for shown, question in (("a statement", "value < 70000"), ("a set", range(0, SIZE, 2))):
            seconds = best(partial(xp.saturating, odometer, question, cap=2), runs=3)
            within &= seconds <= LIMIT
            print(f"  {name}, {shown:<12} {seconds:5.2f} s")
    return within
