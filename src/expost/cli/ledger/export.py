"""``expost ledger export``: a ledger as one file that others can check."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import as_json, out_option
from expost.cli._outputs import progress_line, show_json
from expost.cli.ledger._options import Open, ledger
from expost.errors import make_printable

__all__ = ["command"]


@click.command("export")
@ledger
@out_option("FILE", "New file (JSONL).", required=True)
@as_json
def command(open_: Open, out: Path, as_json: bool) -> None:
    """Write a ledger as one file that others can check.

    It has the policy, the queries, and a line for each subject with all answers. Reads only.
    """
    with open_() as study, progress_line() as line:
        study.export(out, progress=line.counts("subjects"))
        tip = study.tip
    if as_json:
        show_json({"file": str(out), "commits": tip.commit_number, "root": tip.root.hex()})
    else:
        click.echo(make_printable(f"The ledger is in {out}."))
