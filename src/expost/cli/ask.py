"""``expost ask``: one query of the subject whose transcript is a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expost.cli.decide import read_question
from expost.cli.progress import watched
from expost.cli.secret import read_value
from expost.cli.show import response_text, show_json, show_lines
from expost.errors import BudgetExceeded
from expost.session.file import FileSession
from expost.solver import Effort

__all__ = ["run"]


def run(
    file: Path, query_file: Path, secret_file: Path | None, effort: Effort, *, as_json: bool
) -> None:
    transcript, query = read_question(file, query_file)
    with watched(effort) as (watched_effort, line):
        session = FileSession(
            file,
            read_value(secret_file),
            effort=watched_effort,
            waiting=lambda: line.say(f"waiting for another process to let go of {file}"),
        )
        try:
            response = session.ask(query)
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
        shown = response_text(response, query, transcript.domain)
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
