"""Estimates with their sources, their assumptions, and where they may be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_list, format_number
from expost.answers import DECLINED, MISSING, Answers, Subject
from expost.domains import Part, require_finite
from expost.errors import InvalidInput, at
from expost.estimation import (
    Distribution,
    Frequencies,
    Intervals,
    Mean,
    beyond_support,
    estimate_distribution,
    estimate_frequencies,
    estimate_mean,
    point_scores,
)
from expost.estimation._support import Points
from expost.estimation._validity import (
    ChosenAttributes,
    asked_unequally,
    exchange_counts,
)
from expost.estimation.frequencies import LIKELIHOOD_HINT
from expost.files.canonical import plain_tree
from expost.filters import Filter
from expost.knowledge import Samples
from expost.loss import Odometer
from expost.numbers import ExactLike
from expost.queries import About
from expost.report._advice import advise
from expost.report._formatting import value_label, value_text
from expost.report._quantities import Quantity, mean_of_query

__all__ = [
    "EstimateReport",
    "EstimateRow",
    "GroupSize",
    "estimate_rows",
    "largest_rows",
    "mark_incomplete",
    "report_frequencies",
    "report_likelihood",
    "report_mean",
    "report_support_mean",
    "with_outcomes",
]

_ALWAYS = (
    "every response has the probabilities that its query states",
    "subjects are drawn independently from the population that this is about",
)
_NAIVE = (
    "the choice of subjects, and how often each was asked, does not depend on earlier responses"
)
_LIKELIHOOD = (
    "all responses that decided who was asked are included: all that a filter looked at",
    "no subject's value changed between responses, unless it is declared as changing",
)
_DECLINES = "whether subjects declined did not depend on their values"
_BY_FREQUENCIES = (
    "--frequencies is unbiased if all were asked alike and each query distinguishes all values"
)
_BY_MEAN = "without --likelihood, the mean is unbiased if all subjects were asked alike"
_BY_LIKELIHOOD = "right even under a filter if no answer is missing"
_MISSING = (
    "Responses are missing. If who was asked depended on them, as it does under a filter, this "
    "estimate is biased, and so is every other from what is here."
)
_MISSING_RESPONSES = (
    "Responses of {subjects} are missing. If what is missing depends on values or on responses, "
    "this estimate is biased."
)
# Of so few, resampling shows little; coverage was measured from 100 on (docs/how-to/estimates.md).
_FEWEST_SUBJECTS = 30

# Points that are tried in addition to those of a support.
_MOST_FRESH = 500


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One number, with an interval."""

    #: A value of the domain, or a query: its id, and what it asks.
    of: str
    estimate: float
    #: Infinite if it is not known; not a number if the interval is cut.
    standard_error: float
    lower: float
    upper: float
    #: Whether the responses determine it at all.
    identified: bool = True
    #: What a figure calls it.
    label: str = "mean"
    #: The group of subjects; empty for all subjects.
    group: str = ""
    #: The group whose estimate is subtracted; empty if this is no difference.
    minus: str = ""
    #: Whether anything that is possible fits the responses.
    consistent: bool = True
    #: Which ends of the interval the search could not certify: ``lower``, ``upper`` or both.
    uncertified: str = ""


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The size of a group of subjects."""

    name: str
    subjects: int
    answers: int
    #: The effective sample size, if subjects have weights.
    effective: float | None


@dataclass(frozen=True, slots=True)
class EstimateReport:
    """Estimates with their assumptions and doubts."""

    #: The estimated quantity, and the method.
    description: str
    estimates: tuple[EstimateRow, ...]
    confidence: float
    #: The number of subjects with used answers.
    subjects: int
    #: How many were used.
    answers: int
    assumes: tuple[str, ...]
    warning: str | None
    #: Between which two numbers everything that is estimated is.
    ends: tuple[float, float]
    #: Whether it may be wrong even for very many subjects.
    may_be_biased: bool
    #: Subjects who gave answers, but none that this is about.
    left_out: int = 0
    #: To how many of them their filter refuses the query now; None if no filter is known.
    refused: int | None = None
    #: How many answers were not used.
    unused: int = 0
    #: How many subjects left a query unanswered, by outcome; None if that is not known.
    unanswered: Mapping[str, int] | None = None
    #: Kish's effective sample size, if subjects have survey weights.
    effective: float | None = None
    groups: tuple[GroupSize, ...] = ()
    #: Subjects without covariates, who are left out.
    unmatched: int = 0
    #: Subjects with covariates who are in no group, and are left out.
    ungrouped: int = 0
    #: The other way to estimate this, and when to use it.
    other_method: str = ""
    #: If the responses do not determine all estimates, what to ask.
    advice: tuple[str, ...] = ()

    def table(self) -> dict[str, list[Any]]:
        """Return the estimates as columns."""
        sizes = {group.name: group for group in self.groups}
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in self.estimates] for name in _COLUMNS
        }
        columns["subjects"] = [
            sizes[row.group].subjects if row.group in sizes else self.subjects
            for row in self.estimates
        ]
        return columns

    def tree(self) -> dict[str, Any]:
        """Return the estimates as JSON."""
        return plain_tree(
            {
                "what": self.description,
                "estimates": [
                    {name: getattr(row, name) for name in _COLUMNS} for row in self.estimates
                ],
                **{name: getattr(self, name) for name in _FIELDS},
                "groups": [asdict(group) for group in self.groups],
            }
        )


_COLUMNS = (
    "group", "minus", "of", "estimate", "lower", "upper", "standard_error", "identified",
    "consistent", "uncertified",
)  # fmt: skip
_FIELDS = (
    "confidence", "subjects", "left_out", "refused", "unmatched", "ungrouped", "effective",
    "answers", "unused", "unanswered", "assumes", "warning", "other_method", "advice",
)  # fmt: skip


def report_mean(answers: Answers, key: str, *, confidence: ExactLike = "0.95") -> EstimateReport:
    """Estimate the mean of the score of a query, without bias if all subjects were asked alike."""
    exchanges, filter_ = exchange_counts(answers, key), answers.filter
    estimate = estimate_mean(answers, key, confidence=confidence)
    quantity = mean_of_query(answers, key)
    without = exchanges == 0
    rows = _name_row(estimate, quantity)
    bias = _warn_of_unequal_asking(answers, key, "the mean by likelihood (--likelihood)")
    support = " --support POINTS" if answers.domain.sides else ""
    return EstimateReport(
        f"the mean of {key}: unbiased if all subjects were asked alike",
        rows,
        estimate.confidence,
        estimate.subjects,
        int(exchanges.sum()),
        (*_ALWAYS, _NAIVE),
        _join_warnings(bias, _warn_of_inconsistency(rows)),
        quantity.range,
        may_be_biased=bias is not None,
        left_out=int(without.sum()),
        refused=None if filter_ is None else _count_refused(answers, key, filter_, without),
        unused=int(len(answers.codes) - exchanges.sum()),
        other_method=f"--likelihood{support} is {_BY_LIKELIHOOD}",
    )


def report_likelihood(
    answers: Answers,
    chosen: ChosenAttributes | None,
    quantity: Quantity | None = None,
    *,
    weights: Mapping[Subject, float] | None = None,
    **options: Any,
) -> EstimateReport:
    """Estimate the distribution of the values by maximum likelihood, or a quantity that it has.

    Args:
        answers: The answers of all subjects.
        chosen: The attributes that it is about, and the step; None on a set.
        quantity: The mean or the share to estimate; None for the distribution.
        weights: Survey weights of the subjects.
        options: Those of :meth:`Distribution.intervals`.

    Raises:
        InvalidInput: The domain is a box, or the query has no score.
    """
    if chosen is None:
        _check_finite(answers)
    names, step = chosen or (None, None)
    likeliest = estimate_distribution(answers, about=names, at=step, weights=weights)
    if quantity is None:
        about = _name_part(answers) if chosen is None else _format_about(*chosen)
        name, range_ = f"distribution{about}", (0.0, 1.0)
        intervals = likeliest.intervals(**options)
        rows = estimate_rows(intervals)
    else:
        name, range_ = quantity.name, quantity.range
        intervals = likeliest.intervals(quantity.scores(likeliest.domain), **options)
        rows = _name_row(intervals, quantity)
    report = _report(answers, name, likeliest, intervals, rows, range_)
    advice = () if all(row.identified for row in rows) else advise(answers, chosen, likeliest)
    other_methods = _BY_FREQUENCIES if quantity is None else _BY_MEAN if quantity.query else ""
    return replace(report, advice=tuple(advice), other_method=other_methods)


def report_support_mean(
    answers: Answers, key: str, support: Samples, **options: Any
) -> EstimateReport:
    """Estimate a mean on a box from the likeliest mixture of points; options are of intervals."""
    with at("query"):
        query = answers.queries[key]
        scores = point_scores(query, support)
    fresh_count = max(2, min(len(support), _MOST_FRESH))
    fresh = Samples.uniform(support.box, fresh_count, seed=options.get("seed", 0))
    likeliest = estimate_distribution(answers, support=support)
    beyond = beyond_support(answers, likeliest, fresh)
    intervals = likeliest.intervals(scores, **options)
    quantity = mean_of_query(answers, key)
    range_ = float(scores.min()), float(scores.max())
    report = _report(
        answers, quantity.name, likeliest, intervals, _name_row(intervals, quantity), range_
    )
    assert isinstance(beyond.wider.domain, Points)
    wider_mean = beyond.wider.mean(point_scores(query, beyond.wider.domain.samples))
    assumption = (
        f"values are distributed over these points; with {len(fresh):,} more, drawn from all of "
        f"the box, the mean is {format_number(wider_mean, 4)} and the log-likelihood higher by "
        f"at most {format_number(beyond.gain, 2)} nats"
    )
    return replace(report, assumes=(*report.assumes, assumption), other_method=_BY_MEAN)


def report_frequencies(answers: Answers, *, confidence: ExactLike = "0.95") -> EstimateReport:
    """Estimate the share of each value, without bias if all subjects were asked alike."""
    _check_finite(answers)
    try:
        estimate = estimate_frequencies(answers, confidence=confidence)
    except InvalidInput as error:
        instead = "leave out --frequencies, for any mixture of queries"
        raise InvalidInput(error.reason.replace(LIKELIHOOD_HINT, instead), error.location) from None
    instead = "the distribution by likelihood (leave out --frequencies)"
    bias = _warn_of_missing_answers(answers, instead)
    bias = bias or _warn_of_unequal_asking(answers, None, instead)
    rows = estimate_rows(estimate)
    return EstimateReport(
        f"the share of each value{_name_part(answers)}: unbiased if all subjects were asked alike",
        rows,
        estimate.confidence,
        estimate.subjects,
        len(answers.codes),
        (*_ALWAYS, _NAIVE),
        _join_warnings(bias, _warn_of_inconsistency(rows)),
        (0.0, 1.0),
        may_be_biased=bias is not None,
        other_method=f"without --frequencies: the likelihood, {_BY_LIKELIHOOD}",
    )


def _join_warnings(*warnings: str | None) -> str | None:
    return " ".join(filter(None, warnings)) or None


def _warn_of_inconsistency(rows: Sequence[EstimateRow]) -> str | None:
    """Warn where the responses reject all that is possible."""
    rejected = format_list([row.of for row in rows if not row.consistent])
    if not rejected:
        return None
    return (
        f"No number in the range fits the answers for {rejected} at this confidence, so the "
        "interval is the whole range. That happens by chance if the truth is at an end of it, or "
        "if the queries have other probabilities than they state."
    )


def _report(
    answers: Answers,
    estimand: str,
    likeliest: Distribution,
    intervals: Intervals,
    rows: tuple[EstimateRow, ...],
    range_: tuple[float, float],
) -> EstimateReport:
    """Report an estimate from the likeliest distribution, with its doubts."""
    bias = _warn_of_missing_answers(answers, "one by likelihood")
    doubts = [] if bias is None else [bias]
    effective = likeliest.effective_sample_size if likeliest.weighted else None
    if effective is not None and effective < _FEWEST_SUBJECTS <= len(answers):
        doubts.append(
            f"The weighted subjects count as {format_number(effective, 3)}: too few for intervals."
        )
    if len(answers) < _FEWEST_SUBJECTS:
        resampled = "" if intervals.repetitions is None else " by resampling them"
        subjects = format_count(len(answers), "subject")
        doubts.append(f"Only {subjects}: too few for intervals{resampled}.")
    unknown = sum(not row.identified for row in rows)
    if unknown:
        numbers = f"{unknown:,} of {len(rows):,} numbers" if len(rows) > 1 else "this number"
        doubts.append(f"The responses do not determine {numbers}.")
    doubts += intervals.doubts
    model = "" if likeliest.model is None else f" of {likeliest.model}"
    return EstimateReport(
        f"the {estimand}, by maximum likelihood{model}",
        rows,
        intervals.confidence,
        len(answers),
        len(answers.codes),
        (*_ALWAYS, *(_LIKELIHOOD if answers.complete else (_NAIVE,))),
        _join_warnings(*doubts),
        range_,
        may_be_biased=bias is not None,
        effective=effective,
    )


def with_outcomes(report: EstimateReport, answers: Answers, query: str | None) -> EstimateReport:
    """Count the subjects who left a query unanswered, by default any, and state what that needs."""
    unanswered = answers.count_unanswered(query)
    if unanswered is None:
        return report
    report = replace(report, unanswered=unanswered)
    if unanswered[DECLINED]:
        report = replace(report, assumes=(*report.assumes, _DECLINES))
    if unanswered[MISSING]:
        subjects = format_count(unanswered[MISSING], "subject")
        warning = _join_warnings(_MISSING_RESPONSES.format(subjects=subjects), report.warning)
        report = replace(report, warning=warning, may_be_biased=True)
    return report


def mark_incomplete(report: EstimateReport) -> EstimateReport:
    """Warn that responses are missing that a filter may have looked at."""
    # What it says against a bias, such as to use the likelihood, does not help here.
    warning = _join_warnings(_MISSING, None if report.may_be_biased else report.warning)
    return replace(report, assumes=(*_ALWAYS, _NAIVE), warning=warning, may_be_biased=True)


def _name_row(estimate: Mean | Intervals, quantity: Quantity) -> tuple[EstimateRow]:
    (row,) = estimate_rows(estimate)
    return (replace(row, of=quantity.of, label=quantity.noun),)


def largest_rows(rows: Sequence[EstimateRow], most: int) -> Sequence[EstimateRow]:
    """Return so many rows with the largest estimates, in their order."""
    by_size = sorted(range(len(rows)), key=lambda index: -rows[index].estimate)
    return [rows[index] for index in sorted(by_size[:most])]


def estimate_rows(estimate: Mean | Frequencies | Intervals) -> tuple[EstimateRow, ...]:
    """List the numbers of an estimate, each with its interval."""
    if isinstance(estimate, Mean):
        numbers = (estimate.mean, estimate.standard_error, estimate.lower, estimate.upper)
        return (EstimateRow("mean", *numbers, consistent=estimate.consistent),)
    middle = estimate.frequency if isinstance(estimate, Frequencies) else estimate.estimate
    columns = (middle, estimate.standard_error, estimate.lower, estimate.upper)
    identified, consistent = [True] * len(middle), [True] * len(middle)
    uncertified = [""] * len(middle)
    if isinstance(estimate, Frequencies):
        consistent = estimate.consistent.tolist()
    else:  # what is not determined has no error
        identified = (~np.isinf(estimate.standard_error)).tolist()
        uncertified = estimate.uncertified_ends()
    domain = estimate.domain
    names, labels = ["mean"], ["mean"]
    if domain is not None:
        names = [value_text(value, domain) for value in domain.values]
        labels = [value_label(value) for value in domain.values]
    values = [column.tolist() for column in columns]
    rows = zip(names, *values, identified, labels, strict=True)
    remarks = zip(consistent, uncertified, strict=True)
    return tuple(
        replace(EstimateRow(*row), consistent=fits, uncertified=ends)
        for row, (fits, ends) in zip(rows, remarks, strict=True)
    )


def _check_finite(answers: Answers) -> None:
    keys = ", ".join(list(answers.queries)[:6])
    require_finite(
        answers.domain,
        f"the domain is a box, which has means only: --mean ID, one of {keys}; or --about one of "
        "its coordinates that has categories and was asked about; --support POINTS for a mean by "
        "likelihood",
    )


def _name_part(answers: Answers) -> str:
    """Name the attributes that a distribution is about."""
    if not isinstance(answers.domain, Part):
        return ""
    steps = {query.step for query in answers.queries.values() if isinstance(query, About)} - {None}
    return _format_about(answers.domain.about, next(iter(steps), None))


def _format_about(names: tuple[str, ...], step: int | None) -> str:
    return f" of {format_list(names)}{'' if step is None else f' at step {step}'}"


def _warn_of_missing_answers(answers: Answers, instead: str) -> str | None:
    """Warn if answers about other attributes may have decided who was asked."""
    if answers.all_rows or answers.evenly():
        return None
    return (
        "Answers about other attributes are left out. If who was asked depended on them, as it "
        f"does under a filter, this estimate is biased; {instead}, of all attributes "
        "together, is not. If it did not depend on them, pass --planned."
    )


def _count_refused(answers: Answers, key: str, filter_: Filter, unasked: NDArray[np.bool_]) -> int:
    """Count the subjects without an answer for which the filter refuses the query now."""
    tallies, refused = answers.tallies(), 0
    counted = np.unique(tallies.of_subject[unasked], return_counts=True)
    for tally, times in zip(*counted, strict=True):
        odometer = Odometer(answers.transcript_of(tallies.responses(tally)))
        if not filter_.accepts(odometer, answers.queries[key]):
            refused += int(times)
    return refused


def _warn_of_unequal_asking(answers: Answers, key: str | None, instead: str) -> str | None:
    """Warn if subjects were not asked alike, which a filter may have caused."""
    if not asked_unequally(answers, key):
        return None
    depends = "If that depended on their earlier responses, as it does under a filter,"
    if answers.by_responses:
        filters = "filter" if len(answers.filters) == 1 else "filters"
        depends = f"Under their {filters} that depends on their earlier responses, so"
    counts = exchange_counts(answers, key)
    alike = "were asked the same" if (counts == counts[0]).all() else "answered equally often"
    return (
        f"Not all subjects {alike}. {depends} this estimate is biased; "
        f"{instead} is not, if all responses are here."
    )
