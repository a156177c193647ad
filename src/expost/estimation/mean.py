"""The mean of a score in a group, from responses that are each unbiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_confidence, format_count, format_number
from expost._types import Floats
from expost.answers import Answers, no_such_query
from expost.cards import View
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect, read_at
from expost.estimation._intervals import (
    INCONSISTENT,
    binomial_interval,
    normal_quantile,
    t_quantile,
)
from expost.estimation._validity import Provenance, read_answers
from expost.files.canonical import plain_tree
from expost.files.reading import as_list
from expost.files.tables import ResultTable, as_lists
from expost.numbers import ExactLike, read_confidence
from expost.queries import Query, UnbiasedScore, check_query

__all__ = ["Mean", "estimate_mean"]


# Squares up to this can be summed without overflow.
_LARGEST = 1e140

# Relative; a root of a polynomial in doubles is only nearly one.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, repr=False)
class Mean(ResultTable):
    """An unbiased estimate of a mean, and an interval for it within the range of the score.

    :func:`estimate_mean` returns it.

    >>> import expost as xp
    >>> from expost.estimation import estimate_mean
    >>> query = xp.perturbation([0, 1], range=(0, 1), epsilon=2)
    >>> found = estimate_mean([0] * 70 + [1] * 30, query, domain=xp.FiniteSet(["no", "yes"]))
    >>> round(found.mean, 3), round(found.standard_error, 3), found.subjects
    (0.237, 0.06, 100)
    """

    #: The unbiased estimate, which may be outside the range of the score.
    mean: float
    #: Infinite if there is only one subject; never less than the noise of the responses.
    standard_error: float
    lower: float
    upper: float
    #: Whether any mean in the range of the score fits the responses; if not, the interval is all
    #: of the range.
    consistent: bool
    confidence: float
    #: The data it was made from, and its assumptions.
    provenance: Provenance

    @property
    def subjects(self) -> int:
        """How many subjects answered the query."""
        return self.provenance.subjects

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table with one row."""
        names = ("mean", "standard_error", "lower", "upper")
        return {name: [getattr(self, name)] for name in names}

    def _view(self) -> View:
        cells = [format_number(bound, 4) for bound in (self.mean, self.lower, self.upper)]
        facts = {"interval": format_confidence(self.confidence), **self.provenance.facts()}
        if not self.consistent:
            facts["but"] = "; ".join(filter(None, (INCONSISTENT, facts.get("but"))))
        return View(
            f"Mean({format_count(self.subjects, 'subject')})",
            facts,
            ("mean", "lower", "upper"),
            1,
            lambda _index: cells,
        )

    def tree(self) -> dict[str, Any]:
        """Return the estimate as JSON."""
        row = {name: column[0] for name, column in as_lists(self.columns()).items()}
        options = {"consistent": self.consistent, "confidence": self.confidence}
        return plain_tree({**row, **options, **self.provenance.tree()})


