"""How far intervals reach, against mpmath and the textbook's formula."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import expost as xp
from expost.estimation._intervals import (
    binomial_interval,
    normal_quantile,
    score_interval,
    t_quantile,
)
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
    lower, upper, _ = score_interval(np.array([share]), np.zeros(1), np.ones(1), subjects, z)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert (lower[0], upper[0]) == pytest.approx((middle - half, middle + half), abs=1e-12)


def test_the_ends_are_where_the_estimate_is_just_not_contradicted() -> None:
    generator = np.random.default_rng(1)
    constant = generator.uniform(0, 5, 1000)
    slope = generator.uniform(-2, 3, 1000)
    estimate = generator.uniform(-0.5, 1.5, 1000)
    slope = np.maximum(slope, 1 - constant)  # a variance is not negative at either end
    lower, upper, consistent = score_interval(estimate, constant, slope, 40, 1.96)
    inside = consistent & (lower > 0) & (lower < upper) & (upper < 1)
    assert inside.sum() > 100
    for end in (lower[inside], upper[inside]):
        variance = constant[inside] + slope[inside] * end - end**2
        assert 40 * (estimate[inside] - end) ** 2 == pytest.approx(1.96**2 * variance)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


def acceptability(count: int, trials: int, share: float) -> float:
    """Sum the probabilities of all counts whose lesser tail is not larger (Blaker 2000)."""
    counts = np.arange(trials + 1)
    binomial = stats.binom(trials, share)
    tails = np.minimum(binomial.cdf(counts), binomial.sf(counts - 1))
    return float(binomial.pmf(counts)[tails <= tails[count] * (1 + 1e-9)].sum())


@pytest.mark.parametrize("level", [0.05, 0.2])
@pytest.mark.parametrize("trials", [1, 2, 5, 17, 60])
def test_an_exact_interval_has_the_shares_that_the_test_does_not_reject(
    trials: int, level: float
) -> None:
    for count in range(trials + 1):
        lower, upper = binomial_interval(count, trials, level)
        assert 0 <= lower <= count / trials <= upper <= 1
        step = 1e-7
        if lower > 0:
            assert acceptability(count, trials, lower + step) > level
            for share in np.linspace(0, lower - step, 50)[1:]:
                assert acceptability(count, trials, float(share)) < level
        if upper < 1:
            assert acceptability(count, trials, upper - step) > level
            for share in np.linspace(upper + step, 1, 50)[:-1]:
                assert acceptability(count, trials, float(share)) < level


@pytest.mark.parametrize("trials", [5, 20, 100, 1_000])
def test_exact_intervals_cover_every_share(trials: int) -> None:
    """The coverage is a sum of binomial probabilities, and lowest just outside of an end."""
    ends = np.array([binomial_interval(count, trials, 0.05) for count in range(trials + 1)])
    shares = np.concatenate([ends.ravel() + 1e-9, ends.ravel() - 1e-9, np.linspace(0, 1, 101)])
    counts = np.arange(trials + 1)
    for share in shares[(shares >= 0) & (shares <= 1)]:
        covered = (ends[:, 0] <= share) & (share <= ends[:, 1])
        assert stats.binom(trials, share).pmf(counts)[covered].sum() >= 0.95 - 1e-9


def test_an_exact_interval_of_very_many_trials_is_nearly_wilsons() -> None:
    lower, upper = binomial_interval(300_000, 1_000_000, 0.05)
    half = 1.959964 * math.sqrt(0.21 / 1_000_000)
    assert (lower, upper) == pytest.approx((0.3 - half, 0.3 + half), abs=2e-6)


def test_an_estimate_that_no_share_fits_has_the_whole_interval() -> None:
    lower, upper, consistent = score_interval(
        np.array([6.5, 1.2]), np.array([99.8, 99.8]), np.ones(2), 20, 1.96
    )
    assert consistent.tolist() == [False, True]
    assert (lower[0], upper[0]) == (0, 1)
    assert lower[1] < upper[1]
