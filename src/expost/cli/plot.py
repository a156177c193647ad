"""``expost plot``: the odometer of a transcript as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.options import as_json, composition_delta, path, searching, transcript_file
from expost.cli.progress import Line, watched
from expost.cli.show import show_json
from expost.errors import InvalidInput
from expost.files.canonical import plain
from expost.files.regular import check_apart
from expost.loss.odometer import Odometer
from expost.report.comparison import composition_filters, costs, limits
from expost.report.figures import odometer_figure, save
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


# Rogers needs much more than the others, and would be outside of the picture.
_DRAWN = ("basic", "whitehouse", "renyi", "mixture")


@click.command("plot")
@transcript_file
@click.option(
    "--out",
    "-o",
    type=path,
    default=Path("odometer.png"),
    help="Where to save the picture; .png, .svg or .pdf.",
)
@composition_delta
@searching()
@as_json
def command(file: Path, out: Path, delta: str | None, effort: Effort, as_json: bool) -> None:
    """The loss after each response as a picture, beside basic composition and the budget.

    With a delta, here or in the filter of the file, also beside other composition rules.
    """
    check_apart(out, file)
    transcript = load_transcript(file)
    answered, guard = len(transcript), transcript.filter
    budget = None if guard is None else guard.budget
    losses, rules = [], None
    with watched(effort) as (watched_effort, line):
        odometer = Odometer(transcript, effort=watched_effort)
        if delta is not None or (guard is not None and not guard.pure):
            rules = _costs(odometer, delta, line)
        for count in range(answered + 1):
            line.stage(f"response {count:,} of {answered:,}")
            losses.append(odometer.loss_after(count))
        try:
            save(odometer_figure(odometer, losses, budget, rules), out)
        except ModuleNotFoundError:
            raise InvalidInput("a picture needs the extra: pip install 'expost[plot]'") from None
    if as_json:
        show_json(plain({"picture": str(out), "exchanges": answered, "loss": losses[-1]}))
    else:
        click.echo(f"The picture is in {out}.")


def _costs(odometer: Odometer, delta: str | None, line: Line) -> dict[str, list[float]]:
    """What composition rules say after each response, as long as it is within the budget."""
    budget, spared = limits(odometer.transcript, None, delta)
    guards, _ = composition_filters(odometer.transcript, budget, spared)
    drawn: dict[str, list[float]] = {name: [] for name in _DRAWN if name in guards}
    history = costs(odometer, [guards[name] for name in drawn])
    for count, cases in enumerate(history):
        line.stage(f"composition after {count:,} of {len(odometer):,}")
        within = {
            name: case for name, case in zip(drawn, cases, strict=True) if case.within(budget)
        }
        if not within:
            break  # what is over the budget stays there
        for name, case in within.items():
            drawn[name].append(case.loss.upper)
    return drawn
