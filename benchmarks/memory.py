"""The memory of an odometer: about one double per value, and the history.

The history holds the queries themselves, so a perturbation's scores count as history. What was
worked out from them is kept for a few queries only, whatever the length of the history.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np

import expost as xp

SIZE = 1_000_000
EXCHANGES = 50
LIMIT = 1.1


def run() -> bool:
    domain = xp.FiniteSet(range(SIZE))
    generator = np.random.default_rng(1)
    query = xp.perturbation(generator.random(SIZE), epsilon=1)
    for end in (0, 1):
        # Modules that are imported at the first use are no memory of an odometer.
        xp.Odometer(xp.Transcript(domain)).add(query, end)
    again = doubles_per_value(domain, (query for _ in range(EXCHANGES)))
    different_queries = (
        xp.perturbation(generator.random(SIZE), epsilon=1) for _ in range(EXCHANGES)
    )
    different = doubles_per_value(domain, different_queries) - EXCHANGES
    print(f"doubles per value kept after {EXCHANGES} exchanges on {SIZE:,} values")
    print(f"  one query again and again         {again:6.3f}   (limit {LIMIT:g})")
    print(f"  all different, beyond the queries {different:6.3f}")
    return again <= LIMIT


def doubles_per_value(domain: xp.FiniteSet, queries: Iterator[xp.queries.Query]) -> float:
    tracemalloc.start()
    odometer = xp.Odometer(xp.Transcript(domain))
    for query in queries:
        odometer = odometer.add(query, 1)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(odometer) == EXCHANGES
    return allocated / (8 * SIZE)
