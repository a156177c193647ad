"""``expost forecast``: forecast how many subjects will accept a query, now and in later rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from expost._format import format_fixed
from expost.audits._answer_files import LoadedTranscripts
from expost.audits._plan import load_filter
from expost.cli._inputs import is_ledger, read_answers, read_query
from expost.cli._options import file_option, next_query, queries_file
from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import checkpoint_file, find_query
from expost.designs import Forecast, forecast
from expost.errors import InvalidInput
from expost.knowledge import load_prior
from expost.ledger import Ledger
from expost.ledger.database_url import is_database_url
from expost.queries import Query

__all__ = ["command"]


@click.command("forecast")
@click.argument("data", metavar="DATA")
@queries_file
@file_option(
    "--filter",
    "FILTER",
    "Privacy filter (JSON). Default: that of the transcripts or of the ledger.",
)
@next_query
@checkpoint_file
@click.option("--rounds", type=int, default=5, help="Number of rounds in which the query is asked.")
@file_option(
    "--prior", "PRIOR", "Points that represent the subjects' values on a box domain (CSV)."
)
@click.option("--seed", type=int, default=0, help="Seed of the simulation, an integer.")
@prints_result
def command(
    data: str,
    queries: Path | None,
    filter: Path | None,
    query: Path,
    checkpoint: Path | None,
    rounds: int,
    prior: Path | None,
    seed: int,
) -> Result:
    """Forecast how many subjects will accept a query, now and in later rounds.

    DATA is a table of all answers (CSV, JSONL, Parquet), a folder of transcripts, or a ledger: a
    file, or the URL of a PostgreSQL database. Subjects without answers are not counted.
    """
    accepting: int | None = None
    with progress_line() as line:
        if is_database_url(data) or is_ledger(Path(data)):
            if filter is not None:
                raise InvalidInput("a ledger has its own filter; leave --filter out")
            line.stage("reading the ledger")
            study, asked_next, accepting = _read_ledger(data, checkpoint, query)
        else:
            study = read_answers(Path(data), queries, line)
            asked_next = read_query(query, study.answers.domain)
        filter_ = study.filter if filter is None else load_filter(filter)
        if filter_ is None:
            raise InvalidInput("DATA does not name one filter; give --filter FILTER")
        result = forecast(
            study.answers,
            asked_next,
            filter=filter_,
            rounds=rounds,
            population=None if prior is None else load_prior(prior, study.answers.domain),
            seed=seed,
            progress=line.counts("rounds"),
        )
    held_back = 0 if accepting is None else result.now - accepting
    return Result(
        {**result.tree(), "not_asked": study.unasked, "held_back": held_back},
        _describe_forecast(result, study.unasked, held_back),
    )


def _read_ledger(
    location: str, checkpoint: Path | None, query: Path
) -> tuple[LoadedTranscripts, Query, int]:
    """Read a ledger's answers and a query; count the subjects that it would ask again now."""
    with Ledger(location, checkpoint=checkpoint) as ledger:
        answers = ledger.answers()
        asked_next = find_query(ledger, str(query))
        decided = ledger.decide(asked_next, answers.subjects)
        study = LoadedTranscripts(answers, len(ledger) - len(answers), (ledger.filter,))
    return study, asked_next, int(decided.accepted.sum())


def _describe_forecast(result: Forecast, unasked: int, held_back: int) -> Iterator[tuple[str, str]]:
    yield "subjects", f"{result.subjects:,} who have answered before"
    if unasked:
        yield "not counted", f"{unasked:,} who have not answered anything so far"
    if held_back:
        yield (
            "held back",
            f"{held_back:,} suspended, unconfirmed or with an open reservation, counted as if not",
        )
    yield "now", f"{result.now:,} answer"
    for index, (count, error) in enumerate(zip(result.answering, result.errors, strict=True)):
        if index:
            share = 100 * count / result.subjects
            answering = f"about {format_fixed(count, 0)} ± {format_fixed(error, 0)}"
            yield f"round {index + 1}", f"{answering} ({format_fixed(share, 0)} %)"
