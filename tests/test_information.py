"""The benchmark of information measures what it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from benchmarks.information import (
    DIMENSION,
    basic,
    basic_at_best,
    filtered,
    one_shot,
    query_of,
    regressions,
    trace,
)

import expost as xp

BOX = xp.Box([(-1, 1)] * DIMENSION)


def chance(query: xp.Query, point: list[float]) -> float:
    """Of the upper end, as it is sampled."""
    place = BOX.locate(point)
    assert place is not None
    return float(query.on(BOX).pmf(place).probability(1))


def test_the_information_is_that_of_what_is_sampled() -> None:
    epsilon, step = Fraction(2), 1e-3
    for theta, _ in zip(regressions(np.random.default_rng(1)), range(3), strict=False):
        query = query_of(theta, epsilon)
        p = chance(query, [0.0] * DIMENSION)
        ends = (step * np.eye(DIMENSION)).tolist()
        slopes = [
            (chance(query, end) - chance(query, [-x for x in end])) / (2 * step) for end in ends
        ]
        told = sum(slope**2 for slope in slopes) / (p * (1 - p))
        assert trace(theta, epsilon) == pytest.approx(told, rel=1e-6)


def test_one_coordinate_at_the_full_budget_is_the_one_shot_design() -> None:
    coordinate = np.eye(DIMENSION + 1)[1]
    assert one_shot(2) == pytest.approx(trace(coordinate, Fraction(2)))


def test_basic_composition_gets_its_best_epsilon() -> None:
    assert [basic_at_best(budget, draws=2000).median for budget in (1, 2, 4)] == [1, 1, 2]
    assert basic(1, 10, draws=2000).information < basic(1, 1, draws=2000).information / 5


def test_the_filter_accepts_no_less_than_basic_composition_and_tells_what_it_accepted() -> None:
    found = filtered(2, 2, runs=4)
    assert min(found.accepted) >= 2
    assert found.information > 0
    assert found == filtered(2, 2, runs=4)
