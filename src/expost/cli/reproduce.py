"""``expost reproduce``: the experiments of the paper, which a checkout has in examples/paper."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from expost.errors import InvalidInput

__all__ = ["command", "command_of"]

_CHECKOUT = Path(__file__).resolve().parents[3]


@click.command("reproduce", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def _unavailable(arguments: tuple[str, ...]) -> None:
    """Run the experiments of the paper and write a report. Needs a checkout of the repository."""
    raise InvalidInput(
        "the experiments are not part of the installed package; get the repository, run "
        "make setup there, and repeat the command with its .venv/bin/expost"
    )


def command_of(checkout: Path) -> click.Command:
    """Return the command that ``examples/paper`` defines, or one that says where to get it."""
    if not (checkout / "examples" / "paper" / "command.py").is_file():
        return _unavailable
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    command: click.Command = importlib.import_module("examples.paper.command").command
    return command


command = command_of(_CHECKOUT)
