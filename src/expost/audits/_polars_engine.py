"""An audit in one process, by polars, within a limit of memory.

A log that is too large for the limit is split by a hash of the subjects into buckets on the disk,
and audited bucket by bucket. Rows of one subject are always in one bucket.
Finished parts stay on the disk, so that an interrupted audit can be resumed.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import expost
from expost._types import Progress
from expost.audits._decisions import audit_subjects
from expost.audits._errors import UnusableRows
from expost.audits._log import LogFiles, read, select_exchanges
from expost.audits._plan import Plan
from expost.audits._rows import arrange_rows, bad_rows
from expost.errors import InvalidInput
from expost.files.durable import save

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = ["MEMORY", "Buckets", "Parts", "audit_frame", "audit_log"]

#: Bytes that the rows of the current bucket may take, approximately.
MEMORY = 2 << 30

# A row in memory: its strings, its index, its code, and copies of some of them.
_BYTES_PER_ROW = 128

# Searches on a box may take long, and an interrupted audit loses the bucket that it was in.
_LEAST_BUCKETS_ON_A_BOX = 16

# Steps of the progress bar for each bucket.
_STEPS = 100


def audit_frame(frame: LazyFrame, plan: Plan, report_progress: Progress) -> DataFrame:
    """Audit a table in memory: a row for each subject."""
    rows = read(select_exchanges(frame))
    try:
        subject_rows = arrange_rows(rows, plan)
    except UnusableRows:
        raise bad_rows([(None, frame)], plan) from None
    return audit_subjects(subject_rows, plan, lambda done: report_progress(done, len(subject_rows)))


def audit_log(
    log: LogFiles, plan: Plan, folder: Path, memory: int, report_progress: Progress
) -> DataFrame:
    """Audit a log: a row for each subject.

    Finished parts are stored in a folder, and not audited again after an interruption.
    """
    import polars

    size = log.size
    least = _LEAST_BUCKETS_ON_A_BOX if plan.domain.values is None else 1
    buckets = max(1 + size * _BYTES_PER_ROW // memory, least)
    parts = Parts(folder)
    made_by = f"{expost.__version__} {polars.__version__}"
    parts.open_for(f"{log.digest} {plan.digest} {buckets} {made_by}")
    missing = [bucket_index for bucket_index in range(buckets) if not parts.is_done(bucket_index)]
    try:
        if missing:
            log.check()
        with _open_buckets(log, buckets, missing, memory // _BYTES_PER_ROW >= size) as load_bucket:
            for done, bucket_index in enumerate(missing, start=buckets - len(missing)):
                report_progress(_STEPS * done, _STEPS * buckets)
                subject_rows = arrange_rows(load_bucket(bucket_index), plan)
                report = _report_within(done, buckets, len(subject_rows), report_progress)
                parts.store(bucket_index, audit_subjects(subject_rows, plan, report))
    except UnusableRows:
        parts.remove()
        raise bad_rows([(file, log.rows(file)) for file in log.files], plan) from None
    table = parts.load_all()
    if not len(table):
        raise InvalidInput("there are no rows")
    return table


def _report_within(
    before: int, buckets: int, subjects: int, report_progress: Progress
) -> Callable[[int], None]:
    """Return a progress callback for the subjects of one bucket."""

    def report(done: int) -> None:
        report_progress(_STEPS * before + _STEPS * done // subjects, _STEPS * buckets)

    return report


@contextmanager
def _open_buckets(
    log: LogFiles, buckets: int, missing: list[int], in_memory: bool
) -> Iterator[Callable[[int], DataFrame]]:
    """Yield a function that loads the rows of a bucket: from the log, memory or the disk."""
    if not missing:
        yield lambda bucket_index: read(log.frame().clear())
    elif buckets == 1:
        yield lambda bucket_index: read(log.frame())
    elif in_memory:
        rows = read(log.frame())
        yield lambda bucket_index: rows.filter(bucket_of_row(buckets) == bucket_index)
    else:
        with tempfile.TemporaryDirectory(prefix="expost-") as folder:
            split = Buckets(Path(folder), buckets)
            split.store(log.frame(), missing)
            empty = read(log.frame().clear())
            yield (
                lambda bucket_index: empty if (table := split.load(bucket_index)) is None else table
            )


def bucket_of_row(bucket_count: int) -> Expr:
    """Return the expression for the index of the bucket that has a row."""
    import polars

    # A row without a subject is a bad row; the first bucket reports it.
    return (polars.col("subject").hash(seed=1) % bucket_count).fill_null(0)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets of rows as files in a folder."""

    folder: Path
    bucket_count: int
    _calls: Iterator[int] = field(default_factory=count, init=False, repr=False)

    def store(self, rows: LazyFrame, wanted: list[int]) -> None:
        """Store the rows of the wanted buckets, without having all of them in memory at once."""
        import polars

        split = rows.with_columns(bucket=bucket_of_row(self.bucket_count))
        if len(wanted) < self.bucket_count:
            split = split.filter(polars.col("bucket").is_in(wanted))
        folder = self.folder / str(next(self._calls))
        target = polars.PartitionBy(folder, key="bucket", include_key=False)
        split.sink_parquet(target, compression="lz4", mkdir=True)

    def load(self, index: int) -> DataFrame | None:
        """Load the rows of a bucket and delete its files; return None if it has no rows."""
        import polars

        files = sorted(self.folder.glob(f"*/bucket={index}/*.parquet"))
        if not files:
            return None
        rows = polars.concat([polars.read_parquet(file) for file in files])
        for file in files:
            file.unlink()
        return rows


