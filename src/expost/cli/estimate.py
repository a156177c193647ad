"""``expost estimate``: estimate means, frequencies or distributions from many subjects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from expost.answers import Answers, Covariates, read_covariates
from expost.cli._estimate_output import (
    check_estimates_file,
    describe_estimates,
    write_estimates,
)
from expost.cli._inputs import (
    ABOUT_OPTIONS,
    option_names,
    read_answers,
    read_attributes,
)
from expost.cli._options import (
    about,
    file_option,
    flag_option,
    out_option,
    path,
    queries_file,
    step,
    value_option,
)
from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli._parsing import parse_labels
from expost.errors import InvalidInput, at
from expost.estimation import select_for_likelihood
from expost.files.tables import read_table, table_errors
from expost.knowledge import Samples, load_prior
from expost.report._estimates import (
    EstimateReport,
    mark_incomplete,
    report_frequencies,
    report_likelihood,
    report_mean,
    report_support_mean,
    with_outcomes,
)
from expost.report._groups import report_by_group
from expost.report._quantities import (
    Quantity,
    find_attributes,
    find_mean,
    share_of_statement,
)

__all__ = ["command"]


@click.command("estimate")
@click.argument("data", type=path, metavar="DATA")
@queries_file
@value_option(
    "--mean", "NAME", "Estimate the mean of a query's score, of a numeric attribute, or of `value`."
)
@value_option(
    "--share",
    "STATEMENT",
    "Estimate the share of subjects for which a statement holds, such as 'hours >= 5'.",
)
@flag_option("--frequencies", "Estimate the share of each value, unbiased.")
@about
@step
@flag_option(
    "--planned",
    "Leave out other attributes, because the choice of questions did not depend on responses. "
    "With --about.",
)
@flag_option(
    "--likelihood",
    "Use the likelihood. It is valid under a filter if no response is missing. With --mean.",
)
@file_option(
    "--support",
    "POINTS",
    "Points that represent the possible values of a box (CSV). With --likelihood.",
)
@flag_option(
    "--incomplete",
    "Responses of these subjects are missing from DATA: warn that estimates can be biased.",
)
@file_option(
    "--covariates",
    "FILE",
    "Table with a row per subject: the column `subject`, and those of --by and --weight.",
)
@value_option(
    "--by",
    "COLUMNS",
    "Columns of --covariates that define groups, such as sex,region. Each group is compared "
    "with the first.",
)
@value_option("--weight", "COLUMN", "Column of --covariates with survey weights.")
@click.option(
    "--confidence", default="0.95", metavar="P", help="Confidence of each interval by itself."
)
@click.option(
    "--repetitions",
    type=int,
    help="Number of bootstrap samples, for narrower intervals if shares are near 0. Default: none.",
)
@click.option("--seed", type=int, default=0, help="Seed of the resampling, an integer.")
@out_option(
    "FILE",
    "Table of all estimates (.csv, .jsonl, .parquet), or picture (.png, .svg, .pdf). An existing "
    "one is replaced.",
)
@flag_option("--plain", "Picture for print: black on white, without a title.")
@prints_result
def command(
    data: Path,
    queries: Path | None,
    mean: str | None,
    share: str | None,
    frequencies: bool,
    about: str | None,
    step: int | None,
    planned: bool,
    likelihood: bool,
    support: Path | None,
    incomplete: bool,
    covariates: Path | None,
    by: str | None,
    weight: str | None,
    confidence: str,
    repetitions: int | None,
    seed: int,
    out: Path | None,
    plain: bool,
) -> Result:
    """Estimate means, shares or distributions from many subjects.

    DATA has the answers (CSV, JSONL, Parquet), or is a folder of transcripts. Without --mean,
    --share and --frequencies, estimate the distribution of the values. For records, name
    attributes with --about; other attributes that were asked about are estimated along with them.
    """
    # Three of the options choose the estimate; without them it is the distribution of the values.
    if sum((mean is not None, share is not None, frequencies)) > 1 or (likelihood and mean is None):
        raise InvalidInput(
            "expected at most one of --mean NAME (with --likelihood or without), --share STATEMENT "
            "and --frequencies"
        )
    if support is not None and not likelihood:
        raise InvalidInput("requires --mean ID --likelihood on a box", "--support")
    if planned and incomplete:
        raise InvalidInput("has no effect with --planned; leave it out", "--incomplete")
    if share is not None:
        _refuse_about("the statement of --share", about, step)
    if covariates is None and not (by is None and weight is None):
        raise InvalidInput("requires --covariates FILE", "--by" if by else "--weight")
    if covariates is not None and by is None and weight is None:
        raise InvalidInput("requires --by or --weight", "--covariates")
    check_estimates_file(out, data, queries, covariates, plain=plain)
    with progress_line() as line:
        study = read_answers(data, queries, line)
        answers = study.answers
        quantity = _find_quantity(answers, mean, share, step, named=queries is not None)
        query_id = None if quantity is None else quantity.query
        # The query whose mean score is estimated without a likelihood: unbiased, for any domain.
        scored_query = None if likelihood else query_id
        if scored_query is not None:
            _refuse_about("the query of --mean", about, step)
        option_of = ABOUT_OPTIONS
        if quantity is not None and quantity.about is not None:
            goal = "--share" if mean is None else "--mean"
            _refuse_about(goal, about, None)
            option_of = {**ABOUT_OPTIONS, "about": goal, "--about": goal}
        if weight is not None and (frequencies or scored_query is not None or support is not None):
            instead = "add --likelihood, on a finite domain"
            if frequencies:
                instead = "leave out --frequencies"
            raise InvalidInput(f"only estimates by likelihood have weights; {instead}", "--weight")
        joined = None
        if covariates is not None:
            joined = _read_covariates(covariates, answers, by, weight)
        options: dict[str, Any] = {"confidence": confidence, "repetitions": repetitions}
        options |= {"seed": seed, "progress": line.counts("repetitions")}
        target = None
        with option_names(option_of):
            if scored_query is None:
                names = None if about is None else read_attributes(about)
                if quantity is not None and quantity.about is not None:
                    names, step = quantity.about
                target = find_attributes(answers, names, step, key=query_id)
                if frequencies and target is not None:
                    names, at_step = target
                    answers = answers.about(*names, at=at_step, planned=planned)
                elif not frequencies and support is None:
                    answers, target = select_for_likelihood(answers, target, planned=planned)
            points = None if support is None else _load_support(support, answers)

            def estimate(answers: Answers) -> EstimateReport:
                if frequencies:
                    return report_frequencies(answers, confidence=confidence)
                if scored_query is not None:
                    return report_mean(answers, scored_query, confidence=confidence)
                if query_id is not None and points is not None:
                    return report_support_mean(answers, query_id, points, **options)
                weights = None if joined is None else joined.weights
                return report_likelihood(answers, target, quantity, weights=weights, **options)

            if joined is None:
                result = estimate(answers)
            else:
                result = report_by_group(answers, joined, estimate, query=scored_query)
    unused = len(study.answers.codes) - len(answers.codes)
    if unused:  # they are about other attributes
        result = replace(result, unused=unused, left_out=len(study.answers) - len(answers))
    if incomplete:
        result = mark_incomplete(result)
    result = with_outcomes(result, answers, scored_query)
    lines = list(describe_estimates(result))
    if out is not None:
        lines.append(write_estimates(result, out, plain=plain))
    return Result(result.tree(), lines)


def _refuse_about(named_by: str, about: str | None, step: int | None) -> None:
    """Refuse options for attributes and their step, which another option names already."""
    if about is not None or step is not None:
        option = "--at" if about is None else "--about"
        raise InvalidInput(f"{named_by} names its attributes; leave it out", option)


def _find_quantity(
    answers: Answers, mean: str | None, share: str | None, step: int | None, *, named: bool
) -> Quantity | None:
    if share is not None:
        return share_of_statement(answers.domain, share)
    if mean is None:
        return None
    # Without a file of queries, their ids are digests, which nobody types.
    hint = "" if named else "; --queries QUERIES gives them names"
    return find_mean(answers, mean, step, hint)


def _read_covariates(
    file: Path, answers: Answers, by: str | None, weight: str | None
) -> Covariates:
    with at("--by"):
        names = [] if by is None else parse_labels(by)
    with table_errors(file):
        columns = ["subject", *names, *([] if weight is None else [weight])]
        return read_covariates(read_table(file, columns), answers, names, weight)


def _load_support(path: Path, answers: Answers) -> Samples:
    points = load_prior(path, answers.domain)
    if not isinstance(points, Samples):
        raise InvalidInput("only for a box; leave it out", "--support")
    return points
