"""``expost ledger end``: the end of a study."""

from __future__ import annotations

import click

from expost.cli._options import as_json
from expost.cli._outputs import show_json
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("end")
@ledger
@as_json
def command(open_: Open, as_json: bool) -> None:
    """End a study permanently.

    After that, subjects are neither registered nor asked. Everything can still be read, and devices
    can still deliver what they have answered. Stop other processes that write to the ledger first.
    """
    with open_() as study:
        study.end()
        tip = study.tip
    if as_json:
        show_json({"ended": True, "commits": tip.commit_number, "root": tip.root.hex()})
    else:
        click.echo("The study has ended.")
