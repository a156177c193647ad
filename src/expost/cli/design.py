"""``expost design``: predict the accuracy of each study design and recommend one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click

from expost.cli._options import as_json, page_date, path
from expost.cli._outputs import (
    check_output,
    progress_line,
    show_json,
    show_lines,
    warn,
    written,
)
from expost.designs import Design, design_study, load_study
from expost.designs._design import REPETITIONS
from expost.designs.study import LEAST_EPSILON
from expost.errors import make_printable
from expost.files.durable import save
from expost.files.kinds import PAGE
from expost.filters._large_budgets import large_text
from expost.numbers import Nats
from expost.queries import LARGEST_EPSILON
from expost.report._design_page import advice, design_page, error_text, reasons

__all__ = ["command"]

_BUDGETS = (Fraction(1, 4), Fraction(1, 2), Fraction(2))
"""What else the figure of a page shows, relative to the budget of the study."""


@click.command("design")
@click.argument("study", type=path, metavar="STUDY")
@click.option(
    "--html", type=path, metavar="PAGE", help="Also write a page for a meeting, with figures."
)
@click.option("--repetitions", type=int, default=REPETITIONS, help="How many groups are simulated.")
@click.option("--seed", type=int, default=0, help="Of the simulation.")
@page_date
@as_json
def command(
    study: Path,
    html: Path | None,
    repetitions: int,
    seed: int,
    date: str | None,
    as_json: bool,
) -> None:
    """Predict the accuracy of each study design and recommend one.

    STUDY says whom it is about, what for, and within which budget (JSON).
    """
    if html is not None:
        check_output(html, PAGE, study)
    with progress_line() as line:
        read = load_study(study)
        if large := large_text("a budget of", Nats(read.epsilon)):
            warn(large)
        budgets = _other_budgets(read.epsilon) if html is not None else []
        found = design_study(
            read,
            repetitions=repetitions,
            seed=seed,
            budgets=budgets,
            progress=lambda done, total, what: line.count(done, total, f"designs: {what}"),
        )
    # First what was found: a page that cannot be written must not lose it.
    if as_json:
        show_json(found.tree())
    else:
        _show(found)
    if html is not None:
        text = design_page(
            found,
            name=study.name,
            date=date or written(study),
            content_id=hashlib.sha256(study.read_bytes()).hexdigest(),
        )
        save(html, lambda: text)
        if not as_json:
            click.echo(f"\nwritten to {html}")


def _other_budgets(epsilon: Fraction) -> list[Fraction]:
    """Those of the figure that a study can have."""
    some = [epsilon * factor for factor in _BUDGETS]
    return [each for each in some if LEAST_EPSILON <= each <= LARGEST_EPSILON]


def _show(found: Design) -> None:
    best = found.recommended
    cells = [("", "standard error", "answers", "possible")]
    for each in found.predictions:
        noise = each.accuracy.simulation_error
        spread = f" ± {100 * noise / each.error:.1f} %" if noise else ""
        verdict = "recommended" if each is best else "yes" if each.possible else "no"
        cells.append(
            (each.name, f"{error_text(each.error)}{spread}", f"{each.answers:.3g}", verdict)
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo(make_printable(line.rstrip()))
    click.echo()
    show_lines(_lines(found))


def _lines(found: Design) -> Iterator[tuple[str, str]]:
    yield "recommended", advice(found)
    for number, reason in enumerate(reasons(found)):
        yield "" if number else "why", reason
    best = found.recommended
    if best is not None:
        for number, goal in enumerate(found.study.goals):
            error = best.accuracy.standard_errors[number]
            yield "" if number else "goals", f"{goal.name}: standard error {error_text(error)}"
