"""Estimates with their sources, their assumptions, and where they may be wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_list
from expost.answers import Answers, no_such_query
from expost.domains import FiniteSet, Part, require_finite
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
from expost.estimation._support import Points, query_scores, read_estimand
from expost.estimation.frequencies import LIKELIHOOD_HINT
from expost.files.canonical import plain_tree
from expost.filters import Filter
from expost.knowledge import Samples
from expost.loss import Odometer
from expost.numbers import ExactLike
from expost.queries import About
from expost.report._formatting import query_in_words, value_label, value_text

__all__ = [
    "Estimate",
    "Estimated",
    "check_mean",
    "distribution",
    "estimated_by_likelihood",
    "for_likelihood",
    "frequencies",
    "how_found",
    "mean",
    "mean_by_likelihood",
    "mean_on_support",
    "of_a_part",
    "quietly",
    "rows_of",
]

T = TypeVar("T")

_ALWAYS = (
    "every response has the probabilities that its query states",
    "subjects are drawn independently from the population that this is about",
)
_NAIVE = "who was asked, and how often, does not depend on earlier responses"
_LIKELIHOOD = (
    "these are all responses that who was asked may depend on: all that a filter looked at",
    "nobody's value changed between responses, unless it is declared as changing",
)
_MISSING = (
    "Responses are missing. If who was asked depended on them, as it does under a filter, this "
    "estimate is biased, and so is every other from what is here."
)
# Of so few, resampling shows little; coverage was measured from 100 on (docs/how-to/estimates.md).
_FEW = 30


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number, with an interval."""

    of: str
    """A value of the domain, or a query: its id, and what it asks."""
    estimate: float
    standard_error: float
    lower: float
    upper: float
    identified: bool = True
    """Whether the responses determine it at all."""
    label: str = "mean"
    """What a figure calls it."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates, and how far they can be trusted."""

    description: str
    """What is estimated, and how."""
    estimates: tuple[Estimate, ...]
    confidence: float
    subjects: int
    """Whose answers were used."""
    left_out: int
    """Subjects who gave answers, but none that this is about."""
    refused: int | None
    """To how many of them their filter refuses the query now; None if no filter is known."""
    answers: int
    """How many were used."""
    unused: int
    assumes: tuple[str, ...]
    warning: str | None
    ends: tuple[float, float]
    """Between which two numbers everything that is estimated is."""

    @property
    def doubtful(self) -> bool:
        """Whether it is known, or may be, that this is wrong even for very many subjects."""
        return self.warning is not None and "biased" in self.warning

    def tree(self) -> dict[str, Any]:
        """The estimates as JSON."""
        names = ("of", "estimate", "standard_error", "lower", "upper", "identified")
        return plain_tree(
            {
                "what": self.description,
                "estimates": [
                    {name: getattr(estimate, name) for name in names} for estimate in self.estimates
                ],
                "confidence": self.confidence,
                "subjects": self.subjects,
                "left_out": self.left_out,
                "refused": self.refused,
                "answers": self.answers,
                "unused": self.unused,
                "assumes": list(self.assumes),
                "warning": self.warning,
            }
        )


def mean(answers: Answers, key: str, *, confidence: ExactLike = "0.95") -> Estimated:
    """The mean of the score that a query is about."""
    times, filter_ = _times(answers, key), answers.filter
    estimated = quietly(partial(estimate_mean, answers, key, confidence=confidence))
    query, has_answered = answers.queries[key], times > 0
    low, high = map(float, query.meaning(answers.domain).range)
    (estimate,) = rows_of(estimated)
    estimate = replace(estimate, of=f"{key}: {query_in_words(query, answers.domain)}")
    return Estimated(
        f"the mean of {key}: unbiased, if everybody was asked alike",
        (estimate,),
        estimated.confidence,
        estimated.subjects,
        int((~has_answered).sum()),
        None if filter_ is None else _refused(answers, key, filter_, ~has_answered),
        int(times.sum()),
        int(len(answers.codes) - times.sum()),
        (*_ALWAYS, _NAIVE),
        _warning(answers, times, "the mean by likelihood (--likelihood)"),
        (low, high),
    )


