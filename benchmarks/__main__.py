"""Run every benchmark; exit 1 if one misses its limit."""

from __future__ import annotations

import sys

from benchmarks import consecutive_decisions, memory, million_values

if __name__ == "__main__":
    # All of them run, whatever the first one says.
    results = [benchmark.run() for benchmark in (million_values, consecutive_decisions, memory)]
    sys.exit(0 if all(results) else "a benchmark missed its limit")
