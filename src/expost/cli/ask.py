"""``expost ask``: one query of the subject whose transcript is a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from expost.cli.decide import read_question
from expost.cli.options import as_json, next_query, path, searching, transcript_file
from expost.cli.progress import watched
from expost.cli.secret import read_value
from expost.cli.show import show_json, show_lines
from expost.errors import BudgetExceeded
from expost.report.words import response_text
from expost.session.file import FileSession
from expost.solver import Effort

__all__ = ["command"]


@click.command("ask")
@transcript_file
@next_query
@click.option(
    "--secret",
    type=path,
    metavar="SECRET",
    help="The subject's value (JSON); it is asked for by default.",
)
@searching()
@as_json
def command(file: Path, query: Path, secret: Path | None, effort: Effort, as_json: bool) -> None:
    """Ask one query of the subject of a transcript, and record it before the response is shown."""
    transcript, asked = read_question(file, query)
    with watched(effort) as (watched_effort, line):
        session = FileSession(
            file,
            read_value(secret),
            effort=watched_effort,
            waiting=lambda: line.say(f"waiting for another process to let go of {file}"),
        )
        try:
            response = session.ask(asked)
        except BudgetExceeded as refusal:
            if as_json:
                tree = _refused(refusal)  # may take searches, so while the line is there
                line.clear()
                show_json(tree)
            raise
    answered = len(session.transcript)
    if as_json:
        show_json({"answered": True, "response": response, "exchanges": answered})
    else:
        shown = response_text(response, asked, transcript.domain)
        show_lines([("response", shown), ("exchanges", str(answered))])


def _refused(refusal: BudgetExceeded) -> dict[str, Any]:
    return {
        "answered": False,
        "undecided": refusal.undecided,
        "loss": refusal.loss,
        "loss_at_worst": refusal.loss_at_worst,
        "budget": refusal.budget.nearest,
        "largest_epsilon": None if refusal.fits is None else str(refusal.fits),
    }
