"""``expost decide``: check whether a query would be accepted (dry run)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from expost._format import format_remaining
from expost.cli._inputs import read_query
from expost.cli._options import next_query, search_options, transcript_file
from expost.cli._outputs import Result, prints_result, with_progress
from expost.errors import at
from expost.filters import Decision, Filter
from expost.filters._outcomes import outcome_text, undecided_text
from expost.loss import Odometer
from expost.queries import Query
from expost.report._formatting import format_amount, response_text
from expost.solver import Effort
from expost.transcript import Transcript, load_transcript

__all__ = ["command", "read_dry_run"]


def read_dry_run(file: Path, query_file: Path) -> tuple[Transcript, Filter, Query]:
    """Read a transcript, the filter that it names, and a query that its domain allows."""
    transcript = load_transcript(file)
    with at(str(file)):
        filter_ = transcript.required_filter
    return transcript, filter_, read_query(query_file, transcript.domain)


def _describe_filters(decision: Decision) -> Iterator[tuple[str, str]]:
    """Yield which of several filters decided, and the loss about the person next to a level."""
    if decision.by_filter:
        yield "decided by", f"the {decision.filter.kind} filter of {decision.limit}"
    if decision.filter.is_at_level:
        yield "about the person", format_amount(decision.loss_of_person)
        yield "not covered", decision.filter.level.gap


@click.command("decide")
@transcript_file
@next_query
@search_options()
@prints_result
def command(file: Path, query: Path, effort: Effort) -> Result:
    """Check whether a query would be accepted (dry run).

    FILE is a transcript with a filter (JSON). Nothing is changed.
    """
    transcript, filter_, next_query_ = read_dry_run(file, query)
    with with_progress(effort) as (watched_effort, _):
        decision = filter_.decide(Odometer(transcript, effort=watched_effort), next_query_)
        tree = decision.tree()  # runs all searches, while the progress line is shown
    outcome = outcome_text(accepted=decision.accepted, undecided=False)
    if decision.undecided:
        outcome += f": {undecided_text(effort)}"
    worst = format_amount(decision.loss_at_worst)
    if decision.worst_response is not None:
        response = response_text(decision.worst_response, next_query_, transcript.domain)
        worst += f"  (if the response is {response})"
    return Result(
        tree,
        [
            ("decision", outcome),
            (f"{decision.label} now", format_amount(decision.loss)),
            (f"{decision.label} at worst", worst),
            *_describe_filters(decision),
            ("budget", filter_.limit),
            ("remaining", format_remaining(decision.remaining, decision.budget.nearest)),
            ("largest epsilon", str(decision.largest_epsilon or "none")),
        ],
    )
