"""An estimate with what it is made from, what it assumes, and where it may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import Answers
from expost.domains import Domain, FiniteSet, finite
from expost.errors import InvalidInput, at
from expost.estimation import estimate_distribution, estimate_frequencies, estimate_mean
from expost.estimation.scores import scores_of
from expost.files.canonical import plain
from expost.filters import Filter
from expost.loss.odometer import Odometer
from expost.numbers import ExactLike
from expost.report.words import query_in_words, value_text

__all__ = ["Estimate", "Estimated", "distribution", "frequencies", "mean", "mean_by_likelihood"]

_ALWAYS = (
    "every response has the probabilities that its query states",
    "subjects are drawn independently from the population that this is about",
)
_NAIVE = "who was asked, and how often, does not depend on earlier responses"
# A search from the inside leaves less than this where the true maximum is at an end.
_EDGE = 1e-5

_LIKELIHOOD = "nothing about who was asked: it is valid under a filter too"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number, with an interval."""

    of: str
    """A value of the domain, or what a query asks."""
    estimate: float
    standard_error: float
    lower: float
    upper: float
    identified: bool = True
    """Whether the responses determine it at all."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates, and how far they can be trusted."""

    what: str
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

    def tree(self) -> dict[str, Any]:
        """The estimates as JSON."""
        names = ("of", "estimate", "standard_error", "lower", "upper", "identified")
        return plain(
            {
                "what": self.what,
                "estimates": [
                    {name: getattr(each, name) for name in names} for each in self.estimates
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


def mean(
    answers: Answers, key: str, *, confidence: ExactLike = "0.95", guard: Filter | None = None
) -> Estimated:
    """The mean of the score that a query is about; ``guard`` is the filter of all subjects."""
    times = _times(answers, key)
    found = estimate_mean(answers, key, confidence=confidence)
    query, asked = answers.queries[key], times > 0
    low, high = map(float, query.meaning(answers.domain).range)
    one = Estimate(
        query_in_words(query, answers.domain),
        found.mean,
        found.standard_error,
        found.lower,
        found.upper,
    )
    return Estimated(
        f"the mean of {key}, without bias if all were asked alike",
        (one,),
        found.confidence,
        found.subjects,
        int((~asked).sum()),
        None if guard is None else _refused(answers, key, guard, ~asked),
        int(times.sum()),
        int(len(answers.codes) - times.sum()),
        (*_ALWAYS, _NAIVE),
        _warning(times, guard, "the mean by likelihood (--likelihood, estimate_distribution)"),
        (low, high),
    )


def mean_by_likelihood(
    answers: Answers,
    key: str,
    *,
    confidence: ExactLike = "0.95",
    repetitions: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimated:
    """The same mean, from the likeliest distribution of the values, by all answers."""
    values = _finite(answers)
    _times(answers, key)
    with at("query"):
        query = answers.queries[key]
        scores = scores_of(query, values)
        low, high = map(float, query.meaning(values).range)
    found = estimate_distribution(answers)
    around = found.intervals(
        scores, confidence=confidence, repetitions=repetitions, seed=seed, progress=progress
    )
    error = float(around.standard_error[0])
    one = Estimate(
        query_in_words(query, values),
        found.mean(scores),
        error,
        float(around.lower[0]),
        float(around.upper[0]),
        bool(np.isfinite(error)),
    )
    what = f"the mean of {key}, by maximum likelihood"
    return _by_likelihood(answers, what, (one,), around.confidence, (low, high))


def frequencies(
    answers: Answers, *, confidence: ExactLike = "0.95", guard: Filter | None = None
) -> Estimated:
    """How frequent each value is, without bias if all were asked alike."""
    found = estimate_frequencies(answers, confidence=confidence)
    columns = (found.frequency, found.standard_error, found.lower, found.upper)
    return Estimated(
        "frequencies, without bias if all were asked alike",
        _by_value(found.domain, *columns),
        found.confidence,
        found.subjects,
        0,
        None,
        len(answers.codes),
        0,
        (*_ALWAYS, _NAIVE),
        _warning(
            answers.exchanges,
            guard,
            "the distribution by likelihood (without --frequencies, estimate_distribution)",
        ),
        (0.0, 1.0),
    )


def distribution(
    answers: Answers,
    *,
    confidence: ExactLike = "0.95",
    repetitions: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimated:
    """How the values are distributed, by maximum likelihood, with bootstrap intervals."""
    _finite(answers)
    found = estimate_distribution(answers)
    around = found.intervals(
        confidence=confidence, repetitions=repetitions, seed=seed, progress=progress
    )
    columns = (found.probabilities, around.standard_error, around.lower, around.upper)
    rows = _by_value(found.domain, *columns, identified=found.identified)
    what = "the distribution, by maximum likelihood"
    return _by_likelihood(answers, what, rows, around.confidence, (0.0, 1.0))


def _by_likelihood(
    answers: Answers,
    what: str,
    rows: tuple[Estimate, ...],
    confidence: float,
    ends: tuple[float, float],
) -> Estimated:
    warnings, (low, high) = [], ends
    unknown = sum(not row.identified for row in rows)
    if unknown:
        warnings.append(f"The responses do not determine {unknown:,} of {len(rows):,} numbers.")
    near = _EDGE * (high - low)
    edge = sum(row.identified and not low + near < row.estimate < high - near for row in rows)
    if edge:
        warnings.append(
            f"{edge:,} of {len(rows):,} estimates are at an end of what is possible, where "
            "intervals from resampled subjects are too narrow, the more so with few subjects."
        )
    # A replicate is searched for less closely, and may miss an end where the estimate is.
    rows = tuple(
        replace(row, lower=min(row.lower, row.estimate), upper=max(row.upper, row.estimate))
        for row in rows
    )
    return Estimated(
        what, rows, confidence, len(answers), 0, None, len(answers.codes), 0,
        (*_ALWAYS, _LIKELIHOOD), " ".join(warnings) or None, ends,
    )  # fmt: skip


def _by_value(
    domain: Domain,
    *columns: NDArray[np.float64],
    identified: NDArray[np.bool_] | None = None,
) -> tuple[Estimate, ...]:
    names = [value_text(value, domain) for value in domain.values]
    known = [True] * len(names) if identified is None else identified.tolist()
    numbers = [column.tolist() for column in columns]
    return tuple(Estimate(*row) for row in zip(names, *numbers, known, strict=True))


def _finite(answers: Answers) -> FiniteSet:
    keys = ", ".join(list(answers.queries)[:6])
    return finite(
        answers.domain, f"the domain is a box, which has means only: --mean ID, one of {keys}"
    )


def _times(answers: Answers, key: str) -> NDArray[np.intp]:
    """How often each subject answered a query."""
    if key not in answers.queries:
        known = ", ".join(list(answers.queries)[:6])
        raise InvalidInput(f"there is no query with this id; there are {known}", "mean")
    about = np.array([asked == key for asked, _ in answers.given])
    return np.add.reduceat(about[answers.codes].astype(np.intp), answers.starts[:-1])


def _refused(answers: Answers, key: str, guard: Filter, rest: NDArray[np.bool_]) -> int:
    """To how many of the rest the filter refuses the query, after what they have answered."""
    pattern_of, patterns = answers.patterns()
    refused = 0
    for pattern, count in zip(*np.unique(pattern_of[rest], return_counts=True), strict=True):
        odometer = Odometer(answers.transcript_of(patterns[pattern]))
        if not guard.accepts(odometer, answers.queries[key]):
            refused += int(count)
    return refused


def _warning(times: NDArray[np.intp], guard: Filter | None, instead: str) -> str | None:
    """What to say where subjects were not asked alike, which a filter may have brought about."""
    if (times == times[0]).all():
        return None
    depends = "If that depended on their earlier responses, as it does under a filter,"
    if guard is not None and guard.by_loss:
        depends = "Under their filter that depends on their earlier responses, so"
    return (
        f"Not all subjects answered equally often. {depends} this estimate is biased; "
        f"{instead} is not."
    )
