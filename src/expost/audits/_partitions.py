"""Rows and finished parts of an audit on the disk, where memory does not hold them all.

All rows of a subject are in one bucket, so buckets are audited one after the other. Finished parts
stay, so that an interrupted audit can be resumed.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from expost.errors import InvalidInput
from expost.files.durable import save

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = ["HELD", "Buckets", "Parts", "bucket", "whole_subjects"]


HELD = 1 << 22
"""Rows of a stream that are held in memory."""

# Into which a stream that is longer is split; its end is not known then.
_BUCKETS = 32


def bucket(index: int) -> Expr:
    """Which of so many buckets a row is in."""
    import polars

    # Whoever has no name is a bad row, and found in the first bucket.
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


def whole_subjects(frames: Iterable[DataFrame], row_limit: int = HELD) -> Iterator[DataFrame]:
    """The rows of many frames in few: all of a subject are in one of them."""
    import polars

    pending: list[DataFrame] = []
    index = 0
    with tempfile.TemporaryDirectory(prefix="expost-") as folder:
        buckets = None
        all_buckets = list(range(_BUCKETS))
        for frame in frames:
            pending.append(frame)
            index += len(frame)
            if index > row_limit:
                buckets = buckets or Buckets(Path(folder), _BUCKETS)
                buckets.store(polars.concat(pending).lazy(), all_buckets)
                pending, index = [], 0
        if buckets is None:
            if index:
                yield polars.concat(pending)
            return
        if index:
            buckets.store(polars.concat(pending).lazy(), all_buckets)
        del pending
        for bucket_index in all_buckets:
            rows = buckets.load(bucket_index)
            if rows is not None:
                yield rows


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
