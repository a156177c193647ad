"""How far intervals reach, against mpmath and the textbook's formula."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.estimation._intervals import normal_quantile, score_interval, t_quantile
from expost.numbers import read_confidence


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 7, 10, 30, 99, 9_999])
def test_the_share_within_students_reach_is_the_confidence(level: float, freedom: int) -> None:
    t = mpmath.mpf(t_quantile(level, freedom))
    outside = mpmath.betainc(
        mpmath.mpf(freedom) / 2, 0.5, 0, freedom / (freedom + t**2), regularized=True
    )
    assert float(outside) == pytest.approx(1 - level, rel=2e-3)


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-12])
def test_the_share_within_the_normal_reach_is_the_confidence(level: float) -> None:
    outside = mpmath.erfc(mpmath.mpf(normal_quantile(level)) / mpmath.sqrt(2))
    assert float(outside) == pytest.approx(1 - level, rel=1e-9)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "1.0", 1 - 1e-20, "x", None, math.nan])
def test_a_confidence_is_between_zero_and_one(confidence: Any) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^confidence: "):
        read_confidence(confidence)


@pytest.mark.parametrize(("share", "subjects"), [(0.0, 1), (0.3, 10), (1.0, 50), (0.5, 10_000)])
def test_without_noise_the_interval_is_wilsons(share: float, subjects: int) -> None:
    z, n = 1.96, subjects
    lower, upper = score_interval(np.array([share]), np.zeros(1), np.ones(1), subjects, z)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert (lower[0], upper[0]) == pytest.approx((middle - half, middle + half), abs=1e-12)


def test_the_ends_are_where_the_estimate_is_just_not_contradicted() -> None:
    generator = np.random.default_rng(1)
    constant = generator.uniform(0, 5, 1000)
    slope = generator.uniform(-2, 3, 1000)
    estimate = generator.uniform(-0.5, 1.5, 1000)
    slope = np.maximum(slope, 1 - constant)  # a variance is not negative at either end
    lower, upper = score_interval(estimate, constant, slope, 40, 1.96)
    inside = (lower > 0) & (lower < upper) & (upper < 1)
    assert inside.sum() > 100
    for end in (lower[inside], upper[inside]):
        variance = constant[inside] + slope[inside] * end - end**2
        assert 40 * (estimate[inside] - end) ** 2 == pytest.approx(1.96**2 * variance)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()
