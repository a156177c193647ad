"""Estimates for groups of subjects, and the differences between each group and the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from expost._grouping import group_pairs
from expost.answers import Answers, Covariates
from expost.errors import InvalidInput, at
from expost.estimation import estimate_difference
from expost.report._estimates import EstimateReport, EstimateRow, GroupSize

__all__ = ["report_by_group", "subtract"]


def report_by_group(
    answers: Answers,
    covariates: Covariates,
    report: Callable[[Answers], EstimateReport],
    query: str | None = None,
) -> EstimateReport:
    """Estimate a quantity in each group, and the difference between each group and the first.

    Args:
        answers: The answers of all subjects.
        covariates: The groups. Subjects in none of them are counted.
        report: The function that estimates from the answers of a group.
        query: The query that subjects must have answered; any by default.
    """
    answered = {
        subject
        for subject, start, end in zip(
            answers.subjects, answers.starts[:-1], answers.starts[1:], strict=True
        )
        if query is None
        or any(answers.responses[code][0] == query for code in answers.codes[start:end])
    }
    reports: dict[str, EstimateReport] = {}
    empty = []
    for name, members in covariates.groups.items():
        if not members & answered:
            empty.append(name)
            continue
        with at(f"group {name}" if name else "", ": "):
            reports[name] = report(answers.select(members))
    if not reports:
        raise InvalidInput("no subject with covariates answered this", "--covariates")
    groups = [
        GroupSize(name, result.subjects, result.answers, result.effective)
        for name, result in reports.items()
    ]
    groups += [GroupSize(name, 0, 0, None) for name in empty]
    order = list(covariates.groups)
    groups.sort(key=lambda group: order.index(group.name))
    return replace(
        _merge(reports, covariates.by),
        groups=tuple(groups) if covariates.by else (),
        unmatched=len(covariates.unmatched & answered),
        ungrouped=len(covariates.ungrouped & answered),
    )


def _merge(reports: Mapping[str, EstimateReport], by: tuple[str, ...]) -> EstimateReport:
    """Put the reports of groups into one, with the differences between each and the first."""
    results = list(reports.values())
    first = results[0]
    if not by:
        return first
    rows = [
        replace(row, group=name) for name, result in reports.items() for row in result.estimates
    ]
    first_name, *other_names = reports
    for name in other_names:
        pairs = zip(reports[name].estimates, first.estimates, strict=True)
        rows += [subtract(row, base, name, first_name, first.ends) for row, base in pairs]
    names_by_warning: dict[str, list[str]] = {}
    for name, result in reports.items():
        if result.warning is not None:
            names_by_warning.setdefault(result.warning, []).append(name)
    warnings = [
        warning if len(names) == len(reports) else f"{'; '.join(names)}: {warning}"
        for warning, names in names_by_warning.items()
    ]
    warnings += _warn_of_spellings(reports)
    assumptions = dict.fromkeys(text for result in results for text in result.assumes)
    advice = dict.fromkeys(text for result in results for text in result.advice)
    refused = [result.refused for result in results if result.refused is not None]
    unanswered = [result.unanswered for result in results if result.unanswered is not None]
    return replace(
        first,
        description=f"{first.description}, by {' and '.join(by)}",
        estimates=tuple(rows),
        subjects=sum(result.subjects for result in results),
        answers=sum(result.answers for result in results),
        effective=None,
        assumes=(*assumptions, *([_INDEPENDENT] if other_names else [])),
        warning=" ".join(warnings) or None,
        may_be_biased=any(result.may_be_biased for result in results),
        left_out=sum(result.left_out for result in results),
        refused=sum(refused) if refused else None,
        unused=sum(result.unused for result in results),
        unanswered={
            outcome: sum(counts[outcome] for counts in unanswered) for outcome in unanswered[0]
        }
        if unanswered
        else None,
        advice=tuple(advice),
    )


def _warn_of_spellings(groups: Iterable[str]) -> list[str]:
    """Warn of groups that may be one group, because their names differ only in case."""
    spellings = group_pairs((name.casefold(), name) for name in groups)
    return [
        f"The groups {' and '.join(names)} differ only in case; if they are one group, give them "
        "one name."
        for names in spellings.values()
        if len(names) > 1
    ]


_INDEPENDENT = "groups are independent samples, for the intervals of differences"


def subtract(
    row: EstimateRow, base: EstimateRow, group: str, minus: str, ends: tuple[float, float]
) -> EstimateRow:
    """Subtract the row of another group; all estimates are between two ``ends``.

    If the responses do not determine both estimates, the interval has all differences of numbers in
    the two intervals.
    """
    difference, lower, upper = estimate_difference(
        (row.estimate, row.lower, row.upper),
        (base.estimate, base.lower, base.upper),
        range=ends,
    )
    identified = row.identified and base.identified
    if not identified:
        lower, upper = row.lower - base.upper, row.upper - base.lower
    return replace(
        row,
        estimate=difference,
        standard_error=math.hypot(row.standard_error, base.standard_error),
        lower=lower,
        upper=upper,
        identified=identified,
        consistent=row.consistent and base.consistent,
        uncertified=" ".join(
            end
            for end, other in (("lower", "upper"), ("upper", "lower"))
            if end in row.uncertified or other in base.uncertified
        ),
        group=group,
        minus=minus,
    )
