"""What an odometer keeps: about one double per value, and the history."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

import expost as xp

SIZE = 1_000_000
EXCHANGES = 50
LIMIT = 1.1


def run() -> bool:
    domain = xp.FiniteSet(range(SIZE))
    query = xp.perturbation(np.random.default_rng(1).random(SIZE), epsilon=1)
    for end in (0, 1):
        query.on(domain).term(end)
    tracemalloc.start()
    odometer = xp.Odometer(xp.Transcript(domain))
    for number in range(EXCHANGES):
        odometer = odometer.add(query, number % 2)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    doubles = kept / (8 * SIZE)
    print(f"memory of an odometer on {SIZE:,} values after {len(odometer)} exchanges")
    print(f"  {doubles:.3f} doubles per value   (limit {LIMIT:g})")
    return doubles <= LIMIT
