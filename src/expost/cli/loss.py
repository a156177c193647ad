"""``expost loss``: the realized loss of a transcript beside basic composition."""

from __future__ import annotations

import math
from pathlib import Path

import click

from expost.cli.options import as_json, path, searching
from expost.cli.progress import watched
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput
from expost.loss.replay import replayed
from expost.report.words import basic_text, kept_text, shown
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("loss")
@click.argument("file", type=path, metavar="[FILE]", required=False)
@click.option(
    "--many",
    type=path,
    metavar="DATA",
    help="Answers of many subjects (CSV, JSONL, Parquet), all about one value of each.",
)
@click.option(
    "--queries",
    type=path,
    metavar="QUERIES",
    help="With --many: all queries about their value (JSON).",
)
@click.option(
    "--out", "-o", type=path, metavar="OUT", help="With --many: where to save the losses."
)
@click.option(
    "--plot", type=path, metavar="PICTURE", help="With --many: where to save a histogram."
)
@searching()
@as_json
def command(
    file: Path | None,
    many: Path | None,
    queries: Path | None,
    out: Path | None,
    plot: Path | None,
    effort: Effort,
    as_json: bool,
) -> None:
    """The most that anybody who sees all responses of a subject, or of many, has learned.

    FILE is a transcript (JSON).
    """
    if file is not None and many is None and (queries or out or plot) is None:
        _show_loss(file, effort, as_json=as_json)
    elif file is None and many is not None and queries is not None:
        from expost.cli.loss_of_many import show_losses  # one subject needs none of it

        show_losses(many, queries, out, plot, effort, as_json=as_json)
    else:
        raise InvalidInput("give either FILE, or --many DATA with --queries QUERIES")


def _show_loss(file: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load_transcript(file)
    with watched(effort) as (watched_effort, line):
        found = replayed(transcript, watched_effort, line.exchanges)
    if as_json:
        show_json(found.tree())
        return
    loss, guard, share = found.loss, found.guard, found.utilization
    basic = basic_text(found.basic.nearest, transcript)
    lines = [
        ("exchanges", str(len(transcript))),
        ("realized loss", shown(loss)),
        ("at its peak", shown(found.peak)),
        ("basic composition", basic),
        ("utilization", f"{100 * share.upper:.3g} %" if loss.lower < math.inf else "undefined"),
    ]
    if loss.width > effort.gap:
        narrower = "more nodes (--nodes), or less coarse grids of noise, may narrow it"
        lines.insert(2, ("at least", f"{loss.lower:.6g}; {narrower}"))
    if guard is not None:
        lines += [("budget", guard.limit), ("kept", kept_text(found))]
        lines += [("remaining", shown(guard.remaining(found.odometer)))]
    show_lines(lines)
