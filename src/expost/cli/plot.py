"""``expost plot``: the odometer of a transcript as a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from expost.accounting import Odometer
from expost.cli.progress import progress_line
from expost.cli.show import show_json
from expost.errors import InvalidInput
from expost.extrema import Effort
from expost.plots import odometer_figure, save
from expost.transcript import load

__all__ = ["run"]


def run(file: Path, out: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load(file)
    answered = len(transcript)
    losses = []
    with progress_line() as line:
        odometer = Odometer(transcript, effort=replace(effort, progress=line))
        for count in range(answered + 1):
            line.stage(f"response {count:,} of {answered:,}")
            losses.append(odometer.loss_after(count))
        budget = None if transcript.filter is None else transcript.filter.budget
        try:
            save(odometer_figure(odometer, losses, budget), out)
        except ModuleNotFoundError:
            raise InvalidInput("a picture needs the extra: pip install 'expost[plot]'") from None
    if as_json:
        show_json({"picture": str(out), "exchanges": answered, "loss": losses[-1]})
    else:
        typer.echo(f"The picture is in {out}.")
