"""``expost ledger transcript``: what one subject was asked and answered."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import out_option
from expost.cli._outputs import Result, prints_result
from expost.cli.ledger._options import Open, find_subject, ledger
from expost.errors import at
from expost.files.durable import create

__all__ = ["command"]


@click.command("transcript")
@ledger
@click.argument("subject", metavar="NAME")
@out_option("FILE", "New file (JSON).", required=True)
@prints_result
def command(open_: Open, subject: str, out: Path) -> Result:
    """Write the transcript of one subject.

    NAME is a subject. FILE must not exist. Read FILE with expost explain or expost loss. Only reads
    the ledger.
    """
    with open_() as study:
        transcript = study.transcript(find_subject(study, subject))
    with at(str(out), ": "):
        create(out, transcript.to_json())
    return Result(
        {"content_id": transcript.content_id, "exchanges": len(transcript)},
        [("exchanges", f"{len(transcript):,}"), ("content id", transcript.content_id)],
    )
