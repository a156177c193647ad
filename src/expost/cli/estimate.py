"""``expost estimate``: estimate means, frequencies or distributions from many subjects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from expost._format import format_confidence, format_count
from expost.answers import Answers
from expost.cli._inputs import ABOUT_OPTIONS, find_attributes, option_names, read_answers
from expost.cli._options import about, file_option, out_option, path, queries_file, step
from expost.cli._outputs import Result, check_picture, prints_result, progress_line
from expost.errors import InvalidInput
from expost.estimation import select_for_likelihood
from expost.knowledge import Samples, load_prior
from expost.report._estimates import (
    EstimateReport,
    check_mean,
    largest_rows,
    mark_incomplete,
    report_frequencies,
    report_likelihood,
    report_mean,
    report_support_mean,
)

__all__ = ["command"]

_MOST = 40
_DUST = 1e-5


@click.command("estimate")
@click.argument("data", type=path, metavar="DATA")
@queries_file
@click.option("--mean", "key", metavar="ID", help="Query whose mean score to estimate.")
@click.option(
    "--frequencies", "naive", is_flag=True, help="Estimate the share of each value, unbiased."
)
@about
@step
@click.option(
    "--planned",
    is_flag=True,
    help="Leave out other attributes: the choice of questions did not depend on responses. With "
    "--about.",
)
@click.option(
    "--likelihood",
    is_flag=True,
    help="Use a likelihood, which is valid under a filter if no response is missing. With --mean.",
)
@file_option(
    "--support",
    "POINTS",
    "Points over which the values are distributed, on a box with --likelihood (CSV).",
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="Warn of bias, because the subjects gave responses that are not in DATA.",
)
@click.option("--confidence", default="0.95", help="Confidence of each interval by itself.")
@click.option(
    "--repetitions",
    type=int,
    help="Number of resamplings of subjects, for narrower intervals at the edge. Default: none.",
)
@click.option("--seed", type=int, default=0, help="Seed of the resampling, an integer.")
@out_option("PICTURE", "File for a picture (.png, .svg or .pdf). An existing picture is replaced.")
@prints_result
def command(
    data: Path,
    queries: Path | None,
    key: str | None,
    naive: bool,
    about: str | None,
    step: int | None,
    planned: bool,
    likelihood: bool,
    support: Path | None,
    incomplete: bool,
    confidence: str,
    repetitions: int | None,
    seed: int,
    out: Path | None,
) -> Result:
    """Estimate means, frequencies or distributions from many subjects.

    DATA has the answers (CSV, JSONL, Parquet), or is a folder of transcripts. Without --mean and
    --frequencies, estimate the distribution of the values. For records, name attributes with
    --about; other attributes that were asked about are estimated along with them.
    """
    if (key is not None and naive) or (likelihood and key is None):
        raise InvalidInput("give --mean ID (and --likelihood), --frequencies or neither")
    if support is not None and not likelihood:
        raise InvalidInput("requires --mean ID --likelihood on a box", "--support")
    if planned and incomplete:
        raise InvalidInput("has no effect with --planned; leave it out", "--incomplete")
    of_query = key is not None and not likelihood
    if of_query and (about is not None or step is not None):
        raise InvalidInput("the query of --mean names its attributes; leave it out", "--about")
    check_picture(out, data, queries)
    with progress_line() as line:
        study = read_answers(data, queries, line)
        answers = study.answers
        if key is not None:
            check_mean(answers, key, unnamed=queries is None)
        options: dict[str, Any] = {"confidence": confidence, "repetitions": repetitions}
        options |= {"seed": seed, "progress": line.counts("repetitions")}
        target = None if of_query else find_attributes(answers, about, step, key=key)
        with option_names(ABOUT_OPTIONS):
            if key is not None and not likelihood:
                result = report_mean(answers, key, confidence=confidence)
            elif key is not None and support is not None:
                points = _load_support(support, answers)
                result = report_support_mean(answers, key, points, **options)
            elif naive:
                if target is not None:
                    names, at_step = target
                    answers = answers.about(*names, at=at_step, planned=planned)
                result = report_frequencies(answers, confidence=confidence)
            else:
                answers, target = select_for_likelihood(answers, target, planned=planned)
                result = report_likelihood(answers, target, key, **options)
    unused = len(study.answers.codes) - len(answers.codes)
    if unused:  # they are about other attributes
        left_out = len(study.answers) - len(answers)
        result = replace(result, unused=unused, left_out=left_out)
    if incomplete:
        result = mark_incomplete(result)
    if out is not None:
        _draw_picture(result, out)
    lines = [*_format_estimates(result), "", *_describe_data(result)]
    if result.warning is not None:  # before anybody takes a number for what it is not
        lines = [("warning", result.warning), "", *lines]
    if out is not None:
        lines.append(f"The picture is in {out}.")
    return Result(result.tree(), lines)


def _load_support(path: Path, answers: Answers) -> Samples:
    points = load_prior(path, answers.domain)
    if not isinstance(points, Samples):
        raise InvalidInput("only for a box; leave it out", "--support")
    return points


def _format_estimates(result: EstimateReport) -> Iterator[str | tuple[str, ...]]:
    """Yield the estimates in columns; only the largest if there are very many."""
    rows = largest_rows(result.estimates, _MOST)
    level = f"{format_confidence(result.confidence)} interval"
    yield "", "estimate", level, "standard error"
    for row in rows:
        if not row.identified:
            yield row.of, "not determined", "", ""
            continue
        estimate, lower, upper = (
            _format_estimate(bound, result.ends) for bound in (row.estimate, row.lower, row.upper)
        )
        yield row.of, estimate, f"{lower} to {upper}", f"{row.standard_error:.4g}"
    if len(rows) < len(result.estimates):
        yield f"… and {len(result.estimates) - len(rows):,} smaller ones (--json has all)"


def _format_estimate(estimate: float, ends: tuple[float, float]) -> str:
    """Format four digits; what a search leaves of an estimate of zero is zero."""
    return "0" if abs(estimate) < _DUST * (ends[1] - ends[0]) else f"{estimate:.4g}"


def _describe_data(result: EstimateReport) -> Iterator[tuple[str, str]]:
    yield "what", result.description
    subjects = f"{result.subjects:,}"
    if result.left_out:
        subjects += f", and {result.left_out:,} who did not answer it"
    if result.refused is not None and result.left_out:
        subjects += f" (to {result.refused:,} the filter refuses it now)"
    yield "subjects", subjects
    unused = f", and {result.unused:,} to other queries" if result.unused else ""
    yield "answers", f"{result.answers:,}{unused}"
    for index, assumption in enumerate(result.assumes):
        yield "" if index else "assumes", assumption


def _draw_picture(result: EstimateReport, out: Path) -> None:
    from expost.report._figures import estimates_chart
    from expost.report._plot import save_chart

    responses = format_count(result.answers, "response")
    notes = [f"{responses} of {format_count(result.subjects, 'subject')}"]
    notes += ["can be biased"] if result.may_be_biased else []
    chart = estimates_chart(
        result.estimates, result.confidence, notes, title=result.description, most=_MOST
    )
    save_chart(chart, out, alt=f"Intervals of {result.description}.")
