"""Finished parts of an audit on the disk, so that one that was interrupted can go on."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from expost.files.durable import save

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder with a table for each part that is done, all of the same audit.

    A part is there as a whole or not at all. Parts of anything else, such as a log that has
    changed since, are removed before the first one is used.
    """

    folder: Path

    def begin(self, digest: str) -> None:
        """Keep what is there of this audit, and nothing else."""
        note = self.folder / "digest"
        if not note.is_file() or note.read_text(encoding="utf-8") != digest:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            save(note, lambda: digest)
        for torn in self.folder.glob(".*"):
            shutil.rmtree(torn) if torn.is_dir() else torn.unlink()

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
        """Remove them: what they were for is done."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.parquet"
