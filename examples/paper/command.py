"""``expost reproduce``: the experiments of the paper, with a report."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from examples.paper import reproduce
from examples.paper.runner import PARTS, Plan
from expost.cli._options import path
from expost.cli._outputs import Line, as_json, progress_line, show_json, todays_date
from expost.errors import InvalidInput

__all__ = ["command"]


@click.command("reproduce")
@click.argument("experiment", default="all", metavar="[EXPERIMENT]")
@click.option("--runs", type=int, help="Number of runs of each experiment. Default: 50.")
@click.option(
    "--seed", type=int, default=0, help="Seed of the random queries and responses, an integer."
)
@click.option(
    "--out",
    "-o",
    type=path,
    default=Path("reproduced"),
    metavar="DIR",
    help="Folder for the report, the figures and the results.",
)
@click.option("--jobs", type=int, help="Number of runs at the same time. Default: one per core.")
@click.option("--quick", is_flag=True, help="Use fewer runs and a wider gap: about a minute.")
@click.option("--date", metavar="DATE", help="Date shown on the report (any text). Default: today.")
@as_json
def command(
    experiment: str,
    runs: int | None,
    seed: int,
    out: Path,
    jobs: int | None,
    quick: bool,
    date: str | None,
    as_json: bool,
) -> None:
    """Run the experiments of the paper and write a report. Interrupted runs are continued.

    EXPERIMENT is linear, logistic, health, examples, or all of them.
    """
    experiments = (*PARTS, "all")
    if experiment not in experiments:
        raise InvalidInput(f"must be one of {', '.join(experiments)}", "experiment")
    for name, value, least in (("runs", runs, 1), ("seed", seed, 0), ("jobs", jobs, 1)):
        if value is not None and value < least:
            raise InvalidInput(f"must be at least {least}", name)
    plan = Plan.of(experiment, runs=runs, seed=seed, quick=quick)
    with progress_line() as line:
        try:
            tree = reproduce(
                plan, out, jobs or os.cpu_count() or 1, _Shown(line), date=date or todays_date()
            )
        except KeyboardInterrupt:
            click.echo("interrupted; the same command continues from here", err=True)
            raise
    if as_json:
        show_json(tree)
    else:
        click.echo(f"The report is in {out / 'report.html'}, its numbers in results.json.")


class _Shown:
    """Progress on a line, with an estimate of the time that is left."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._start = time.monotonic()
        self.stage = line.stage

    def runs(self, done: int, total: int, share: float) -> None:
        seconds = (time.monotonic() - self._start) * (1 / share - 1)
        self._line.count(done, total, "runs", seconds)
