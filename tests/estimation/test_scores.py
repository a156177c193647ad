"""The score of each value, from what responses say of it on average."""

from __future__ import annotations

import math

import numpy as np
import pytest

import expost as xp
from expost.estimation._support import query_scores

AGES = xp.FiniteSet([{"age": age} for age in (10, 30, 95)])


def logistic(score: float) -> float:
    return 1 / (1 + math.exp(-score))


@pytest.mark.parametrize(
    ("query", "scores"),
    [
        (xp.perturbation([1, 4, 2.5], range=(0, 5), epsilon="1/3"), [1, 4, 2.5]),
        (xp.linear({"age": 0.5}, intercept=1, range=(0, 20), clip=True, epsilon=1), [6, 16, 20]),
        (xp.logistic({"age": 0.1}, intercept=-3, epsilon=2), [*map(logistic, (-2, 0, 6.5))]),
        (xp.queries.duchi({"age": 1}, range=(0, 50), epsilon=1), [10, 30, 50]),
        (xp.laplace({"age": 1}, range=(0, 100), grid=5, epsilon=2), [10, 30, 95]),
        (xp.piecewise({"age": 1}, range=(0, 100), grid=5, epsilon=2), [10, 30, 95]),
    ],
)
def test_it_is_the_score_of_the_query(query: xp.queries.Query, scores: list[float]) -> None:
    assert query_scores(query, AGES) == pytest.approx(np.array(scores), abs=1e-9)


def test_a_query_about_no_score_is_refused() -> None:
    with pytest.raises(xp.InvalidInput, match="is not about a score"):
        query_scores(xp.randomized_response("1"), AGES)
