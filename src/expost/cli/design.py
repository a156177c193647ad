"""``expost design``: predict the accuracy of each study design and recommend one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click

from expost.cli._options import file_option, page_date, path
from expost.cli._outputs import (
    Result,
    as_json,
    check_output,
    modification_date,
    progress_line,
    show_lines,
    show_result,
    warn,
)
from expost.designs import Design, design_study, load_study
from expost.designs._design import REPETITIONS
from expost.designs.study import LEAST_EPSILON
from expost.files.durable import save
from expost.files.kinds import PAGE
from expost.filters._large_budgets import large_text
from expost.numbers import Nats
from expost.queries import LARGEST_EPSILON
from expost.report._design_page import (
    design_advice,
    design_page,
    design_reasons,
    error_text,
    left_out_lines,
    prediction_cells,
)

__all__ = ["command"]

#: The other budgets in the figure of a page, relative to the budget of the study.
_BUDGET_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(2))


@click.command("design")
@click.argument("study", type=path, metavar="STUDY")
@file_option("--html", "PAGE", "File for a page with figures, for a meeting. Default: no page.")
@click.option("--repetitions", type=int, default=REPETITIONS, help="Number of simulated groups.")
@click.option("--seed", type=int, default=0, help="Seed of the simulation, an integer.")
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

    STUDY is a file with the subjects, the goals and the budget of the study (JSON).
    """
    check_output(html, PAGE, study)
    with progress_line() as line:
        study_plan = load_study(study)
        if large := large_text("a budget of", Nats(study_plan.epsilon)):
            warn(large)
        design = design_study(
            study_plan,
            repetitions=repetitions,
            seed=seed,
            budgets=_choose_budgets(study_plan.epsilon) if html is not None else [],
            progress=lambda done, total, strategy: line.count(done, total, f"designs: {strategy}"),
        )
    # Print before writing the page, because that may fail after minutes of work.
    show_result(Result(design.tree(), _describe_design(design)), as_json=as_json)
    if html is not None:
        text = design_page(
            design,
            name=study.name,
            date=date or modification_date(study),
            content_id=hashlib.sha256(study.read_bytes()).hexdigest(),
        )
        save(html, lambda: text)
        if not as_json:
            show_lines(["", f"written to {html}"])


def _choose_budgets(epsilon: Fraction) -> list[Fraction]:
    """Return the other budgets of the figure that a study can have."""
    budgets = [epsilon * factor for factor in _BUDGET_FACTORS]
    return [budget for budget in budgets if LEAST_EPSILON <= budget <= LARGEST_EPSILON]


def _describe_design(design: Design) -> Iterator[str | tuple[str, ...]]:
    best = design.recommended
    yield "", "standard error", "method", "answers", "possible"
    for prediction in design.predictions:
        yield prediction_cells(design, prediction)
    yield ""
    yield "recommended", " ".join(design_advice(design))
    for index, reason in enumerate(design_reasons(design)):
        yield "" if index else "why", reason
    for index, line in enumerate(left_out_lines(design)):
        yield "" if index else "left out", line
    if best is not None:
        goals = zip(design.study.goals, best.accuracy.standard_errors, strict=True)
        for index, (goal, error) in enumerate(goals):
            by = "" if design.mechanisms is None else f", by {design.mechanisms[index]}"
            yield "" if index else "goals", f"{goal.name}: standard error {error_text(error)}{by}"
