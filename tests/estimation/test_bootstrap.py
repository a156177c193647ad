"""Intervals of many numbers: what takes long is not begun, and a number that is given is kept."""

from __future__ import annotations

import numpy as np
import pytest

import expost as xp
from expost.estimation import estimate_distribution


def study(subjects: int, values: int, answers_each: int) -> xp.Answers:
    """Answers of which no two are alike."""
    draw, domain = np.random.default_rng(1), xp.FiniteSet(range(values))
    query = xp.randomized_response(epsilon="0.5")
    table = {
        "subject": [subject for subject in range(subjects) for _ in range(answers_each)],
        "query": ["q"] * subjects * answers_each,
        "response": draw.integers(values, size=subjects * answers_each).tolist(),
    }
    return xp.Answers(domain, {"q": query}, table)


def test_intervals_of_very_many_numbers_are_not_begun_unless_a_number_is_given() -> None:
    estimate = estimate_distribution(study(400, 300, 2))
    with pytest.raises(xp.InvalidInput, match=r"too many for intervals of 300 numbers"):
        estimate.intervals()
    with pytest.warns(UserWarning, match="at an end of what is possible"):
        assert estimate.intervals(repetitions=50).repetitions == 50
    (lower,), (upper,) = (lambda ends: (ends.lower, ends.upper))(estimate.intervals(range(300)))
    assert 0 <= lower < estimate.mean(range(300)) < upper <= 299


def test_a_search_that_would_take_long_is_not_begun() -> None:
    begun: list[int] = []
    with pytest.raises(xp.InvalidInput, match="too many for a likelihood"):
        estimate_distribution(study(9_000, 400, 3), progress=lambda step, gap: begun.append(step))
    assert not begun
