"""``expost ledger``: studies whose budgets are kept durably, by commands."""

from __future__ import annotations

import click

from expost.cli.lazily import Lazily

__all__ = ["COMMANDS", "command"]

COMMANDS = {
    "create": "Make a new ledger: a domain and a budget, which never change.",
    "register": "Add subjects to a ledger.",
    "reserve": "Reserve the next exchange of subjects for their devices.",
    "record": "Take in what devices sent.",
    "ask": "Ask everybody whose value is at hand, and record it.",
    "status": "How a study stands: answers, losses, what is left.",
    "answers": "Write everybody's answers as a table, for estimates and audits.",
    "transcript": "Write what one subject was asked and answered.",
    "audit": "Whether every budget in a ledger was kept at every exchange.",
    "report": "Write a page about a study.",
    "export": "Write all of a ledger as one file that others can check.",
    "verify": "Recompute all of a ledger from what was answered.",
    "recover": "Make a ledger usable that is behind its checkpoint.",
    "end": "Close a study, for good.",
}
"""What ``--help`` says about each, in the order of the list."""


@click.group("ledger", cls=Lazily, package=__name__, listed=COMMANDS)
def command() -> None:
    """A study whose budgets outlive crashes and retries.

    LEDGER is a file (SQLite), or the URL of a database: postgresql://host/name.
    """
