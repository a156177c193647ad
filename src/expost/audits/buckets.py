"""Rows on the disk, split by a hash of their subjects, where memory does not hold all of them.

All rows of a subject are in one bucket, so buckets are audited one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = ["HELD", "Buckets", "bucket", "whole_subjects"]

HELD = 1 << 22
"""Rows of a stream that are held in memory."""

# Into which a stream that is longer is split; its end is not known then.
_BUCKETS = 32


def bucket(number: int) -> Expr:
    """Which of so many buckets a row is in."""
    import polars

    # Whoever has no name is a bad row, and found in the first bucket.
    return (polars.col("subject").hash(seed=1) % number).fill_null(0)


@dataclass(frozen=True, slots=True)
class Buckets:
    """So many buckets in a folder."""

    folder: Path
    number: int
    _calls: Iterator[int] = field(default_factory=count, init=False, repr=False)

    def put(self, rows: LazyFrame, wanted: list[int]) -> None:
        """Add rows, those of the buckets that are wanted; all at once need not be in memory."""
        import polars

        split = rows.with_columns(bucket=bucket(self.number))
        if len(wanted) < self.number:
            split = split.filter(polars.col("bucket").is_in(wanted))
        folder = self.folder / str(next(self._calls))
        target = polars.PartitionBy(folder, key="bucket", include_key=False)
        split.sink_parquet(target, compression="lz4", mkdir=True)

    def take(self, number: int) -> DataFrame | None:
        """The rows of one bucket, which are gone from the disk then; None if there are none."""
        import polars

        files = sorted(self.folder.glob(f"*/bucket={number}/*.parquet"))
        if not files:
            return None
        found = polars.concat([polars.read_parquet(file) for file in files])
        for file in files:
            file.unlink()
        return found


def whole_subjects(frames: Iterable[DataFrame], held: int = HELD) -> Iterator[DataFrame]:
    """The rows of many frames in few: all of a subject are in one of them."""
    import polars

    waiting: list[DataFrame] = []
    number = 0
    with tempfile.TemporaryDirectory(prefix="expost-") as folder:
        buckets = None
        every = list(range(_BUCKETS))
        for frame in frames:
            waiting.append(frame)
            number += len(frame)
            if number > held:
                buckets = buckets or Buckets(Path(folder), _BUCKETS)
                buckets.put(polars.concat(waiting).lazy(), every)
                waiting, number = [], 0
        if buckets is None:
            if number:
                yield polars.concat(waiting)
            return
        if number:
            buckets.put(polars.concat(waiting).lazy(), every)
        del waiting
        for each in every:
            found = buckets.take(each)
            if found is not None:
                yield found
