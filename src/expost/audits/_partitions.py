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


_NOTE = "digest"
# What an interruption leaves of a note or of a part.
_TORN = re.compile(r"\.digest\.[0-9a-f]+|\.[0-9]+")
_OWN = re.compile(rf"{_NOTE}|[0-9]{{6,}}\.parquet|{_TORN.pattern}")


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder with a table for each part that is done, all of the same audit.

    A part is there as a whole or not at all. Parts of anything else, such as a log that has
    changed since, are removed before the first one is used.
    """

    folder: Path

    def begin(self, digest: str) -> None:
        """Keep what is there of this audit, and remove what is there of another one.

        A folder with anything else in it is refused, and left as it is.
        """
        note = self.folder / _NOTE
        self.folder.mkdir(parents=True, exist_ok=True)
        # Without a note there are no parts, for it is written first and removed last.
        ours = _OWN if note.is_file() else _TORN
        if not all(ours.fullmatch(name) for name in os.listdir(self.folder)):
            message = "has files of something else in it; name an empty folder, or a new one"
            raise InvalidInput(f"{self.folder} {message}", "resume")
        for torn in self.folder.glob(".*"):
            torn.unlink()
        if not note.is_file() or note.read_text(encoding="utf-8") != digest:
            self._clear()
            save(note, lambda: digest)

    def has(self, number: int) -> bool:
        """Whether a part is done."""
        return self._path(number).is_file()

    def put(self, number: int, rows: DataFrame) -> None:
        """Keep a part."""
        temporary = self.folder / f".{number}"
        rows.write_parquet(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, self._path(number))

    def together(self) -> DataFrame:
        """All parts, in the order of their subjects."""
        import polars

        files = sorted(self.folder.glob("*.parquet"))
        return polars.concat([polars.read_parquet(file) for file in files]).sort("subject")

    def end(self) -> None:
        """Remove them, and the folder: what they were for is done."""
        if self.folder.is_dir():
            self._clear()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _clear(self) -> None:
        for name in os.listdir(self.folder):
            if _OWN.fullmatch(name) and name != _NOTE:
                (self.folder / name).unlink()
        (self.folder / _NOTE).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.parquet"
