"""The least surprisal of a response, against the probabilities of all values."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from support import integer_boxes, oracles, random_cases


def check(bound: float, largest: Fraction, slack: float = 0) -> None:
    """Compare a bound with the largest probability of a response."""
    with mpmath.workdps(50):
        assert bound <= -oracles.log(largest) < bound + slack + 1e-9


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(st.just(n), random_cases.queries(n))))
def test_on_a_set_it_belongs_to_the_value_for_which_a_response_is_likeliest(
    case: tuple[int, xp.queries.Query],
) -> None:
    size, query = case
    domain = xp.FiniteSet(range(size))
    for position, column in enumerate(random_cases.columns(query, domain)):
        check(query.on(domain).least_surprisal(position), max(column))


@pytest.mark.parametrize("seed", range(60))
def test_on_a_box_no_point_makes_a_response_less_surprising(seed: int) -> None:
    generator = random.Random(f"surprisal/{seed}")
    ranges = tuple(
        (low, low + generator.randint(1, 3)) for low in generator.choices(range(-2, 2), k=2)
    )
    query = integer_boxes.some_query(generator, ranges)
    case = integer_boxes.DecisionCase(ranges, (), query, xp.BayesianFilter(1), 1)
    on_box, on_points = query.on(case.box), query.on(case.points)
    pmfs = [on_points.pmf(index) for index in range(len(case.points))]
    # A window may be around the scores of both corners; then the bound is less close.
    slack = float(query.epsilon or 0) if query.kind == "piecewise" else 0
    for position in generator.sample(range(len(on_box.responses)), 2):
        largest = max(pmf.probability(position) for pmf in pmfs)
        check(on_box.least_surprisal(position), largest, slack)


def test_noise_on_a_box_is_least_surprising_for_the_closest_score() -> None:
    ends, box = (-3, 4), xp.Box(x=xp.integers(-2, 3))
    points = xp.FiniteSet([{"x": x} for x in range(-2, 4)])
    for query in (
        xp.gaussian({"x": 1}, range=ends, grid=1, sigma="0.35"),
        xp.laplace({"x": 1}, range=ends, grid=1, epsilon=20),
    ):
        on_box = query.on(box)
        for position, column in enumerate(random_cases.columns(query, points)):
            check(on_box.least_surprisal(position), max(column))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "8", "30"])
@pytest.mark.parametrize("curve", [xp.logistic, xp.probit])
def test_roundings_of_the_curve_stay_inside(
    curve: Callable[..., xp.queries.Query], epsilon: str
) -> None:
    """Neighboring doubles, where the share in doubles goes down while the score goes up."""
    near = [0.731]
    for _ in range(200):
        near.append(float(np.nextafter(near[-1], 2)))
    likelihood = curve([1.0], epsilon=epsilon).on(xp.Box([(near[0], near[-1])]))
    slack = 2 * float(likelihood.blur)  # which is large at a large epsilon
    for position in (0, 1):
        largest = max(likelihood.pmf((x,)).probability(position) for x in near)
        check(likelihood.least_surprisal(position), largest, slack)


def test_records_and_categories_are_as_surprising_as_the_part_that_is_asked_about() -> None:
    query = xp.randomized_response("0.5")
    alone = query.on(xp.FiniteSet(["n", "s"])).least_surprisal(0)
    records = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"]))
    box = xp.Box(region=xp.categories("n", "s"), age=(0, 100))
    assert query.about("region").on(records).least_surprisal(0) == alone
    assert query.about("smokes", at=3).on(records).least_surprisal(0) == alone
    assert query.about("region").on(box).least_surprisal(0) == alone
    assert 0.47 < alone < 0.48  # the logarithm of 1 + e^-0.5
