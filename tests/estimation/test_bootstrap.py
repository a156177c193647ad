"""How often subjects are resampled where nobody says."""

from __future__ import annotations

import numpy as np
import pytest

import expost as xp
from expost.estimation import estimate_distribution
from expost.estimation.bootstrap import REPETITIONS, usual_repetitions


def study(subjects: int, values: int, each: int) -> xp.Answers:
    """Answers of which no two are alike."""
    draw, domain = np.random.default_rng(1), xp.FiniteSet(range(values))
    query = xp.randomized_response(epsilon="0.5")
    table = {
        "subject": [subject for subject in range(subjects) for _ in range(each)],
        "query": ["q"] * subjects * each,
        "response": draw.integers(values, size=subjects * each).tolist(),
    }
    return xp.Answers(domain, {"q": query}, table)


def test_what_takes_long_is_done_less_often_and_never_too_seldom() -> None:
    assert usual_repetitions(2_000, 10) == REPETITIONS
    assert 50 <= usual_repetitions(10_000, 40) < REPETITIONS
    with pytest.raises(xp.InvalidInput, match="12,000 kinds of responses for 400 values"):
        usual_repetitions(12_000, 400)


def test_a_number_that_is_given_is_kept() -> None:
    found = estimate_distribution(study(400, 300, 2))
    with pytest.raises(xp.InvalidInput, match="unless a number is given"):
        found.intervals()
    with pytest.warns(UserWarning, match="at an end of what is possible"):
        assert found.intervals(repetitions=50).repetitions == 50


def test_a_search_that_would_take_long_is_not_begun() -> None:
    begun: list[int] = []
    with pytest.raises(xp.InvalidInput, match="too many to estimate by likelihood"):
        estimate_distribution(study(9_000, 400, 3), progress=lambda step, gap: begun.append(step))
    assert not begun
