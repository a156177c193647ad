"""``expost estimate``: means, frequencies and distributions of a group, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from expost._format import format_count
from expost.answers import Answers
from expost.cli._inputs import about_options, find_attributes, read_many
from expost.cli._options import about, as_json, path, step
from expost.cli._outputs import Line, check_picture, progress_line, show_json, show_lines, where
from expost.errors import InvalidInput, make_printable
from expost.knowledge import Samples, load_prior
from expost.report._estimates import (
    EstimateReport,
    IntervalOptions,
    check_mean,
    mark_incomplete,
    report_distribution,
    report_frequencies,
    report_likelihood_mean,
    report_mean,
    report_support_mean,
    select_for_likelihood,
)

__all__ = ["command"]

_MOST = 40
_DUST = 1e-5


@click.command("estimate")
@click.argument("data", type=path, metavar="DATA")
@click.option(
    "--queries",
    type=path,
    metavar="QUERIES",
    help="All queries about their value (JSON); a folder of transcripts needs none.",
)
@click.option("--mean", "key", metavar="ID", help="The mean of the score that a query is about.")
@click.option("--frequencies", "naive", is_flag=True, help="The share of each value, unbiased.")
@about
@step
@click.option(
    "--planned",
    is_flag=True,
    help="With --about: who was asked what did not depend on responses.",
)
@click.option(
    "--likelihood",
    is_flag=True,
    help="With --mean: valid under a filter too, if no response is missing.",
)
@click.option(
    "--support",
    type=path,
    metavar="POINTS",
    help="On a box, with --likelihood: points (CSV) over which values are distributed.",
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="The subjects gave responses that are not in DATA: warn that this may be biased.",
)
@click.option("--confidence", default="0.95", help="Of the intervals, each by itself.")
@click.option(
    "--repetitions",
    type=int,
    help="By likelihood: resample subjects so often, for intervals that are narrower at the edge.",
)
@click.option("--seed", type=int, default=0, help="With --repetitions: which subjects are drawn.")
@click.option(
    "--out",
    "-o",
    type=path,
    metavar="PICTURE",
    help="Where to draw it; .png, .svg or .pdf. An existing picture is replaced.",
)
@as_json
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
    as_json: bool,
) -> None:
    """What the answers of many say about a group: means, frequencies, distributions.

    By default it is how the values are distributed; of a record, those of the attributes --about,
    estimated together with all that was asked about if who was asked may depend on it.
    DATA has the answers (CSV, JSONL, Parquet), or is a folder of transcripts.
    """
    if (key is not None and naive) or (likelihood and key is None):
        raise InvalidInput("give --mean ID, perhaps with --likelihood, or --frequencies, or none")
    if support is not None and not likelihood:
        raise InvalidInput("leave it out: it is for --mean ID --likelihood on a box", "--support")
    if planned and incomplete:
        raise InvalidInput("leave it out: what was planned does not depend on it", "--incomplete")
    of_query = key is not None and not likelihood
    if of_query and (about is not None or step is not None):
        raise InvalidInput("leave it out: a query says what its mean is about", "--about")
    if out is not None:
        check_picture(out, data, queries)
    with progress_line() as line:
        study = read_many(data, queries, line)
        answers = study.answers
        options = IntervalOptions(confidence, repetitions, seed, _told(line))
        if key is not None:
            check_mean(answers, key, unnamed=queries is None)
        chosen = None if of_query else find_attributes(answers, about, step, key=key)
        with about_options():
            if key is not None and not likelihood:
                found = report_mean(answers, key, confidence=confidence)
            elif naive:
                answers = answers if chosen is None else _part(answers, chosen, planned=planned)
                found = report_frequencies(answers, confidence=confidence)
            elif key is not None and support is not None:
                found = report_support_mean(answers, key, _support(support, answers), options)
            else:
                answers, chosen = select_for_likelihood(answers, chosen, planned=planned)
                estimator = report_distribution
                if key is not None:
                    estimator = partial(report_likelihood_mean, key=key)
                found = estimator(answers, chosen, options)
    unused = len(study.answers.codes) - len(answers.codes)
    if unused:  # they are about other attributes
        left_out = len(study.answers) - len(answers)
        found = replace(found, unused=unused, left_out=left_out)
    if incomplete:
        found = mark_incomplete(found)
    if out is not None:
        _draw(found, out)
    if as_json:
        show_json(found.tree())
        return
    if found.warning is not None:  # before anybody takes a number for what it is not
        show_lines([("warning", found.warning)])
        click.echo()
    _show_table(found)
    show_lines(_lines(found))
    if out is not None:
        click.echo(where(out))


def _part(
    answers: Answers, chosen: tuple[tuple[str, ...], int | None], *, planned: bool
) -> Answers:
    names, step = chosen
    return answers.about(*names, at=step, planned=planned)


def _support(path: Path, answers: Answers) -> Samples:
    points = load_prior(path, answers.domain)
    if not isinstance(points, Samples):
        raise InvalidInput("leave it out: only a box needs one", "--support")
    return points


def _told(line: Line) -> Callable[[int, int], None]:
    return lambda done, total: line.count(done, total, "repetitions")


def _show_table(found: EstimateReport) -> None:
    """The estimates in columns; the largest, where there are very many."""
    rows = found.estimates
    if len(rows) > _MOST:
        least = sorted((row.estimate for row in rows), reverse=True)[_MOST - 1]
        rows = tuple(row for row in rows if row.estimate >= least)[:_MOST]
    level = f"{100 * found.confidence:g} % interval"
    cells = [("", "estimate", level, "standard error")]
    for row in rows:
        if not row.identified:
            cells.append((row.of, "not determined", "", ""))
            continue
        estimate, lower, upper = (
            _short(each, found.ends) for each in (row.estimate, row.lower, row.upper)
        )
        cells.append((row.of, estimate, f"{lower} to {upper}", f"{row.standard_error:.4g}"))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for each in cells:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(each, widths, strict=True))
        click.echo(make_printable(line.rstrip()))
    if len(rows) < len(found.estimates):
        click.echo(f"… and {len(found.estimates) - len(rows):,} smaller ones (--json has all)")
    click.echo()


def _short(number: float, ends: tuple[float, float]) -> str:
    """Four digits; what a search leaves where the likeliest is zero is zero."""
    return "0" if abs(number) < _DUST * (ends[1] - ends[0]) else f"{number:.4g}"


def _lines(found: EstimateReport) -> Iterator[tuple[str, str]]:
    yield "what", found.description
    subjects = f"{found.subjects:,}"
    if found.left_out:
        subjects += f", and {found.left_out:,} who did not answer it"
    if found.refused is not None and found.left_out:
        subjects += f" (to {found.refused:,} the filter refuses it now)"
    yield "subjects", subjects
    unused = f", and {found.unused:,} to other queries" if found.unused else ""
    yield "answers", f"{found.answers:,}{unused}"
    for number, assumption in enumerate(found.assumes):
        yield "" if number else "assumes", assumption


def _draw(found: EstimateReport, out: Path) -> None:
    from expost.report._figures import estimates_chart
    from expost.report._plot import save_chart

    responses = format_count(found.answers, "response")
    notes = [f"{responses} of {format_count(found.subjects, 'subject')}"]
    notes += ["can be biased"] if found.doubtful else []
    chart = estimates_chart(
        found.estimates, found.confidence, notes, title=found.description, most=_MOST
    )
    save_chart(chart, out, alt=f"Intervals of {found.description}.")
