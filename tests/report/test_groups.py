"""Groups of subjects: estimates as from a file of each group, and differences that cover."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from expost.estimation._intervals import normal_quantile, score_interval
from expost.report._estimates import EstimateRow
from expost.report._groups import subtract

ROW = EstimateRow("yes", 0.6, 0.1, 0.4, 0.7)
ENDS = (-10.0, 10.0)
BASE = EstimateRow("yes", 0.2, 0.05, 0.1, 0.4)


def test_an_interval_of_a_difference_recovers_both_variances() -> None:
    row = subtract(ROW, BASE, "b", "a", ENDS)
    assert row.estimate == pytest.approx(0.4)
    assert row.lower == pytest.approx(0.4 - math.sqrt(0.2**2 + 0.2**2))
    assert row.upper == pytest.approx(0.4 + math.sqrt(0.1**2 + 0.1**2))
    assert row.standard_error == pytest.approx(math.sqrt(0.1**2 + 0.05**2))
    assert (row.group, row.minus, row.identified) == ("b", "a", True)


def test_symmetric_intervals_give_that_of_normal_differences() -> None:
    """Then the method is the textbook's: the variances add up."""
    pair = [EstimateRow("m", 3, 0.3, 3 - 1.96 * 0.3, 3 + 1.96 * 0.3),
            EstimateRow("m", 1, 0.4, 1 - 1.96 * 0.4, 1 + 1.96 * 0.4)]  # fmt: skip
    row = subtract(pair[0], pair[1], "b", "a", ENDS)
    assert (row.lower, row.upper) == pytest.approx((2 - 1.96 * 0.5, 2 + 1.96 * 0.5))


def test_an_undetermined_estimate_leaves_every_difference_open() -> None:
    row = subtract(replace(ROW, lower=0.0, upper=1.0, identified=False), BASE, "b", "a", ENDS)
    assert (row.lower, row.upper, row.identified) == (-0.4, 0.9, False)


def test_unbiased_estimates_outside_of_their_intervals_do_not_narrow_it() -> None:
    """An estimate of -0.3 with the interval from 0 to 0.1 counts as 0."""
    outside = EstimateRow("yes", -0.3, 0.2, 0.0, 0.1)
    row = subtract(outside, BASE, "b", "a", ENDS)
    inside = subtract(replace(outside, estimate=0.0), BASE, "b", "a", ENDS)
    assert (row.lower, row.upper) == (inside.lower, inside.upper)
    assert row.estimate == pytest.approx(-0.5)


def test_an_interval_that_is_cut_off_shows_the_variance_of_its_longer_side() -> None:
    cut_off = EstimateRow("yes", 0.15, 0.1, 0.0, 0.4)
    row = subtract(cut_off, BASE, "b", "a", (0.0, 1.0))
    assert row.lower == pytest.approx(0.15 - 0.2 - math.hypot(0.25, 0.2))  # 0.25, not 0.15
    assert row.upper == pytest.approx(0.15 - 0.2 + math.hypot(0.25, 0.1))
    # No difference of two shares in their intervals is below -0.4.
    long = subtract(replace(cut_off, estimate=0.05), BASE, "b", "a", (0.0, 1.0))
    assert long.lower == -0.4
    opposite = subtract(BASE, cut_off, "a", "b", (0.0, 1.0))
    assert (opposite.lower, opposite.upper) == pytest.approx((-row.upper, -row.lower))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.02, 0.1), (0.9, 0.3)])
@pytest.mark.parametrize("sizes", [(60, 300), (400, 400)])
def test_differences_cover(shares: tuple[float, float], sizes: tuple[int, int]) -> None:
    """From Wilson's intervals, as in Newcombe's method 10, which these are for plain shares."""
    generator, repetitions = np.random.default_rng(7), 4000
    zero, one, quantile = np.zeros(repetitions), np.ones(repetitions), normal_quantile(0.95)
    rows = []
    for share, size in zip(shares, sizes, strict=True):
        estimates = generator.binomial(size, share, repetitions) / size
        lower, upper, _ = score_interval(estimates, zero, one, size, quantile)
        rows.append([EstimateRow("yes", *four) for four in
                     zip(estimates, zero, lower, upper, strict=True)])  # fmt: skip
    difference = shares[0] - shares[1]
    hits = sum(
        row.lower <= difference <= row.upper
        for row in (subtract(a, b, "b", "a", (0.0, 1.0)) for a, b in zip(*rows, strict=True))
    )
    assert hits >= 0.94 * repetitions
