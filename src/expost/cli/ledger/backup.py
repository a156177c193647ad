"""``expost ledger backup``: a copy of a running ledger."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import as_json, path
from expost.cli._outputs import progress_line, show_json
from expost.cli.ledger._options import Open, ledger
from expost.errors import make_printable

__all__ = ["command"]


@click.command("backup")
@ledger
@click.argument("file", type=path, metavar="FILE")
@as_json
def command(open_: Open, file: Path, as_json: bool) -> None:
    """Copy a ledger, even while another process writes to it.

    Name a FILE that does not exist. The copy has the database only: back up the checkpoint and its
    key separately. To use the copy, replace the ledger with it and run expost ledger
    recover. For PostgreSQL, use pg_dump instead.
    """
    with open_() as study, progress_line() as line:
        line.stage("copying the ledger")
        study.backup(file)
    if as_json:
        show_json({"file": str(file)})
    else:
        click.echo(make_printable(f"The copy is in {file}."))
