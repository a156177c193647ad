"""``expost decide``: would the filter of a transcript accept one more query?"""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._inputs import read_query
from expost.cli._options import as_json, next_query, searching, transcript_file
from expost.cli._outputs import show_json, show_lines, watched
from expost.errors import at
from expost.filters import Filter
from expost.filters._decision import remaining_text
from expost.filters._outcomes import outcome_text, undecided_text
from expost.loss import Odometer
from expost.queries import Query
from expost.report._formatting import response_text, shown
from expost.solver import Effort
from expost.transcript import Transcript, load_transcript

__all__ = ["command", "read_question"]


def read_question(file: Path, query_file: Path) -> tuple[Transcript, Filter, Query]:
    """A transcript, the filter that it names, and a query that its domain allows."""
    transcript = load_transcript(file)
    with at(str(file)):
        guard = transcript.required_filter
    return transcript, guard, read_query(query_file, transcript.domain)


@click.command("decide")
@transcript_file
@next_query
@searching()
@as_json
def command(file: Path, query: Path, effort: Effort, as_json: bool) -> None:
    """Whether the filter of a transcript would accept one more query. Changes nothing."""
    transcript, guard, asked = read_question(file, query)
    with watched(effort) as (watched_effort, _):
        odometer = Odometer(transcript, effort=watched_effort)
        decision = guard.decide(odometer, asked)
        tree = decision.tree()  # works out everything that is shown
    if as_json:
        show_json(tree)
        return
    outcome = outcome_text(accepted=decision.accepted, undecided=False)
    if decision.undecided:
        outcome += f": {undecided_text(effort)}"
    worst = shown(decision.loss_at_worst)
    if decision.worst_response is not None:
        response = response_text(decision.worst_response, asked, transcript.domain)
        worst += f"  (if the response is {response})"
    show_lines(
        [
            ("decision", outcome),
            (f"{decision.held} now", shown(decision.loss)),
            (f"{decision.held} at worst", worst),
            ("budget", guard.limit),
            ("remaining", remaining_text(decision.remaining, decision.budget)),
            ("largest epsilon", str(decision.largest_epsilon or "none")),
        ]
    )
