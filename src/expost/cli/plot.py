"""``expost plot``: the odometer of a transcript as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import as_json, composition_delta, path, searching, transcript_file
from expost.cli._outputs import check_picture, show_json, watched, where
from expost.files.canonical import plain_tree
from expost.loss import Odometer
from expost.report._comparison import costs_within_budget
from expost.report._figures import odometer_chart
from expost.report._plot import save_chart
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("plot")
@transcript_file
@click.option(
    "--out",
    "-o",
    type=path,
    default=Path("odometer.png"),
    help="Where to save the picture; .png, .svg or .pdf. An existing picture is replaced.",
)
@composition_delta
@searching()
@as_json
def command(file: Path, out: Path, delta: str | None, effort: Effort, as_json: bool) -> None:
    """The loss after each response as a picture, beside basic composition and the budget.

    With a delta, here or in the filter of the file, also beside other composition rules.
    """
    check_picture(out, file)
    transcript = load_transcript(file)
    answered, guard = len(transcript), transcript.filter
    losses, rules = [], None
    with watched(effort) as (watched_effort, line):
        odometer = Odometer(transcript, effort=watched_effort)
        if delta is not None or (guard is not None and not guard.pure):
            rules = costs_within_budget(
                odometer,
                delta,
                lambda count, total: line.stage(f"composition after {count:,} of {total:,}"),
            )
        for count in range(answered + 1):
            line.stage(f"response {count:,} of {answered:,}")
            losses.append(odometer.loss_after(count))
        chart = odometer_chart(odometer, losses, costs=rules)
        save_chart(chart, out, alt=f"The loss after each of {answered:,} responses.")
    if as_json:
        show_json(plain_tree({"picture": str(out), "exchanges": answered, "loss": losses[-1]}))
    else:
        click.echo(where(out))
