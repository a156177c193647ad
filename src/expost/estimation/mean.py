"""The mean of a score in a group, from responses that are each unbiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost._types import Floats
from expost.answers import Answers, no_such_query
from expost.cards import View
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.estimation.answers import Used, as_answers, level_text
from expost.estimation.intervals import normal_reach, score_interval, student_reach
from expost.files.canonical import plain
from expost.files.frames import Table, as_lists
from expost.files.reading import items
from expost.numbers import ExactLike, read_confidence
from expost.queries import Query, check_query
from expost.queries.query import Unbiased

__all__ = ["Mean", "estimate_mean"]


# Squares up to this can be summed without overflow.
_LARGEST = 1e140


@dataclass(frozen=True, slots=True, repr=False)
class Mean(Table):
    """An unbiased estimate of a mean, and an interval for it within the range of the score.

    :func:`estimate_mean` returns it.

    >>> import expost as xp
    >>> from expost.estimation import estimate_mean
    >>> query = xp.perturbation([0, 1], range=(0, 1), epsilon=2)
    >>> found = estimate_mean([0] * 70 + [1] * 30, query, domain=xp.FiniteSet(["no", "yes"]))
    >>> round(found.mean, 3), round(found.standard_error, 3), found.subjects
    (0.237, 0.06, 100)
    """

    mean: float
    """Unbiased, so it may be outside the range of the score."""
    standard_error: float
    """Infinite if there is only one subject."""
    lower: float
    upper: float
    confidence: float
    used: Used
    """How many responses it is made from, and what it assumes."""

    @property
    def subjects(self) -> int:
        """How many subjects answered the query."""
        return self.used.subjects

    def columns(self) -> dict[str, Any]:
        """The columns of a table with one row."""
        names = ("mean", "standard_error", "lower", "upper")
        return {name: [getattr(self, name)] for name in names}

    def _view(self) -> View:
        numbers = (self.mean, self.lower, self.upper)
        cells = [f"{number:.4g}" for number in numbers]
        facts = {"interval": level_text(self.confidence), **self.used.facts()}
        return View(
            f"Mean({format_count(self.subjects, 'subject')})",
            facts,
            ("mean", "lower", "upper"),
            1,
            lambda _place: cells,
        )

    def tree(self) -> dict[str, Any]:
        """The estimate as JSON."""
        row = {name: column[0] for name, column in as_lists(self.columns()).items()}
        return plain({**row, "confidence": self.confidence, **self.used.tree()})


def estimate_mean(
    answers: Any,
    query: Query | str,
    *,
    domain: Domain | None = None,
    confidence: ExactLike = "0.95",
) -> Mean:
    r"""Estimate the mean of a score in the population from which the subjects are drawn.

    ``answers`` are :class:`Answers` and ``query`` is the id of one of their queries; or ``answers``
    is a list of responses, each from a different subject, to one ``query`` on a ``domain``. The
    query must be about a score: perturbation, linear, logistic, probit, duchi, piecewise, laplace
    or gaussian. For a one-bit query about a score in [a, b], if the share π of the responses is
    high, the estimate is

    .. math:: a + (b - a)\, \frac{(e^\varepsilon + 1)\,\pi - 1}{e^\varepsilon - 1}

    computed with the sampled weights instead of e^epsilon.

    Who was asked must not depend on responses. Under a filter it does: then use
    :func:`estimate_distribution`, and the mean of the scores that it has. It warns if the answers
    name a filter.

    >>> import expost as xp
    >>> sleep = xp.perturbation([0, 6, 12], range=(0, 12), epsilon=1)
    >>> result = estimate_mean([0, 12, 12, 12], sleep, domain=xp.FiniteSet(range(3)))
    >>> round(result.mean, 2), round(result.lower, 2), round(result.upper, 2)
    (12.49, 0.82, 12.0)
    """
    level = float(read_confidence(confidence))
    if not isinstance(answers, Answers):
        with at("query"):
            check_query(query)
        with at("answers"):
            given = [(query, response) for response in items(answers)]
        answers, key = as_answers(given, domain), "0"
    else:
        key = _key(answers, query)
        answers = as_answers(answers, domain, key)
    with at("query"):
        meaning = answers.queries[key].meaning(answers.domain)
    rows, estimates = _by_row(answers, key, meaning)
    if not len(rows):
        raise InvalidInput("nobody answered it", "query")
    asked, counts = np.unique(rows, return_counts=True)
    used = Used.of(answers, len(asked), len(rows), key, likeliest=False)
    responses = answers.queries[key].on(answers.domain).responses
    if len(responses) == 2 and len(asked) == len(rows):
        ends = sorted(_worth(meaning, response) for response in responses)
        return _of_bits(estimates, ends[0], ends[1], meaning, level, used)
    means = np.bincount(np.searchsorted(asked, rows), estimates) / counts
    return _of_numbers(means, meaning, level, used)


def _key(answers: Answers, query: Any) -> str:
    with at("query"):
        expect(query, str, "the id of a query of the answers")
        if query not in answers.queries:
            raise no_such_query(query, answers.queries)
        return str(query)


def _by_row(answers: Answers, key: str, meaning: Unbiased) -> tuple[NDArray[np.intp], Floats]:
    """The subject of each response to a query, and what the response says."""
    responses = answers.queries[key].on(answers.domain).responses
    worth = np.array(
        [
            _worth(meaning, responses[place]) if asked == key else math.nan
            for asked, place in answers.given
        ]
    )
    estimates = worth[answers.codes]
    subjects = np.repeat(np.arange(len(answers)), answers.exchanges)
    about = ~np.isnan(estimates)
    return subjects[about], estimates[about]


def _worth(meaning: Unbiased, response: Any) -> float:
    value: Any = meaning.estimate(response)
    if abs(value) > _LARGEST:
        raise InvalidInput("its estimates are too large for doubles", "query")
    return float(value)


def _of_bits(
    estimates: Floats, low: float, high: float, meaning: Unbiased, level: float, used: Used
) -> Mean:
    """Each subject gave one of two responses: their number is binomial."""
    subjects = len(estimates)
    share = float((estimates > (low + high) / 2).mean())
    one = np.array([share])
    lower, upper = score_interval(one, np.zeros(1), np.ones(1), subjects, normal_reach(level))
    spread = high - low
    deviation = spread * math.sqrt(share * (1 - share) / (subjects - 1)) if subjects > 1 else None
    return _mean(
        low + spread * share,
        deviation,
        (low + spread * float(lower[0]), low + spread * float(upper[0])),
        meaning,
        level,
        used,
    )


def _of_numbers(means: Floats, meaning: Unbiased, level: float, used: Used) -> Mean:
    """Each subject stands for a number of unknown variance."""
    subjects, mean = len(means), float(means.mean())
    if subjects == 1:
        return _mean(mean, None, (-math.inf, math.inf), meaning, level, used)
    error = float(means.std(ddof=1)) / math.sqrt(subjects)
    reach = student_reach(level, subjects - 1) * error
    return _mean(mean, error, (mean - reach, mean + reach), meaning, level, used)


def _mean(
    mean: float,
    error: float | None,
    interval: tuple[float, float],
    meaning: Unbiased,
    level: float,
    used: Used,
) -> Mean:
    low, high = map(float, meaning.range)
    lower, upper = (min(high, max(low, end)) for end in interval)
    return Mean(mean, math.inf if error is None else error, lower, upper, level, used)
