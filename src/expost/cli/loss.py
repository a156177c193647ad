"""``expost loss``: the realized loss of a transcript next to basic composition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from expost._format import format_nats, format_share
from expost.cli._options import file_option, out_option, path, search_options, value_option
from expost.cli._outputs import Result, prints_result, with_progress
from expost.errors import InvalidInput
from expost.loss import Replay
from expost.loss._odometer import peak_text
from expost.loss._replay import replay_with_effort
from expost.report._formatting import basic_text, budget_text, format_amount
from expost.solver import Effort
from expost.transcript import Transcript, load_transcript

__all__ = ["command"]

_TABLES = (".csv", ".jsonl", ".parquet")


@click.command("loss")
@click.argument("file", type=path, metavar="[FILE]", required=False)
@value_option(
    "--many",
    "DATA",
    "Answers of many subjects about one value each (CSV, JSONL, Parquet), or a folder of "
    "transcripts.",
    parameter="data",
    type=path,
)
@file_option(
    "--queries",
    "QUERIES",
    "File of queries (JSON), with --many. Not needed for a folder.",
)
@value_option(
    "--budget",
    "E",
    "Budget in nats, to count the subjects over it at the end, with --many. Default: that of "
    "the filters in a folder.",
)
@out_option(
    "OUT",
    "Table for the losses, with --many (.csv, .jsonl or .parquet). An existing one is replaced.",
)
@file_option(
    "--plot",
    "PICTURE",
    "Histogram, with --many (.png, .svg or .pdf). An existing picture is replaced.",
)
@search_options()
@prints_result
def command(
    file: Path | None,
    data: Path | None,
    queries: Path | None,
    budget: str | None,
    out: Path | None,
    plot: Path | None,
    effort: Effort,
) -> Result:
    """Compute the realized privacy loss of one or many subjects.

    The loss bounds what anyone who sees all responses of a subject can have learned. FILE is a
    transcript (JSON).
    """
    if file is not None and data is None and (queries or budget or out or plot) is None:
        return _compute_loss(file, effort)
    if file is None and data is not None and (queries is not None or data.is_dir()):
        from expost.cli._loss_of_many import loss_of_many  # one subject needs none of it

        return loss_of_many(data, queries, budget, out, plot, effort)
    raise InvalidInput("give either FILE, or --many DATA with --queries QUERIES")


def _compute_loss(file: Path, effort: Effort) -> Result:
    transcript = _load_transcript(file)
    with with_progress(effort) as (watched_effort, line):
        replay = replay_with_effort(transcript, watched_effort, line.exchanges)
    return Result(replay.tree(), _describe_loss(replay, effort))


def _describe_loss(replay: Replay, effort: Effort) -> Iterator[tuple[str, str]]:
    loss, filter_, share = replay.loss, replay.filter, replay.share_of_basic
    transcript = replay.odometer.transcript
    yield "exchanges", str(len(transcript))
    yield "realized loss", format_amount(loss)
    for level, level_loss in replay.level_losses:
        yield f"about {level.about}", format_amount(level_loss)
        yield "not covered", level.gap
    if loss.width > effort.gap:
        narrower = "more nodes (--nodes), or less coarse grids of noise, may narrow it"
        yield "at least", f"{format_nats(loss.lower)}; {narrower}"
    yield "at its peak", peak_text(replay.peak, loss)
    yield "basic composition", basic_text(replay.basic.nearest, transcript)
    yield "share of basic", format_share(share.upper) if loss.lower < math.inf else "undefined"
    if filter_ is None:
        yield "budget", budget_text(filter_)
    else:
        yield "budget", filter_.limit
        yield "budget respected", replay.respected_text
        yield "remaining", filter_.remaining_text(replay.odometer)


def _load_transcript(file: Path) -> Transcript:
    try:
        return load_transcript(file)
    except InvalidInput:
        is_folder = file.is_dir()
        if not is_folder and not (file.is_file() and file.suffix in _TABLES):
            raise
        options = "" if is_folder else " --queries QUERIES"
        reason = "is not the transcript of one subject; for many subjects it is --many"
        raise InvalidInput(f"{reason} {file}{options}", str(file)) from None
