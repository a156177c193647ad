"""What many subjects answered, and their losses, as tables in files."""

from __future__ import annotations

import os
from pathlib import Path

from expost.answers import COLUMNS, Answers, queries_from_json
from expost.audit.losses import Losses
from expost.errors import at, expect
from expost.files.regular import read_text
from expost.files.tables import read_table, write_table

__all__ = ["load_answers", "save_losses"]

Path_ = str | os.PathLike[str]


def load_answers(data: Path_, queries: Path_, *, complete: bool = True) -> Answers:
    """Read what many subjects answered, from a table of responses and a file of queries.

    ``data`` is CSV, JSON Lines or Parquet with the columns ``subject``, ``query`` and
    ``response``; others are left alone. ``queries`` is JSON: ``{"version": 1, "domain": …,
    "queries": {"id": {…}, …}}``. An error names the row, and the first one below the header is 1.
    ``complete`` is that of :class:`Answers`: whether these are all answers of their subjects.
    """
    for path in (data, queries):
        expect(path, (str, os.PathLike), "the name of a file")
    with at(os.fspath(queries), ": "):
        domain, by_id = queries_from_json(read_text(queries))
    with at(os.fspath(data), ": "):
        return Answers(domain, by_id, read_table(Path(data), COLUMNS), complete=complete)


def save_losses(losses: Losses, path: Path_) -> None:
    """Write a row per subject: subject, lower, upper, exchanges, basic.

    In CSV a text that a spreadsheet would take for a formula, ``=1+1``, has an apostrophe in front.
    """
    with at(os.fspath(path), ": "):
        write_table(losses.lists(), Path(path))
