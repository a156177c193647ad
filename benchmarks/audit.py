"""An audit of a whole log, compared with bare passes of Polars over it.

The peer reads the same file, sorts it by subject and order, and groups it by subject; it decides
nothing. Ours reads the file, and decides every exchange of every subject again. Times are those of
processors, the best of some runs in turn. Run it by hand for sizes of your own, and with
``--spark`` in an environment that has pyspark:

    python -m benchmarks.audit [1000000] [--spark]

Five million subjects are a hundred million rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import expost as xp
from benchmarks.timing import timed

LIMIT = 1.5
"""The limit for losses; with every decision it would be 3."""
MEMORY_LIMIT = 4e9
SPARK_LIMIT = 4.0
# With more subjects the bare passes, which have no limit of memory, would take too much of it.
COMPARED = 2_000_000
EXCHANGES = 20
VALUES = 8
FILTER = xp.BayesianFilter(epsilon="0.8")
QUERIES: dict[str, xp.queries.Query] = {
    f"q{number}": xp.randomized_response(epsilon=epsilon)
    for number, epsilon in enumerate(["0.05", "0.1", "0.2", "0.15"])
}


def run(subjects: int = 50_000, runs: int = 3) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        log, queries = write(subjects, Path(folder))
        rows = subjects * EXCHANGES
        print(
            f"{subjects:,} subjects, {rows:,} rows, {VALUES} values; every exchange decided again"
        )
        share = _compare_with_bare(log, queries, runs) if subjects <= COMPARED else 0.0
        most, seconds = _in_own_process(log, queries)
    print(f"  rows             {rows / seconds:,.0f} per core and second here")
    print(f"  memory           {most / 1e9:.2f} GB at most (limit {MEMORY_LIMIT / 1e9:g})")
    return share <= LIMIT and most <= MEMORY_LIMIT


def _compare_with_bare(log: Path, queries: Path, runs: int) -> float:
    """Divide the seconds of an audit by those of bare passes."""
    bare, ours = np.inf, np.inf
    for _ in range(runs):
        bare = min(bare, timed(lambda: _bare(log))[1])
        audit, seconds = timed(lambda: xp.audit(log, queries, filter=FILTER))
        ours = min(ours, seconds)
    print(
        f"  audit            {ours / bare:5.2f} × the bare read, sort and group (limit {LIMIT:g})"
    )
    print(f"  not respected    {audit.broken:,} subjects, {audit.used_up:,} with nothing remaining")
    return ours / bare


def write(subjects: int, folder: Path) -> tuple[Path, Path]:
    """Write a log with rows in random order, in one or more files, and its queries."""
    log, queries = folder / "log", folder / "queries.json"
    log.mkdir()
    exchanges_per_file = EXCHANGES if subjects <= COMPARED else 2
    for first in range(0, EXCHANGES, exchanges_per_file):
        _rows(subjects, range(first, first + exchanges_per_file)).write_parquet(
            log / f"from{first:02}.parquet"
        )
    domain = xp.FiniteSet([f"v{value}" for value in range(VALUES)])
    xp.audits.save_queries(domain, QUERIES, queries)
    return log, queries


def _rows(subjects: int, exchanges: range) -> Any:
    """Draw some exchanges of all subjects."""
    import polars

    generator, rows = np.random.default_rng(1 + exchanges[0]), subjects * len(exchanges)
    frame = polars.DataFrame(
        {
            "subject": np.repeat(np.arange(subjects), len(exchanges)),
            "order": np.tile(np.array(exchanges, dtype=np.int32) + 1, subjects),
            "query": generator.integers(0, len(QUERIES), rows),
            "response": generator.integers(0, VALUES, rows),
        }
    )
    texts = [
        polars.format("s{}", "subject").alias("subject"),
        polars.format("q{}", "query").alias("query"),
        polars.format("v{}", "response").alias("response"),
    ]
    return frame[generator.permutation(rows)].with_columns(texts)


def _bare(log: Path) -> Any:
    import polars

    rows = polars.scan_parquet(log).sort("subject", "order")
    by_subject = rows.group_by("subject", maintain_order=True)
    last = [polars.col("query").last(), polars.col("response").last()]
    return by_subject.agg(polars.len(), *last).collect()


_ALONE = """
import resource, sys
import expost as xp
xp.audit(sys.argv[1], sys.argv[2], filter=xp.BayesianFilter(epsilon="0.8"))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss * 1024, used.ru_utime + used.ru_stime)
"""


def _in_own_process(log: Path, queries: Path) -> tuple[int, float]:
    """Measure the most bytes and the seconds of an audit in a separate process."""
    command = [sys.executable, "-c", _ALONE, str(log), str(queries)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(printed[0]), float(printed[1])


def on_spark(subjects: int = 250_000, runs: int = 8) -> bool:
    """Compare warm Spark on two cores with Polars, by the processor time of all processes."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have what we have
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        log, queries = write(subjects, Path(folder))
        here, there = [], []
        for _ in range(runs):
            start = _processor_seconds()
            rows = spark.read.parquet(str(log))
            on_spark = xp.audit_spark(rows, queries, filter=FILTER).to_polars()
            there.append(_processor_seconds() - start)
            audit, seconds = timed(lambda: xp.audit(log, queries, filter=FILTER))
            here.append(seconds)
            assert on_spark.equals(audit.to_polars()), "engines agree to the bit"
    spark.stop()
    # It takes a JVM some runs to compile what is run often.
    warm, peer = min(there[runs // 2 :]), min(here)
    share = warm / peer
    print(f"{subjects:,} subjects, {subjects * EXCHANGES:,} rows, on warm Spark with two cores")
    print(f"  audit            {share:5.2f} × Polars (limit {SPARK_LIMIT:g})")
    print(f"  seconds          {warm:.2f} and {peer:.2f} of processors here")
    return share <= SPARK_LIMIT


def _processor_seconds() -> float:
    """Sum the processor seconds of this process and its descendants, on Linux."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    while children := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= children
    return sum(seconds[process] for process in ours)


if __name__ == "__main__":
    sizes = [int(each) for each in sys.argv[1:] if each.isdigit()]
    kept = on_spark(*sizes) if "--spark" in sys.argv else run(*sizes)
    sys.exit(0 if kept else 1)
