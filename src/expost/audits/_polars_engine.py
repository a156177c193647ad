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
from expost.audits._decisions import audited
from expost.audits._log import Log, read
from expost.audits._partitions import Buckets, Parts, bucket
from expost.audits._plan import Plan
from expost.audits._rows import Unusable, arranged
from expost.errors import InvalidInput

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

__all__ = ["MEMORY", "audited_frame", "audited_log"]

MEMORY = 2 << 30
"""In bytes: how much the rows that are worked on may take, about."""

# Of one row while it is worked on: its texts, its place, its code, and copies of some of them.
_ROW = 128

# A search on a box may take long, and what is done is kept bucket by bucket.
_BUCKETS_OF_A_BOX = 16

# Into how many steps progress divides each bucket.
_SHARES = 100

Tell = Callable[[int, int], None]
"""What is called with how much is done, and how much there is."""


def audited_frame(frame: LazyFrame, plan: Plan, tell: Tell) -> DataFrame:
    """A row for each subject of a table that is in memory."""
    rows = read(frame)
    try:
        whole = arranged(rows, plan)
    except Unusable:
        raise bad_rows([(None, frame)], plan) from None
    return audited(whole, plan, lambda done: tell(done, len(whole)))


def audited_log(log: Log, plan: Plan, folder: Path, memory: int, tell: Tell) -> DataFrame:
    """A row for each subject of a log.

    What is done is kept in a folder, and not done again after an interruption.
    """
    import polars

    size = log.size
    fewest = _BUCKETS_OF_A_BOX if plan.domain.values is None else 1
    buckets = max(1 + size * _ROW // memory, fewest)
    parts = Parts(folder)
    made_by = f"{expost.__version__} {polars.__version__}"
    parts.begin(f"{log.digest} {plan.digest} {buckets} {made_by}")
    missing = [number for number in range(buckets) if not parts.has(number)]
    try:
        if missing:
            log.check()
        with _split(log, buckets, missing, memory // _ROW >= size) as rows_of:
            for done, number in enumerate(missing, start=buckets - len(missing)):
                tell(_SHARES * done, _SHARES * buckets)
                whole = arranged(rows_of(number), plan)
                parts.put(number, audited(whole, plan, _inside(done, buckets, len(whole), tell)))
    except Unusable:
        parts.end()
        raise bad_rows([(file, log.part(file)) for file in log.files], plan) from None
    found = parts.together()
    if not len(found):
        raise InvalidInput("there are no rows")
    return found


def _inside(before: int, buckets: int, subjects: int, tell: Tell) -> Callable[[int], None]:
    """What is told of the subjects of one bucket."""

    def told(done: int) -> None:
        tell(_SHARES * before + _SHARES * done // subjects, _SHARES * buckets)

    return told


@contextmanager
def _split(
    log: Log, buckets: int, wanted: list[int], fits: bool
) -> Iterator[Callable[[int], DataFrame]]:
    """The rows of each bucket, from memory or from the disk."""
    if not wanted:
        yield lambda number: read(log.frame().clear())
    elif buckets == 1:
        yield lambda number: read(log.frame())
    elif fits:
        rows = read(log.frame())
        yield lambda number: rows.filter(bucket(buckets) == number)
    else:
        with tempfile.TemporaryDirectory(prefix="expost-") as folder:
            split = Buckets(Path(folder), buckets)
            split.put(log.frame(), wanted)
            nothing = read(log.frame().clear())
            yield lambda number: nothing if (found := split.take(number)) is None else found
