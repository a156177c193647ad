"""``expost ledger end``: a study is closed."""

from __future__ import annotations

import click

from expost.cli.ledger.options import Open, ledger
from expost.cli.options import as_json
from expost.cli.show import show_json

__all__ = ["command"]


@click.command("end")
@ledger
@as_json
def command(open_: Open, as_json: bool) -> None:
    """Close a study, for good.

    Nobody is asked, registered or reserved any more. All else can still be read.
    """
    with open_() as study:
        study.end()
        tip = study.tip
    if as_json:
        show_json({"ended": True, "commits": tip.commits, "root": tip.root.hex()})
    else:
        click.echo("The study has ended.")
