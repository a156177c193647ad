"""``expost forecast``: how many will answer a query now, and in further rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from expost.audits.policy import load_policy
from expost.cli.many import read_many
from expost.cli.options import as_json, next_query, path
from expost.cli.progress import progress_line
from expost.cli.questions import read_query
from expost.cli.show import show_json, show_lines
from expost.designs import Forecast, forecast
from expost.errors import InvalidInput
from expost.knowledge.priors import load_prior

__all__ = ["command"]


@click.command("forecast")
@click.argument("data", type=path, metavar="DATA")
@click.option(
    "--queries",
    type=path,
    metavar="QUERIES",
    help="All queries about their value (JSON); a folder of transcripts needs none.",
)
@click.option(
    "--policy", type=path, metavar="POLICY", help="The filter (JSON); transcripts name theirs."
)
@next_query
@click.option("--rounds", type=int, default=5, help="How often it is asked.")
@click.option(
    "--prior", type=path, metavar="PRIOR", help="On a box: points that values are like (CSV)."
)
@click.option("--seed", type=int, default=0, help="Of the simulation.")
@as_json
def command(
    data: Path,
    queries: Path | None,
    policy: Path | None,
    query: Path,
    rounds: int,
    prior: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """How many will answer a query now, and each time that it is asked again.

    DATA has all answers that they gave (CSV, JSONL, Parquet), or is a folder of transcripts.
    """
    with progress_line() as line:
        study = read_many(data, queries, line)
        guard = study.filter if policy is None else load_policy(policy)
        if guard is None:
            raise InvalidInput("give --policy POLICY too; DATA does not name one filter")
        found = forecast(
            study.answers,
            read_query(query, study.answers.domain),
            filter=guard,
            rounds=rounds,
            population=None if prior is None else load_prior(prior, study.answers.domain),
            seed=seed,
            progress=lambda done, total: line.count(done, total, "rounds"),
        )
    if as_json:
        show_json(found.tree())
    else:
        show_lines(_lines(found))


def _lines(found: Forecast) -> Iterator[tuple[str, str]]:
    yield "subjects", f"{found.subjects:,}"
    yield "now", f"{found.now:,} answer"
    for number, (count, error) in enumerate(zip(found.answering, found.errors, strict=True)):
        if number:
            share = 100 * count / found.subjects
            yield f"round {number + 1}", f"about {count:,.0f} ± {error:,.0f} ({share:.0f} %)"
