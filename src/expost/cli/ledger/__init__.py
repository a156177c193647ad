"""``expost ledger``: run a durable study by commands."""

from __future__ import annotations

import click

from expost.cli._lazy_group import LazyGroup

__all__ = ["command"]

#: The summaries that ``--help`` prints, by task.
_TASKS = {
    "Set up": {
        "create": "Create a ledger with a domain and a budget, which never change.",
        "register": "Add subjects to a ledger.",
    },
    "Collect": {
        "reserve": "Reserve a query for subjects with devices.",
        "saturating": "Reserve or ask a saturating query, made for each subject.",
        "sync": "Answer the sync requests of devices.",
        "receive": "Record messages from devices.",
        "record": "Record answers that were collected elsewhere.",
        "ask": "Simulate subjects: ask them a query and record their responses.",
        "resolve": "Decide about suspended or held subjects.",
        "end": "End a study permanently.",
    },
    "Read": {
        "status": "Show the state of a study: answers, losses, remaining budgets.",
        "answers": "Write all answers as a table, for estimates and audits.",
        "transcript": "Write the transcript of one subject.",
        "report": "Write a page about a study.",
        "export": "Write a ledger as one file that others can check.",
    },
    "Check": {
        "audit": "Check that every budget was respected at every exchange.",
        "verify": "Recompute everything in a ledger from its answers.",
    },
    "Back up and recover": {
        "backup": "Copy a ledger, even while another process writes to it.",
        "recover": "Make a restored backup usable again.",
    },
}


@click.group("ledger", cls=LazyGroup, package=__name__, tasks=_TASKS)
def command() -> None:
    """Run a durable study (crash-safe budgets for many subjects).

    LEDGER is a file (SQLite; install the extra 'ledger'), or the URL of a database:
    postgresql://host/name (install the extra 'postgres'). One process at a time writes to a ledger.
    """