Chosen = tuple[tuple[str, ...], int | None]
"""Attributes that an estimate is about, and the step if one of them changes."""


def for_likelihood(
    answers: Answers, chosen: Chosen | None, *, planned: bool
) -> tuple[Answers, Chosen | None]:
    """The answers that an estimate by likelihood takes, and what it is about if it is a part.

    All answers together, if who was asked may depend on those about other attributes, and if
    there are not too many combinations. Otherwise only those about what was chosen.
    """
    if chosen is None:
        return answers, None
    names, step = chosen
    try:
        part = answers.about(*names, at=step, planned=planned)
    except InvalidInput as error:
        if planned or not _together(answers, chosen):
            raise error from None
        return answers, chosen
    if planned or part.complete or part.evenly() or not _together(answers, chosen):
        return part, None
    return answers, chosen


def _together(answers: Answers, chosen: Chosen) -> bool:
    """Whether all that was asked about can be estimated together with what was chosen."""
    try:
        read_estimand(answers, *chosen)
    except InvalidInput:  # perhaps there are too many combinations
        return False
    return True


def mean_by_likelihood(
    answers: Answers,
    key: str,
    chosen: Chosen | None = None,
    *,
    confidence: ExactLike = "0.95",
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimated:
    """The same mean, from the likeliest distribution of the values, by all answers."""
    distribution_ = _likeliest(answers, chosen)
    values = distribution_.domain
    with at("query"):
        query = answers.queries[key]
        scores = query_scores(query, values)
        low, high = map(float, query.meaning(values).range)
    around = quietly(
        partial(
            distribution_.intervals,
            scores,
            confidence=confidence,
            repetitions=repetitions,
            seed=seed,
            progress=progress,
        )
    )
    (estimate,) = rows_of(around)
    estimate = replace(estimate, of=f"{key}: {query_in_words(query, values)}")
    description = f"the mean of {key}, {how_found(distribution_)}"
    return estimated_by_likelihood(answers, description, (estimate,), around, (low, high))


def frequencies(answers: Answers, *, confidence: ExactLike = "0.95") -> Estimated:
    """How frequent each value is: unbiased, if everybody was asked alike."""
    _finite(answers)
    try:
        estimated = quietly(partial(estimate_frequencies, answers, confidence=confidence))
    except InvalidInput as error:
        instead = "leave out --frequencies, for any mixture of queries"
        raise InvalidInput(error.reason.replace(LIKELIHOOD_HINT, instead), error.place) from None
    return Estimated(
        f"the share of each value{_about(answers)}: unbiased, if everybody was asked alike",
        rows_of(estimated),
        estimated.confidence,
        estimated.subjects,
        0,
        None,
        len(answers.codes),
        0,
        (*_ALWAYS, _NAIVE),
        _left_out(answers)
        or _warning(
            answers,
            answers.exchanges,
            "the distribution by likelihood (without --frequencies)",
            evenly=answers.evenly(),
        ),
        (0.0, 1.0),
    )


def distribution(
    answers: Answers,
    chosen: Chosen | None = None,
    *,
    confidence: ExactLike = "0.95",
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimated:
    """How the values are distributed, by maximum likelihood, with intervals."""
    distribution_ = _likeliest(answers, chosen)
    around = quietly(
        partial(
            distribution_.intervals,
            confidence=confidence,
            repetitions=repetitions,
            seed=seed,
            progress=progress,
        )
    )
    about = _about(answers) if chosen is None else _of(*chosen)
    description = f"the distribution{about}, {how_found(distribution_)}"
    return estimated_by_likelihood(answers, description, rows_of(around), around, (0.0, 1.0))


def _likeliest(answers: Answers, chosen: Chosen | None) -> Distribution:
    if chosen is None:
        _finite(answers)
        return quietly(partial(estimate_distribution, answers))
    names, step = chosen
    return quietly(partial(estimate_distribution, answers, about=names, at=step))


def how_found(distribution: Distribution) -> str:
    """By which method, and of which model."""
    model = "" if distribution.model is None else f" of {distribution.model}"
    return f"by maximum likelihood{model}"


def estimated_by_likelihood(
    answers: Answers,
    description: str,
    rows: tuple[Estimate, ...],
    around: Intervals,
    ends: tuple[float, float],
) -> Estimated:
    """An estimate from the likeliest distribution, with its doubts."""
    doubts = []
    if left_out := _left_out(answers):
        doubts.append(left_out)
    if len(answers) < _FEW:
        too_few = f"Only {format_count(len(answers), 'subject')}: too few for intervals"
        doubts.append(f"{too_few}{'' if around.repetitions is None else ' by resampling them'}.")
    unknown = sum(not row.identified for row in rows)
    if unknown:
        doubts.append(f"The responses do not determine {unknown:,} of {len(rows):,} numbers.")
    doubts += around.doubts
    assumptions = _LIKELIHOOD if answers.complete else (_NAIVE,)
    return Estimated(
        description, rows, around.confidence, len(answers), 0, None, len(answers.codes), 0,
        (*_ALWAYS, *assumptions), " ".join(doubts) or None, ends,
    )  # fmt: skip


def of_a_part(estimated: Estimated) -> Estimated:
    """The same, where it is known that responses are missing that a filter may have looked at."""
    # What it says against a bias, such as to use the likelihood, does not help here.
    warning_of_rest = None if estimated.doubtful else estimated.warning
    warning = " ".join(filter(None, (_MISSING, warning_of_rest)))
    return replace(estimated, assumes=(*_ALWAYS, _NAIVE), warning=warning)


def rows_of(estimate: Mean | Frequencies | Intervals) -> tuple[Estimate, ...]:
    """The numbers of an estimate, each with its interval."""
    if isinstance(estimate, Mean):
        return (
            Estimate(
                "mean", estimate.mean, estimate.standard_error, estimate.lower, estimate.upper
            ),
        )
    middle = estimate.frequency if isinstance(estimate, Frequencies) else estimate.estimate
    columns = (middle, estimate.standard_error, estimate.lower, estimate.upper)
    identified = [True] * len(middle)
    if isinstance(estimate, Intervals):
        identified = np.isfinite(
            estimate.standard_error
        ).tolist()  # what is not determined has no error
    domain = estimate.domain
    names, labels = ["mean"], ["mean"]
    if domain is not None:
        names = [value_text(value, domain) for value in domain.values]
        labels = [value_label(value) for value in domain.values]
    values = [column.tolist() for column in columns]
    return tuple(Estimate(*row) for row in zip(names, *values, identified, labels, strict=True))


def _finite(answers: Answers) -> FiniteSet:
    keys = ", ".join(list(answers.queries)[:6])
    return require_finite(
        answers.domain,
        f"the domain is a box, which has means only: --mean ID, one of {keys}; or --about one of "
        "its coordinates that has categories and was asked about; --support POINTS for a mean by "
        "likelihood",
    )


def check_mean(answers: Answers, key: str, *, unnamed: bool = False) -> None:
    """Refuse what has no mean: a query that is not there, or not about a score.

    ``unnamed`` is where nobody said what the queries are called.
    """
    if key not in answers.queries:
        error = no_such_query(key, answers.queries)
        names = "; --queries QUERIES gives them names" if unnamed else ""
        raise InvalidInput(error.reason + names, "--mean")
    try:
        answers.queries[key].meaning(answers.domain)
    except InvalidInput as error:
        if error.place:
            raise
        reason = f"{error.reason}; leave out --mean for the shares of its values"
        raise InvalidInput(reason, "--mean") from None


def _about(answers: Answers) -> str:
    """Of what a distribution is, where it is about some attributes."""
    if not isinstance(answers.domain, Part):
        return ""
    steps = {query.step for query in answers.queries.values() if isinstance(query, About)} - {None}
    return _of(answers.domain.about, next(iter(steps), None))


def _of(names: tuple[str, ...], step: int | None) -> str:
    return f" of {format_list(names)}{'' if step is None else f' at step {step}'}"


def _left_out(answers: Answers) -> str | None:
    """What to say where answers about other attributes may have decided who was asked."""
    if answers.complete or answers.evenly():
        return None
    return (
        "Answers about other attributes are left out. If who was asked depended on them, as it "
        "does under a filter, this estimate is biased; one by likelihood, of all attributes "
        "together, is not. If it did not depend on them, say --planned."
    )


def quietly(estimate: Callable[[], T]) -> T:
    """An estimate without the warnings for programs; what they say is in the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimate()


def _times(answers: Answers, key: str) -> NDArray[np.intp]:
    """How often each subject answered a query."""
    about = np.array([query == key for query, _ in answers.given])
    return np.add.reduceat(about[answers.codes].astype(np.intp), answers.starts[:-1])


def _refused(answers: Answers, key: str, filter_: Filter, unasked: NDArray[np.bool_]) -> int:
    """To how many of the rest the filter refuses the query, after what they have answered."""
    tallies = answers.tallies()
    refused = 0
    for tally, times in zip(
        *np.unique(tallies.of_subject[unasked], return_counts=True), strict=True
    ):
        odometer = Odometer(answers.transcript_of(tallies.responses(tally)))
        if not filter_.accepts(odometer, answers.queries[key]):
            refused += int(times)
    return refused


def _warning(
    answers: Answers, times: NDArray[np.intp], instead: str, *, evenly: bool = True
) -> str | None:
    """What to say where subjects were not asked alike, which a filter may have brought about."""
    looks = answers.by_responses
    same = bool((times == times[0]).all())
    if same and (evenly or not looks):
        return None
    depends = "If that depended on their earlier responses, as it does under a filter,"
    if looks:
        filters = "filter" if len(answers.filters) == 1 else "filters"
        depends = f"Under their {filters} that depends on their earlier responses, so"
    alike = "were asked the same" if same else "answered equally often"
    return (
        f"Not all subjects {alike}. {depends} this estimate is biased; "
        f"{instead} is not, if all responses are here."
    )


_MOST_FRESH = 500


def mean_on_support(
    answers: Answers,
    key: str,
    support: Samples,
    *,
    confidence: ExactLike = "0.95",
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimated:
    """The mean on a box, from the likeliest mixture of some points, and what others would add."""
    with at("query"):
        query = answers.queries[key]
        scores = point_scores(query, support)
    distribution_ = quietly(partial(estimate_distribution, answers, support=support))
    fresh = Samples.uniform(support.box, max(2, min(len(support), _MOST_FRESH)), seed=seed)
    beyond = quietly(partial(beyond_support, answers, distribution_, fresh))
    around = quietly(
        partial(
            distribution_.intervals,
            scores,
            confidence=confidence,
            repetitions=repetitions,
            seed=seed,
            progress=progress,
        )
    )
    (estimate,) = rows_of(around)
    estimate = replace(estimate, of=f"{key}: {query_in_words(query, answers.domain)}")
    other = beyond.wider.mean(point_scores(query, _points(beyond.wider)))
    ends = (float(scores.min()), float(scores.max()))
    result = estimated_by_likelihood(
        answers, f"the mean of {key}, {how_found(distribution_)}", (estimate,), around, ends
    )
    assumed = (
        f"values are distributed over these points; with {len(fresh):,} more, drawn from all of "
        f"the box, the mean is {other:.4g} and the log-likelihood higher by at most "
        f"{beyond.gain:.2g} nats"
    )
    return replace(result, assumes=(*result.assumes, assumed))


def _points(distribution: Distribution) -> Samples:
    assert isinstance(distribution.domain, Points)
    return distribution.domain.samples
