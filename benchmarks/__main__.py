"""Run every benchmark; exit 1 if one misses its limit."""

from __future__ import annotations

import sys

from benchmarks import (
    attributes,
    audit,
    collector,
    consecutive_decisions,
    device,
    estimation,
    hostile_files,
    information,
    ledger,
    ledger_postgres,
    levels,
    many_subjects,
    memory,
    million_values,
    panel,
    paper_solver,
    parsing,
    saturating,
    scaling,
    simulated_year,
    solvers,
    start_up,
    streams,
    utility,
    weekly,
)

if __name__ == "__main__":
    missed = [
        benchmark.__name__
        for benchmark in (
            start_up,
            million_values,
            consecutive_decisions,
            memory,
            many_subjects,
            audit,
            panel,
            ledger,
            ledger_postgres,
            collector,
            device,
            estimation,
            information,
            parsing,
            hostile_files,
            attributes,
            weekly,
            simulated_year,
            levels,
            saturating,
            utility,
            scaling,
            streams,
            solvers,
            paper_solver,
        )
        if not benchmark.run()
    ]
    sys.exit(f"missed its limit: {', '.join(missed)}" if missed else 0)