_DIGEST = "digest"
# Temporary files that an interruption leaves of the digest or of a part.
_TEMPORARY = re.compile(r"\.digest\.[0-9a-f]+|\.[0-9]+")
_OWN_FILES = re.compile(rf"{_DIGEST}|[0-9]{{6,}}\.parquet|{_TEMPORARY.pattern}")


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder with the results of an audit: a table for each bucket that is finished.

    A part is written as a whole or not at all. The file ``digest`` identifies the audit: parts of
    another one, such as of a log that has changed since, are removed before the first is used.
    """

    folder: Path

    def open_for(self, digest: str) -> None:
        """Keep the parts of the audit with this digest, and remove those of another one.

        Refuses a folder with any other file, without changing it.
        """
        digest_file = self.folder / _DIGEST
        self.folder.mkdir(parents=True, exist_ok=True)
        # Without a digest there are no parts, because it is written first and removed last.
        own_files = _OWN_FILES if digest_file.is_file() else _TEMPORARY
        if not all(own_files.fullmatch(name) for name in os.listdir(self.folder)):
            message = "has files of something else in it; name an empty folder, or a new one"
            raise InvalidInput(f"{self.folder} {message}", "resume")
        for temporary in self.folder.glob(".*"):
            temporary.unlink()
        if not digest_file.is_file() or digest_file.read_text(encoding="utf-8") != digest:
            self._clear()
            save(digest_file, lambda: digest)

    def is_done(self, index: int) -> bool:
        """Return whether a part is done."""
        return self._path(index).is_file()

    def store(self, index: int, rows: DataFrame) -> None:
        """Store a part; a crash leaves it whole or not at all."""
        temporary = self.folder / f".{index}"
        rows.write_parquet(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, self._path(index))

    def load_all(self) -> DataFrame:
        """Load all parts as one table, in the order of their subjects."""
        import polars

        files = sorted(self.folder.glob("*.parquet"))
        return polars.concat([polars.read_parquet(file) for file in files]).sort("subject")

    def remove(self) -> None:
        """Remove the parts of a finished audit, and the folder if nothing else is in it."""
        if self.folder.is_dir():
            self._clear()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _clear(self) -> None:
        for name in os.listdir(self.folder):
            if _OWN_FILES.fullmatch(name) and name != _DIGEST:
                (self.folder / name).unlink()
        (self.folder / _DIGEST).unlink(missing_ok=True)

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:06}.parquet"
