"""``expost ledger register``: new subjects, by their names."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import path
from expost.cli._outputs import Result, count_lines, prints_result, progress_line
from expost.cli.ledger._options import Open, SubjectOptions, ledger, some_subjects
from expost.errors import InvalidInput

__all__ = ["command"]

_TOGETHER = 1 << 16


@click.command("register")
@ledger
@click.argument("file", type=path, required=False, metavar="[FILE]")
@some_subjects
@click.option(
    "--kind",
    type=click.Choice(["device", "imported", "simulated"]),
    default="device",
    help="Source of the answers: a device, a table (record), or this process (ask).",
)
@prints_result
def command(open_: Open, file: Path | None, options: SubjectOptions, kind: str) -> Result:
    """Add subjects to a ledger.

    Name them in FILE (as for --subjects) or with --subject. A subject that is already registered
    stays as it is: no budget is ever reset. A subject has one kind, permanently. Stop other
    processes that write to the ledger first.
    """
    listed = [*options.listed(), *SubjectOptions((), file).listed()]
    if not listed:
        raise InvalidInput("no subjects; give FILE, --subject NAME or --subjects FILE")
    names = [name for _, name in listed]
    new = 0
    with open_() as study, progress_line() as line:
        for start in range(0, len(names), _TOGETHER):
            new += study.register(names[start : start + _TOGETHER], kind=kind)
            line.count(min(start + _TOGETHER, len(names)), len(names), "subjects")
        counts = {"new": new, "subjects": len(study)}
    return Result(counts, count_lines(counts))
