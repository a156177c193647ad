"""``expost compare``: compare accounting methods on a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from expost._format import format_count, format_number
from expost.cli._options import composition_delta, search_options, transcript_file, value_option
from expost.cli._outputs import Result, prints_result, with_progress
from expost.errors import InvalidInput
from expost.filters._acceptance_limits import MOST_REPEATS
from expost.filters._outcomes import undecided_text
from expost.loss import Odometer
from expost.queries import Query
from expost.report._comparison import METHODS, Comparison, Standing, compare
from expost.report._formatting import format_amount, query_in_words
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]

Row = tuple[str, str, str, str]


@click.command("compare")
@transcript_file
@composition_delta
@value_option("--epsilon-budget", "E", "Budget in nats. Default: that of FILE's filter.")
@search_options()
@prints_result
def command(file: Path, delta: str | None, epsilon_budget: str | None, effort: Effort) -> Result:
    """Compare accounting methods on a transcript, and how many more queries each would accept.

    FILE is a transcript with at least one exchange (JSON).
    """
    transcript = load_transcript(file)
    if transcript.filter is None and epsilon_budget is None:
        reason = "the transcript names no filter, so there is no budget; give --epsilon-budget"
        raise InvalidInput(reason, str(file))
    with with_progress(effort) as (watched_effort, line):
        odometer = Odometer(transcript, effort=watched_effort)
        result = compare(
            odometer, epsilon_budget, delta, stage=lambda name: line.stage(f"accounting: {name}")
        )
    limit = f"budget {result.budget} at delta {format_number(result.delta)}"
    last = transcript.exchanges[-1].query
    lines: list[str | Row] = [
        f"{format_count(result.exchanges, 'exchange')}, {limit}",
        "",
        *_list_standings(result, last, effort),
        "",
        "more: how many more of the last query would be accepted, whatever the responses.",
        f"The last query: {query_in_words(last, transcript.domain)}.",
    ]
    if result.beyond:
        lines.append(f"{result.beyond[:1].upper()}{result.beyond[1:]}.")
    return Result(result.tree(), lines)


def _list_standings(result: Comparison, last: Query, effort: Effort) -> Iterator[Row]:
    yield "", "epsilon", "more", ""
    for name in METHODS:
        standing = result.standings.get(name)
        if standing is None:
            yield name, "", "", result.missing[name]
            continue
        if name == "simplified":
            yield "", "loss", "", ""
        yield _format_standing(standing, last, effort)


def _format_standing(standing: Standing, last: Query, effort: Effort) -> Row:
    repeats, note = standing.repeats, standing.parameters
    if standing.filter.pure and last.approximate:
        note = "without a delta, the last query is refused"
    elif repeats.undecided:
        note = f"the next was {undecided_text(effort)}"
    count = f"{repeats.count:,}" + (" or more" if repeats.count == MOST_REPEATS else "")
    return standing.name, format_amount(standing.spent), count, note