def estimate_mean(
    answers: Any,
    query: Query | str,
    *,
    domain: Domain | None = None,
    confidence: ExactLike = "0.95",
) -> Mean:
    r"""Estimate the mean of a score in the population from which the subjects are drawn.

    For a one-bit query about a score in [a, b], if the share π of the responses is high, the
    estimate is

    .. math:: a + (b - a)\, \frac{(e^\varepsilon + 1)\,\pi - 1}{e^\varepsilon - 1}

    computed with the sampled weights instead of e^epsilon.

    The choice of subjects must not depend on responses. Under a filter it does: then use
    :func:`estimate_distribution` and its ``mean``. A warning says so if the answers name a filter.

    Args:
        answers: :class:`Answers`; or a list of responses, each from a different subject.
        query: The id of one of the queries of the answers; or the query that the responses answer.
            It must be about a score: perturbation, linear, logistic, probit, duchi, piecewise,
            laplace or gaussian.
        domain: The domain of a list of responses; :class:`Answers` have one.
        confidence: The level of the interval.

    Returns:
        An unbiased estimate, and an interval within the range of the score.

    Raises:
        InvalidInput: If the query is not about a score, or no subject answered it.

    >>> import expost as xp
    >>> sleep = xp.perturbation([0, 6, 12], range=(0, 12), epsilon=1)
    >>> result = estimate_mean([0, 12, 12, 12], sleep, domain=xp.FiniteSet(range(3)))
    >>> round(result.mean, 2), round(result.lower, 2), round(result.upper, 2)
    (12.49, 0.0, 12.0)
    """
    confidence_level = float(read_confidence(confidence))
    if not isinstance(answers, Answers):
        read_at("query", check_query, query)
        with at("answers"):
            pairs = [(query, response) for response in as_list(answers)]
        answers, key = read_answers(pairs, domain), "0"
    else:
        key = _key(answers, query)
        answers = read_answers(answers, domain, key)
    meaning = read_at("query", answers.queries[key].meaning, answers.domain)
    rows, estimates = _estimates_by_response(answers, key, meaning)
    if not len(rows):
        raise InvalidInput("no subject answered it", "query")
    subjects, counts = np.unique(rows, return_counts=True)
    provenance = Provenance.of(answers, len(subjects), len(rows), key, by_likelihood=False)
    responses = answers.queries[key].on(answers.domain).responses
    means = np.bincount(np.searchsorted(subjects, rows), estimates) / counts
    mean, size = float(means.mean()), len(means)
    low, high = map(float, meaning.range)
    # Several responses of a subject have less noise.
    noise_share = float((1 / counts).mean()) / size
    least_variance = noise_share * meaning.variance(min(high, max(low, mean)))
    sample_error = float(means.std(ddof=1)) / math.sqrt(size) if size > 1 else math.inf
    if len(responses) == 2 and size == len(rows):
        first, last = sorted(_estimate(meaning, response) for response in responses)
        count = int((estimates > (first + last) / 2).sum())
        shares = binomial_interval(count, size, 1 - confidence_level)
        lower, upper = (first + (last - first) * share for share in shares)
        # Equal responses have no variance; the next one may differ.
        rate = min(max(count, size / (size + 1)), size * size / (size + 1)) / size
        sample_error = max(sample_error, (last - first) * math.sqrt(rate * (1 - rate) / size))
    else:
        lower, upper = _interval_of_numbers(
            mean, sample_error, size, meaning, noise_share, confidence_level
        )
    consistent = lower <= high and upper >= low
    lower, upper = (max(low, lower), min(high, upper)) if consistent else (low, high)
    error = max(sample_error, math.sqrt(least_variance))
    return Mean(mean, error, lower, upper, consistent, confidence_level, provenance)


def _key(answers: Answers, query: Any) -> str:
    with at("query"):
        expect(query, str, "the id of a query of the answers")
        if query not in answers.queries:
            raise no_such_query(query, answers.queries)
        return str(query)


def _estimates_by_response(
    answers: Answers, key: str, meaning: UnbiasedScore
) -> tuple[NDArray[np.intp], Floats]:
    """Return the subject of each response to a query, and the estimate from the response."""
    responses = answers.queries[key].on(answers.domain).responses
    estimate_by_code = np.array(
        [
            _estimate(meaning, responses[position]) if query_id == key else math.nan
            for query_id, position in answers.responses
        ]
    )
    estimates = estimate_by_code[answers.codes]
    subjects = np.repeat(np.arange(len(answers)), answers.exchanges)
    answered = ~np.isnan(estimates)
    return subjects[answered], estimates[answered]


def _estimate(meaning: UnbiasedScore, response: Any) -> float:
    estimate: Any = meaning.estimate(response)
    if abs(estimate) > _LARGEST:
        raise InvalidInput("its estimates are too large for doubles", "query")
    return float(estimate)


def _interval_of_numbers(
    mean: float,
    sample_error: float,
    subjects: int,
    meaning: UnbiasedScore,
    noise_share: float,
    confidence: float,
) -> tuple[float, float]:
    """Return the hull of Student's interval and the one from the noise that is known.

    Student's has one degree of freedom less than usual, because values are not normal. The other
    one has all means that would not be rejected if all subjects had the same score.
    """
    low, high = map(float, meaning.range)
    if subjects <= 2:
        return low, high
    half_width = t_quantile(confidence, subjects - 2) * sample_error
    # A quadratic inequality: (mean - score)² ≤ z² · variance(score) · noise_share.
    scores = np.array([low, (low + high) / 2, high])
    factor = normal_quantile(confidence) ** 2 * noise_share
    excess = (mean - scores) ** 2 - factor * np.array([meaning.variance(s) for s in scores])
    polynomial = np.polyfit((scores - low) / (high - low), excess, 2)
    roots = np.roots(polynomial)
    ends = [0.0, 1.0, *(float(root.real) for root in roots if 0 < root.real < 1 and not root.imag)]
    inside = [end for end in ends if np.polyval(polynomial, end) <= _ROUNDING * excess.max()]
    if not inside:
        return mean - half_width, mean + half_width
    return (
        min(mean - half_width, low + min(inside) * (high - low)),
        max(mean + half_width, low + max(inside) * (high - low)),
    )
