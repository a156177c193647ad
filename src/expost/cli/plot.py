"""``expost plot``: plot the loss after each response."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import composition_delta, out_option, search_options, transcript_file
from expost.cli._outputs import Result, check_picture, prints_result, with_progress
from expost.loss import Odometer
from expost.report._comparison import costs_within_budget
from expost.report._figures import odometer_chart
from expost.report._plot import save_chart
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("plot")
@transcript_file
@out_option(
    "PATH",
    "File for the picture (.png, .svg or .pdf). An existing picture is replaced.",
    default=Path("odometer.png"),
)
@composition_delta
@search_options()
@prints_result
def command(file: Path, out: Path, delta: str | None, effort: Effort) -> Result:
    """Plot the loss after each response, next to basic composition and the budget.

    FILE is a transcript (JSON). With a delta, here or in its filter, also plot other composition
    rules.
    """
    check_picture(out, file)
    transcript = load_transcript(file)
    answered = len(transcript)
    with with_progress(effort) as (watched_effort, line):
        odometer = Odometer(transcript, effort=watched_effort)
        rules = costs_within_budget(
            odometer,
            delta,
            lambda count, total: line.stage(f"composition after {count:,} of {total:,}"),
        )
        losses = line.losses_along(odometer)
        chart = odometer_chart(odometer, losses, costs=rules)
        save_chart(chart, out, alt=f"The loss after each of {answered:,} responses.")
    tree = {"picture": str(out), "exchanges": answered, "loss": losses[-1]}
    return Result(tree, [f"The picture is in {out}."])
