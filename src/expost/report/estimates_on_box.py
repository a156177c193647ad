"""An estimate on a box, from the likeliest mixture of some points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from expost.answers import Answers
from expost.errors import at
from expost.estimation import (
    Distribution,
    beyond_support,
    estimate_distribution,
    point_scores,
)
from expost.estimation.support import Points
from expost.knowledge import Samples
from expost.numbers import ExactLike
from expost.report.estimates import (
    Estimated,
    estimated_by_likelihood,
    how_found,
    quietly,
    rows_of,
)
from expost.report.words import query_in_words

__all__ = ["mean_on_support"]

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
    found = quietly(partial(estimate_distribution, answers, support=support))
    fresh = Samples.uniform(support.box, max(2, min(len(support), _MOST_FRESH)), seed=seed)
    beyond = quietly(partial(beyond_support, answers, found, fresh))
    around = quietly(
        partial(
            found.intervals,
            scores,
            confidence=confidence,
            repetitions=repetitions,
            seed=seed,
            progress=progress,
        )
    )
    (one,) = rows_of(around)
    one = replace(one, of=f"{key}: {query_in_words(query, answers.domain)}")
    other = beyond.wider.mean(point_scores(query, _points(beyond.wider)))
    ends = (float(scores.min()), float(scores.max()))
    result = estimated_by_likelihood(
        answers, f"the mean of {key}, {how_found(found)}", (one,), around, ends
    )
    assumed = (
        f"values are distributed over these points; with {len(fresh):,} more, drawn from all of "
        f"the box, the mean is {other:.4g} and the log-likelihood higher by at most "
        f"{beyond.gain:.2g} nats"
    )
    return replace(result, assumes=(*result.assumes, assumed))


def _points(found: Distribution) -> Samples:
    assert isinstance(found.domain, Points)
    return found.domain.samples
