"""``expost ledger register``: subjects, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from expost.answers import Subject
from expost.cli.ledger.options import Open, in_parts, ledger, read_subjects
from expost.cli.options import as_json, path
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput

__all__ = ["command"]


@click.command("register")
@ledger
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--from",
    "file",
    type=path,
    metavar="FILE",
    help="A table with a column 'subject' (CSV, JSONL, Parquet), or a text with a name per line.",
)
@as_json
def command(open_: Open, names: Sequence[str], file: Path | None, as_json: bool) -> None:
    """Add subjects to a ledger.

    Whoever is there already stays as they are: no budget is ever reset.
    """
    everybody: list[Subject] = [*names, *(read_subjects(file) if file is not None else ())]
    if not everybody:
        raise InvalidInput("name somebody, or give --from FILE")
    new = 0
    with open_() as study, progress_line() as line:
        for start, end in in_parts(everybody, line):
            new += study.register(everybody[start:end])
        total = len(study)
    if as_json:
        show_json({"new": new, "subjects": total})
    else:
        show_lines([("new", f"{new:,}"), ("subjects", f"{total:,}")])
