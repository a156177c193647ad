"""An audit in one process, by polars, within a limit of memory.

A log that is too large for the limit is split by a hash of the subjects into buckets on the disk,
and audited bucket by bucket. Rows of one subject are always in one bucket.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import expost
from expost.audits._bad_rows import bad_rows
from expost.audits._decisions import audit_subjects
from expost.audits._log import LogFiles, read
from expost.audits._partitions import Buckets, Parts, bucket
from expost.audits._plan import Plan
from expost.audits._rows import Unusable, arrange_rows
from expost.errors import InvalidInput

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

__all__ = ["MEMORY", "audit_frame", "audit_log"]

MEMORY = 2 << 30
"""In bytes: how much the rows that are worked on may take, about."""

# Of one row while it is worked on: its texts, its place, its code, and copies of some of them.
_ROW = 128

# A search on a box may take long, and what is done is kept bucket by bucket.
_BUCKETS_OF_A_BOX = 16

# Into how many steps progress divides each bucket.
_SHARES = 100

ReportProgress = Callable[[int, int], None]
"""What is called with how much is done, and how much there is."""


def audit_frame(frame: LazyFrame, plan: Plan, report_progress: ReportProgress) -> DataFrame:
    """Audit a table in memory: a row for each subject."""
    rows = read(frame)
    try:
        subject_rows = arrange_rows(rows, plan)
    except Unusable:
        raise bad_rows([(None, frame)], plan) from None
    return audit_subjects(subject_rows, plan, lambda done: report_progress(done, len(subject_rows)))


def audit_log(
    log: LogFiles, plan: Plan, folder: Path, memory: int, report_progress: ReportProgress
) -> DataFrame:
    """Audit a log: a row for each subject.

    What is done is kept in a folder, and not done again after an interruption.
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
                parts.store(
                    bucket_index,
                    audit_subjects(
                        subject_rows,
                        plan,
                        _progress_within(done, buckets, len(subject_rows), report_progress),
                    ),
                )
    except Unusable:
        parts.remove()
        raise bad_rows([(file, log.part(file)) for file in log.files], plan) from None
    table = parts.load_all()
    if not len(table):
        raise InvalidInput("there are no rows")
    return table


def _progress_within(
    before: int, buckets: int, subjects: int, report_progress: ReportProgress
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
