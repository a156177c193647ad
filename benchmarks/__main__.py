"""Run every benchmark; exit 1 if one misses its limit."""

from __future__ import annotations

import sys

from benchmarks import (
    consecutive_decisions,
    estimation,
    information,
    many,
    memory,
    million_values,
    paper_solver,
    reading,
    records,
    refusals,
    scaling,
    solvers,
    start_up,
)

if __name__ == "__main__":
    missed = [
        benchmark.__name__
        for benchmark in (
            start_up,
            million_values,
            consecutive_decisions,
            memory,
            many,
            estimation,
            information,
            reading,
            records,
            scaling,
            refusals,
            solvers,
            paper_solver,
        )
        if not benchmark.run()
    ]
    sys.exit(f"missed its limit: {', '.join(missed)}" if missed else 0)
