"""Which two values are most apart: exact on finite domains, good examples on boxes."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

import expost as xp
from expost.loss._log_likelihood import ExtremePair
from expost.loss._on_box import apart_on_box, exact_ratio
from support import oracles
from support.box_cases import some_case
from support.random_cases import columns, transcripts


def extreme_pair(odometer: xp.Odometer) -> ExtremePair | None:
    return odometer.log_likelihood.extreme_pair(odometer.effort)


def likelihoods(transcript: xp.Transcript) -> list[Fraction]:
    """The exact likelihood of every value of a finite domain."""
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    vectors = []
    for exchange in transcript.exchanges:
        position = exchange.query.on(domain).position(exchange.response)
        assert position is not None
        vectors.append(columns(exchange.query, domain)[position])
    return oracles.product(vectors, len(domain))


@given(transcripts())
def test_on_a_finite_domain_they_are_the_extremes_of_the_likelihood(
    transcript: xp.Transcript,
) -> None:
    exact = likelihoods(transcript)
    apart = extreme_pair(xp.Odometer(transcript))
    if apart is None:
        assert oracles.ratio(exact) is not None
        assert math.isclose(max(exact), min(exact), rel_tol=1e-12)
        return
    place = transcript.domain.locate
    above, below = exact[place(apart.likeliest)], exact[place(apart.unlikeliest)]  # type: ignore[index]
    assert math.isclose(above, max(exact), rel_tol=1e-12)
    assert math.isclose(below, min(exact), rel_tol=1e-12)
    assert math.isclose(math.exp(apart.difference), above / below, rel_tol=1e-9)
    assert apart.tied_values is not None
    assert apart.tied_values[0] + 1 >= exact.count(max(exact))
    assert apart.tied_values[1] + 1 >= exact.count(min(exact))


def test_a_value_that_is_ruled_out_is_infinitely_far() -> None:
    domain = xp.FiniteSet(list("abcd"))
    query = xp.channel([["1/2", "1/2"], ["1/4", "3/4"], [0, 1], [0, 1]])
    apart = extreme_pair(xp.Odometer(xp.Transcript(domain).add(query, 0)))
    assert apart is not None
    assert (apart.likeliest, apart.unlikeliest, apart.tied_values) == ("a", "c", (0, 1))
    assert apart.difference == math.inf


def test_where_nothing_is_possible_or_nothing_was_said_there_is_no_pair() -> None:
    domain, query = xp.FiniteSet(["a", "b"]), xp.channel([[1, 0], [0, 1]])
    start = xp.Odometer(xp.Transcript(domain))
    assert extreme_pair(start) is None
    assert extreme_pair(start.add(query, 0).add(query, 1)) is None
    balanced = start.add(xp.randomized_response(1), "a").add(xp.randomized_response(1), "b")
    assert extreme_pair(balanced) is None
    box = xp.Odometer(xp.Transcript(xp.Box(x=(0, 1))))
    assert extreme_pair(box) is None
    flat = box.add(xp.logistic({"x": 0}, epsilon=1), 1)
    assert extreme_pair(flat) is None


@pytest.mark.parametrize("seed", range(25))
def test_on_a_box_the_two_points_are_as_far_apart_as_it_says(seed: int) -> None:
    case = some_case(random.Random(seed), noise=False)
    apart = extreme_pair(xp.Odometer(case.transcript))
    if apart is None:
        assert xp.realized_loss(case.transcript).lower < 1e-6
        return
    above, below = case.box.locate(apart.likeliest), case.box.locate(apart.unlikeliest)
    assert above is not None
    assert below is not None
    assert math.isclose(case.sampled_loss(above, below), apart.difference, abs_tol=2e-7)
    assert apart.difference <= xp.realized_loss(case.transcript).upper + 1e-9


HEALTH = xp.Box(age=(10, 100), sex=xp.integers(0, 1), pressure=(50, 200), bmi=(10, 50))
HEART = xp.logistic({"age": -0.059, "sex": -1.456, "pressure": -0.0134}, intercept=6.177, epsilon=1)
SLEEP = xp.linear(
    {"age": 0.0855, "sex": 0.4617, "pressure": -0.07},
    intercept=12.323, range=(0, 12), clip=True, epsilon=1,
)  # fmt: skip


def test_on_a_box_the_example_is_a_good_one() -> None:
    for responses in ((1, 12), (0, 12), (1, 0), (0, 0)):
        transcript = xp.Transcript(HEALTH).add(HEART, responses[0]).add(SLEEP, responses[1])
        loss = xp.realized_loss(transcript, gap=0.001)
        apart = extreme_pair(xp.Odometer(transcript))
        assert apart is not None
        assert apart.tied_values is None
        assert loss.lower - 0.002 <= apart.difference <= loss.upper


def test_coordinates_that_make_no_difference_are_the_same_in_both() -> None:
    apart = extreme_pair(xp.Odometer(xp.Transcript(HEALTH).add(HEART, 1)))
    assert apart is not None
    assert isinstance(apart.likeliest, tuple)
    assert isinstance(apart.unlikeliest, tuple)
    assert apart.likeliest[3] == apart.unlikeliest[3]
    assert apart.likeliest[:3] == (10, 0, 50)
    assert apart.unlikeliest[:3] == (100, 1, 200)
    assert [type(point[1]) for point in (apart.likeliest, apart.unlikeliest)] == [int, int]


def test_a_box_beyond_the_differences_of_doubles_has_an_example() -> None:
    box = xp.Box(x=(-1.5e308, 1.5e308))
    query = xp.logistic({"x": 1e-300}, epsilon=1)
    apart = extreme_pair(xp.Odometer(xp.Transcript(box).add(query, 1)))
    assert apart is not None
    assert box.locate(apart.likeliest) is not None
    assert box.locate(apart.unlikeliest) is not None
    assert math.isclose(apart.difference, 1)


def test_categories_are_among_the_values_most_apart() -> None:
    box = xp.Box(age=(0, 90), region=xp.categories("a", "b", "c", "d", "e"))
    weights: dict[str, Any] = {"age": 0.02, "region": {"b": -4, "d": 5, "e": 0.1}}
    query = xp.logistic(weights, intercept=-1, epsilon=1)
    apart = extreme_pair(xp.Odometer(xp.Transcript(box).add(query, 1).add(query, 1)))
    assert apart is not None
    assert apart.likeliest == (90, "d")
    assert apart.unlikeliest == (0, "b")


def test_noise_whose_weights_are_beyond_doubles_has_an_example() -> None:
    box = xp.Box(age=(0, 120))
    query = xp.laplace({"age": 1}, range=(0, 120), grid=1, epsilon=1)
    apart = extreme_pair(xp.Odometer(xp.Transcript(box).add(query, 55)))
    assert apart is not None
    assert apart.likeliest == pytest.approx((55,), abs=0.6)
    assert apart.unlikeliest == pytest.approx((120,), abs=0.6)
    assert apart.difference == pytest.approx(65 / 120)


def test_on_a_box_the_difference_is_that_of_the_two_values_that_are_named() -> None:
    box = xp.Box(x=(0, 1), y=(0, 1))
    query = xp.logistic({"x": -2, "y": 8}, intercept=-3, epsilon=4)
    tally = xp.Odometer(xp.Transcript(box).add(query, 1)).log_likelihood.tally
    # The first coordinate of the second point becomes 1, which makes the response less likely.
    apart = apart_on_box(tally, box, (1, 1), (0, 0))
    assert apart is not None
    assert apart.unlikeliest == (1, 0)
    ratio = exact_ratio(tally, box, (1, 1), (1, 0))
    assert math.isclose(math.exp(apart.difference), ratio, rel_tol=1e-9)
