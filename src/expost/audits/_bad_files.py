"""Entries of a folder that an audit cannot use: which ones, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from expost.errors import InvalidInput, make_printable

__all__ = ["BadFile", "BadFiles", "describe_unread", "is_hidden"]


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file or folder that cannot be used, and the reason."""

    file: str
    reason: str

    def __str__(self) -> str:
        return make_printable(f"{self.file}: {self.reason}")


class BadFiles(InvalidInput):
    """Some entries of a folder cannot be used. ``files`` has all of them."""

    def __init__(self, files: Sequence[BadFile]) -> None:
        self.files = tuple(files)
        first, *others = self.files
        if others:
            super().__init__(f"{len(files):,} entries cannot be used, the first is {first}")
        else:
            super().__init__(first.reason, first.file)

    def within(self, location: str, joint: str = ".") -> Self:
        """Return this error unchanged: every entry already has its path."""
        return self


def is_hidden(entry: Path) -> bool:
    """Whether a name starts with a dot, as unfinished files of a session do."""
    return entry.name.startswith(".")


def describe_unread(entry: Path, expected: str) -> BadFile:
    """Describe an entry that is not one of the ``expected`` files."""
    what = "a folder" if entry.is_dir() else "not a file to audit"
    reason = f"is {what}, so it was not read; expected {expected}. Move or rename it"
    return BadFile(os.fspath(entry), reason)
