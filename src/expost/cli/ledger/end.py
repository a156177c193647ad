"""``expost ledger end``: the end of a study."""

from __future__ import annotations

import click

from expost.cli._outputs import Result, prints_result
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("end")
@ledger
@prints_result
def command(open_: Open) -> Result:
    """End a study permanently.

    After that, subjects are neither registered nor asked. Everything can still be read, and devices
    can still deliver what they have answered. Stop other processes that write to the ledger first.
    """
    with open_() as study:
        study.end()
        tip = study.tip
    tree = {"ended": True, "commits": tip.commit_number, "root": tip.root.hex()}
    return Result(tree, ["The study has ended."])
