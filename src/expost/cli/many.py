"""Answers of many subjects, from whatever a command is given: a table or a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from expost.audits.bad_files import BadFiles
from expost.audits.folder import Gathered, load_folder
from expost.audits.tables import load_answers
from expost.cli.progress import Line
from expost.errors import InvalidInput, at
from expost.files.regular import opened

__all__ = ["list_files", "read_many"]


def list_files(error: BadFiles) -> None:
    """Print a line for each entry of a folder that cannot be used, if there are several."""
    if len(error.files) > 1:
        for each in error.files:
            click.echo(f"expost: {each}", err=True)


def read_many(data: Path, queries: Path | None, line: Line) -> Gathered:
    """What a folder of transcripts holds, or a table, which names no filter."""
    if data.is_dir():
        try:
            return load_folder(
                data, queries, progress=lambda done, total: line.count(done, total, "transcripts")
            )
        except BadFiles as error:
            line.clear()
            list_files(error)
            raise
    if queries is None:
        with at(str(data), ": "), opened(data, most=sys.maxsize):
            raise InvalidInput("a table needs --queries QUERIES too")
    return Gathered(load_answers(data, queries), 0, (None,))
