"""Binomial tails and Clopper-Pearson bounds: on the safe side of exact integers, and tight."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost.client_checks._binomial import largest_share, smallest_share, tail


def exact_tail(trials: int, hits: int, probability: float) -> Fraction:
    share = Fraction(probability)
    weight, denominator = share.numerator, share.denominator
    ways = sum(
        math.comb(trials, k) * weight**k * (denominator - weight) ** (trials - k)
        for k in range(hits, trials + 1)
    )
    return Fraction(ways, denominator**trials)


probabilities = st.one_of(st.floats(0, 1), st.floats(0, 1e-3), st.floats(0.999, 1))


@given(st.integers(1, 40), st.data())
def test_a_tail_is_never_below_the_exact_one_and_hardly_above(
    trials: int, data: st.DataObject
) -> None:
    hits, probability = data.draw(st.integers(0, trials)), data.draw(probabilities)
    bound, exact = Fraction(tail(trials, hits, probability)), exact_tail(trials, hits, probability)
    assert exact <= bound
    if hits > trials * probability and exact > Fraction(1, 10**290):
        assert bound <= exact * (1 + Fraction(1, 10**9))


@settings(max_examples=30)
@given(st.integers(300, 1500), st.integers(1, 2**12 - 1), st.floats(0, 7))
def test_the_same_where_stirlings_series_is_used(trials: int, weight: int, off: float) -> None:
    probability = weight / 2**12
    deviation = math.sqrt(trials * probability * (1 - probability))
    hits = min(trials, math.floor(trials * probability + off * deviation) + 1)
    bound, exact = Fraction(tail(trials, hits, probability)), exact_tail(trials, hits, probability)
    assert exact <= bound <= exact * (1 + Fraction(1, 10**6))


@given(st.integers(1, 60), st.data())
def test_clopper_pearson_bounds_are_where_the_tails_meet_the_error(
    trials: int, data: st.DataObject
) -> None:
    hits = data.draw(st.integers(0, trials))
    error = data.draw(st.sampled_from([0.025, 1e-3, 1e-7]))
    low, high = smallest_share(trials, hits, error), largest_share(trials, hits, error)
    assert 0 <= low <= hits / trials <= high <= 1
    if hits:
        assert exact_tail(trials, hits, low) <= Fraction(error)
        assert exact_tail(trials, hits, low * (1 + 1e-6)) > Fraction(error)
    if hits < trials:
        assert exact_tail(trials, trials - hits, 1 - high) <= Fraction(error)
        assert exact_tail(trials, trials - hits, 1 - high * (1 - 1e-6)) > Fraction(error)


@pytest.mark.parametrize("trials", [10, 10_000, 10_000_000])
def test_no_hits_have_a_bound_that_can_be_written_down(trials: int) -> None:
    bound = largest_share(trials, 0, 1e-4)
    assert bound >= -math.expm1(math.log(1e-4) / trials)
    assert bound == pytest.approx(-math.expm1(math.log(1e-4) / trials), rel=1e-6)
    assert smallest_share(trials, 0, 1e-4) == 0
    assert largest_share(trials, trials, 1e-4) == 1


def test_a_probability_of_zero_has_no_hits() -> None:
    assert tail(10, 1, 0.0) == 0
    assert tail(10, 0, 0.0) == 1
    assert tail(10, 10, 1.0) == 1
    assert tail(10**6, 10**6, 1e-9) > 0
