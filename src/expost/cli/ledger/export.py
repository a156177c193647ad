"""``expost ledger export``: a ledger as one file that others can check."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import out_option
from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("export")
@ledger
@out_option("FILE", "New file (JSONL).", required=True)
@prints_result
def command(open_: Open, out: Path) -> Result:
    """Write a ledger as one file that others can check.

    FILE gets the policy, the queries, and one line with all answers for each subject. Only reads
    the ledger.
    """
    with open_() as study, progress_line() as line:
        study.export(out, progress=line.counts("subjects"))
        tip = study.tip
    tree = {"file": str(out), "commits": tip.commit_number, "root": tip.root.hex()}
    return Result(tree, [f"The ledger is in {out}."])
