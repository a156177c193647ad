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
from expost.audits._errors import Unusable
from expost.audits._log import LogFiles, read, select_exchanges
from expost.audits._plan import Plan
from expost.audits._rows import arrange_rows, bad_rows
from expost.errors import InvalidInput
from expost.files.durable import save

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = ["MEMORY", "Buckets", "Parts", "audit_frame", "audit_log"]

MEMORY = 2 << 30
"""In bytes: how much the rows that are worked on may take, about."""

# Of one row while it is worked on: its texts, its place, its code, and copies of some of them.
_ROW = 128

# A search on a box may take long, and what is done is kept bucket by bucket.
_BUCKETS_OF_A_BOX = 16

# Into how many steps progress divides each bucket.
_SHARES = 100


def audit_frame(frame: LazyFrame, plan: Plan, report_progress: Progress) -> DataFrame:
    """Audit a table in memory: a row for each subject."""
    rows = read(select_exchanges(frame))
    try:
        subject_rows = arrange_rows(rows, plan)
    except Unusable:
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
    fewest = _BUCKETS_OF_A_BOX if plan.domain.values is None else 1
    buckets = max(1 + size * _ROW // memory, fewest)
    parts = Parts(folder)
    made_by = f"{expost.__version__} {polars.__version__}"
    parts.open_for(f"{log.digest} {plan.digest} {buckets} {made_by}")
    missing = [bucket_index for bucket_index in range(buckets) if not parts.is_done(bucket_index)]
    try:
        if missing:
            log.check()
        with _split(log, buckets, missing, memory // _ROW >= size) as load_bucket:
            for done, bucket_index in enumerate(missing, start=buckets - len(missing)):
                report_progress(_SHARES * done, _SHARES * buckets)
                subject_rows = arrange_rows(load_bucket(bucket_index), plan)
                report = _progress_within(done, buckets, len(subject_rows), report_progress)
                parts.store(bucket_index, audit_subjects(subject_rows, plan, report))
    except Unusable:
        parts.remove()
        raise bad_rows([(file, log.rows(file)) for file in log.files], plan) from None
    table = parts.load_all()
    if not len(table):
        raise InvalidInput("there are no rows")
    return table


def _progress_within(
    before: int, buckets: int, subjects: int, report_progress: Progress
) -> Callable[[int], None]:
    """Return a progress callback for the subjects of one bucket."""

    def report(done: int) -> None:
        report_progress(_SHARES * before + _SHARES * done // subjects, _SHARES * buckets)

    return report


@contextmanager
def _split(
    log: LogFiles, buckets: int, missing: list[int], in_memory: bool
) -> Iterator[Callable[[int], DataFrame]]:
    """The rows of each bucket, from memory or from the disk."""
    if not missing:
        yield lambda bucket_index: read(log.frame().clear())
    elif buckets == 1:
        yield lambda bucket_index: read(log.frame())
    elif in_memory:
        rows = read(log.frame())
        yield lambda bucket_index: rows.filter(bucket(buckets) == bucket_index)
    else:
        with tempfile.TemporaryDirectory(prefix="expost-") as folder:
            split = Buckets(Path(folder), buckets)
            split.store(log.frame(), missing)
            empty = read(log.frame().clear())
            yield (
                lambda bucket_index: empty if (table := split.load(bucket_index)) is None else table
            )


def bucket(index: int) -> Expr:
    """Which of so many buckets a row is in."""
    import polars

    # A row without a subject is a bad row; the first bucket reports it.
    return (polars.col("subject").hash(seed=1) % index).fill_null(0)


@dataclass(frozen=True, slots=True)
class Buckets:
    """So many buckets in a folder."""

    folder: Path
    index: int
    _calls: Iterator[int] = field(default_factory=count, init=False, repr=False)

    def store(self, rows: LazyFrame, wanted: list[int]) -> None:
        """Add rows, those of the buckets that are wanted; all at once need not be in memory."""
        import polars

        split = rows.with_columns(bucket=bucket(self.index))
        if len(wanted) < self.index:
            split = split.filter(polars.col("bucket").is_in(wanted))
        folder = self.folder / str(next(self._calls))
        target = polars.PartitionBy(folder, key="bucket", include_key=False)
        split.sink_parquet(target, compression="lz4", mkdir=True)

    def load(self, index: int) -> DataFrame | None:
        """The rows of one bucket, which are gone from the disk then; None if there are none."""
        import polars

        files = sorted(self.folder.glob(f"*/bucket={index}/*.parquet"))
        if not files:
            return None
        rows = polars.concat([polars.read_parquet(file) for file in files])
        for file in files:
            file.unlink()
        return rows


_NOTE = "digest"
# What an interruption leaves of a note or of a part.
_TORN = re.compile(r"\.digest\.[0-9a-f]+|\.[0-9]+")
_OWNED = re.compile(rf"{_NOTE}|[0-9]{{6,}}\.parquet|{_TORN.pattern}")


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder with a table for each part that is done, all of the same audit.

    A part is there as a whole or not at all. Parts of anything else, such as a log that has
    changed since, are removed before the first one is used.
    """

    folder: Path

    def open_for(self, digest: str) -> None:
        """Keep what is there of this audit, and remove what is there of another one.

        A folder with anything else in it is refused, and left as it is.
        """
        note = self.folder / _NOTE
        self.folder.mkdir(parents=True, exist_ok=True)
        # Without a note there are no parts, for it is written first and removed last.
        owned_names = _OWNED if note.is_file() else _TORN
        if not all(owned_names.fullmatch(name) for name in os.listdir(self.folder)):
            message = "has files of something else in it; name an empty folder, or a new one"
            raise InvalidInput(f"{self.folder} {message}", "resume")
        for torn_file in self.folder.glob(".*"):
            torn_file.unlink()
        if not note.is_file() or note.read_text(encoding="utf-8") != digest:
            self._clear()
            save(note, lambda: digest)

    def is_done(self, index: int) -> bool:
        """Whether a part is done."""
        return self._path(index).is_file()

    def store(self, index: int, rows: DataFrame) -> None:
        """Keep a part."""
        temporary = self.folder / f".{index}"
        rows.write_parquet(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, self._path(index))

    def load_all(self) -> DataFrame:
        """All parts, in the order of their subjects."""
        import polars

        files = sorted(self.folder.glob("*.parquet"))
        return polars.concat([polars.read_parquet(file) for file in files]).sort("subject")

    def remove(self) -> None:
        """Remove them, and the folder: what they were for is done."""
        if self.folder.is_dir():
            self._clear()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _clear(self) -> None:
        for name in os.listdir(self.folder):
            if _OWNED.fullmatch(name) and name != _NOTE:
                (self.folder / name).unlink()
        (self.folder / _NOTE).unlink(missing_ok=True)

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:06}.parquet"
