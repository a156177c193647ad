"""Errors of audits: entries of a folder and rows of a log that cannot be used, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from expost.errors import InvalidInput, make_printable

__all__ = [
    "BadFile",
    "BadFiles",
    "BadRow",
    "BadRows",
    "UnusableRows",
    "describe_unread",
    "is_hidden",
]


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
            self.details = self.files
            super().__init__(f"{len(files):,} entries cannot be used, the first is {first}")
        else:
            super().__init__(first.reason, first.file)

    def within(self, location: str, joint: str = ".") -> Self:
        """Return this error unchanged: every entry already has its path."""
        return self


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of a log, counted from 1 below the header, and what is wrong with it.

    On a cluster rows have no numbers: there it is known by its subject and its exchange.
    """

    file: str
    row: int | None
    reason: str

    def __str__(self) -> str:
        locations = [make_printable(self.file)] if self.file else []
        locations += [] if self.row is None else [f"row {self.row}"]
        return ": ".join([*locations, self.reason])


class BadRows(InvalidInput):
    """Some rows of a log cannot be used, so no subject was audited.

    ``rows`` has the first ones, and ``count`` is their number.
    """

    def __init__(self, rows: tuple[BadRow, ...], count: int) -> None:
        self.rows = self.details = rows
        self.count = count
        what = "row cannot be used" if count == 1 else "rows cannot be used"
        super().__init__(f"{count:,} {what}, so no subject was audited: {rows[0]}")

    def within(self, location: str, joint: str = ".") -> Self:
        """Return this error unchanged: every row already names its file."""
        return self


class UnusableRows(Exception):
    """Some row cannot be used; :func:`~expost.audits._rows.bad_rows` finds which ones, and why."""


def is_hidden(entry: Path) -> bool:
    """Return whether a name starts with a dot, as unfinished files of a session do."""
    return entry.name.startswith(".")


def describe_unread(entry: Path, expected: str) -> BadFile:
    """Describe an entry that is not one of the ``expected`` files."""
    what = "a folder" if entry.is_dir() else "not a file to audit"
    reason = f"is {what}, so it was not read; expected {expected}. Move or rename it"
    return BadFile(os.fspath(entry), reason)
