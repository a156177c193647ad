"""An audit of a whole log, beside the bare Polars that nobody can avoid.

The peer reads the same file, sorts it by subject and order, and groups it by subject; it decides
nothing. Ours reads the file, and decides every exchange of every subject again. Times are those of
processors, the best of some runs in turn. Run it by hand for sizes of your own, and with
``--spark`` in an environment that has pyspark:

    python -m benchmarks.audit [1000000] [--spark]
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
SPARK_LIMIT = 4.0
EXCHANGES = 20
VALUES = 8
GUARD = xp.BayesianFilter(epsilon="0.8")
QUERIES: dict[str, xp.queries.Query] = {
    f"q{number}": xp.randomized_response(epsilon=epsilon)
    for number, epsilon in enumerate(["0.05", "0.1", "0.2", "0.15"])
}


def run(subjects: int = 50_000, runs: int = 3) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        log, queries = write(subjects, Path(folder))
        bare, ours = np.inf, np.inf
        for _ in range(runs):
            bare = min(bare, timed(lambda: _bare(log))[1])
            found, seconds = timed(lambda: xp.audit(log, queries, filter=GUARD))
            ours = min(ours, seconds)
        rows, most = subjects * EXCHANGES, _memory(log, queries)
    share = ours / bare
    print(f"{subjects:,} subjects, {rows:,} rows, {VALUES} values; every exchange decided again")
    print(f"  audit            {share:5.2f} × the bare read, sort and group (limit {LIMIT:g})")
    print(f"  rows             {rows / ours:,.0f} per core and second here")
    print(f"  memory           {most / 1e9:.2f} GB at most, {most / subjects:,.0f} bytes a subject")
    print(f"  not kept         {found.broken:,} subjects, {found.exhausted:,} with nothing left")
    return share <= LIMIT


def write(subjects: int, folder: Path) -> tuple[Path, Path]:
    """A log whose rows are in no order, and its queries."""
    import polars

    generator, rows = np.random.default_rng(1), subjects * EXCHANGES
    frame = polars.DataFrame(
        {
            "subject": np.repeat(np.arange(subjects), EXCHANGES),
            "order": np.tile(np.arange(1, EXCHANGES + 1, dtype=np.int32), subjects),
            "query": generator.integers(0, len(QUERIES), rows),
            "response": generator.integers(0, VALUES, rows),
        }
    )
    texts = [
        polars.format("s{}", "subject").alias("subject"),
        polars.format("q{}", "query").alias("query"),
        polars.format("v{}", "response").alias("response"),
    ]
    log, queries = folder / "log.parquet", folder / "queries.json"
    frame[generator.permutation(rows)].with_columns(texts).write_parquet(log)
    domain = xp.FiniteSet([f"v{value}" for value in range(VALUES)])
    xp.audits.save_queries(domain, QUERIES, queries)
    return log, queries


def _bare(log: Path) -> Any:
    import polars

    rows = polars.scan_parquet(log).sort("subject", "order")
    each = rows.group_by("subject", maintain_order=True)
    last = [polars.col("query").last(), polars.col("response").last()]
    return each.agg(polars.len(), *last).collect()


_ALONE = """
import resource, sys
import expost as xp
xp.audit(sys.argv[1], sys.argv[2], filter=xp.BayesianFilter(epsilon="0.8"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def _memory(log: Path, queries: Path) -> int:
    """The most bytes that an audit takes, in a process of its own."""
    command = [sys.executable, "-c", _ALONE, str(log), str(queries)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def on_spark(subjects: int = 250_000, runs: int = 8) -> bool:
    """Warm Spark on two cores beside Polars: processor time of the JVM and of all workers."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        log, queries = write(subjects, Path(folder))
        here, there = [], []
        for _ in range(runs):
            start = _everybody()
            rows = spark.read.parquet(str(log))
            on_spark = xp.audit_spark(rows, queries, filter=GUARD).to_polars()
            there.append(_everybody() - start)
            found, seconds = timed(lambda: xp.audit(log, queries, filter=GUARD))
            here.append(seconds)
            assert on_spark.equals(found.to_polars()), "engines agree to the bit"
    spark.stop()
    # It takes a JVM some runs to compile what is run often.
    warm, peer = min(there[runs // 2 :]), min(here)
    share = warm / peer
    print(f"{subjects:,} subjects, {subjects * EXCHANGES:,} rows, on warm Spark with two cores")
    print(f"  audit            {share:5.2f} × Polars (limit {SPARK_LIMIT:g})")
    print(f"  seconds          {warm:.2f} and {peer:.2f} of processors here")
    return share <= SPARK_LIMIT


def _everybody() -> float:
    """Seconds of processors that this process and all that come from it have taken, on Linux."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds[each] for each in ours)


if __name__ == "__main__":
    sizes = [int(each) for each in sys.argv[1:] if each.isdigit()]
    kept = on_spark(*sizes) if "--spark" in sys.argv else run(*sizes)
    sys.exit(0 if kept else 1)
