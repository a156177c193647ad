"""Answers of many subjects, from whatever a command is given: a table or a folder."""

from __future__ import annotations

from pathlib import Path

from expost.audits.folder import Gathered, load_folder
from expost.audits.tables import load_answers
from expost.cli.progress import Line
from expost.errors import InvalidInput

__all__ = ["read_many"]


def read_many(data: Path, queries: Path | None, line: Line) -> Gathered:
    """What a folder of transcripts holds, or a table, which names no filter."""
    if data.is_dir():
        return load_folder(
            data, queries, progress=lambda done, total: line.count(done, total, "transcripts")
        )
    if queries is None:
        raise InvalidInput("give --queries QUERIES too; only a folder of transcripts needs none")
    return Gathered(load_answers(data, queries), 0, (None,))
