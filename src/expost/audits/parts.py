"""Finished parts of an audit on the disk, so that one that was interrupted can go on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from expost.errors import InvalidInput
from expost.files.durable import save

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["Parts"]

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
