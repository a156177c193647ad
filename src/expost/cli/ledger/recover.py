"""``expost ledger recover``: after a restored backup."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.ledger.options import checkpoint_file
from expost.cli.options import as_json
from expost.cli.outputs import check_output
from expost.cli.show import show_json, show_lines
from expost.files.kinds import CHECKPOINT
from expost.ledger import Ledger

__all__ = ["command"]


@click.command("recover")
@click.argument("place", metavar="LEDGER")
@checkpoint_file
@click.option(
    "--lost", is_flag=True, help="There is no checkpoint any more. Then nobody is closed."
)
@click.option(
    "--everybody",
    is_flag=True,
    help="Close all subjects: the checkpoint is lost, or does not know whom all commits concern.",
)
@as_json
def command(
    place: str, checkpoint: Path | None, lost: bool, everybody: bool, as_json: bool
) -> None:
    """Make a ledger usable that is behind its checkpoint.

    That is what a restored backup is: some subjects may have answered more than it knows. They are
    closed, and everybody else goes on. If the newer database is still there, bring that back rather
    than this. If a process was killed, and nobody knows whom its last commits concern, this refuses
    unless everybody is to be closed.
    """
    if checkpoint is not None:
        check_output(checkpoint, CHECKPOINT)
    closed = Ledger.recover(place, checkpoint=checkpoint, lost=lost, everybody=everybody)
    if as_json:
        show_json({"closed": closed})
    else:
        show_lines([("closed", f"{len(closed):,}"), *(("", str(name)) for name in closed)])
