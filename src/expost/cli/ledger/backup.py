"""``expost ledger backup``: a copy of a running ledger."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import path
from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("backup")
@ledger
@click.argument("file", type=path, metavar="FILE")
@prints_result
def command(open_: Open, file: Path) -> Result:
    """Copy a ledger, even while another process writes to it.

    Name a FILE that does not exist. The copy has the database only: back up the checkpoint and its
    key separately. To use the copy, replace the ledger with it and run expost ledger
    recover. For PostgreSQL, use pg_dump instead.
    """
    with open_() as study, progress_line() as line:
        line.stage("copying the ledger")
        study.backup(file)
    return Result({"file": str(file)}, [f"The copy is in {file}."])
