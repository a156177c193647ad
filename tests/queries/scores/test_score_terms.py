"""Terms on boxes: the error is never exceeded, and no part of it is there for nothing.

What is checked has no tolerance. The integer weights come from the sampler's pmf, the affine form
is evaluated in rational numbers, links and logarithms by mpmath.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.domains import Integers, Real
from expost.numbers import down, up
from expost.queries import BoxLikelihood, BoxScore, OneBitGrid
from expost.terms import Link, ScoreTerm
from support import oracles

Point = tuple[float, ...]
LINKS = {Link.LOGISTIC: oracles.logistic_link, Link.CLIPPED: oracles.clipped_link}


def deviation(likelihood: BoxLikelihood, position: int, points: Sequence[Point]) -> mpmath.mpf:
    """Half of how far log(weight) - link(z) ranges over points: the least error there can be."""
    term = likelihood.term(position)
    differences = []
    for point in points:
        weight = likelihood.pmf(point).probability(position)
        z = oracles.affine(term.weights, term.offset, point)
        differences.append(oracles.log(weight) - LINKS[term.link](z, term.epsilon))
    return (max(differences) - min(differences)) / 2


def digits(epsilon: Fraction) -> int:
    return 60 + len(str(epsilon.denominator // epsilon.numerator))


def some_points(generator: random.Random, box: xp.Box, count: int) -> list[Point]:
    """Corners, points just inside of them, and points in between."""

    def coordinate(side: Real | Integers) -> float:
        if isinstance(side, Integers):
            ends = (side.lower, side.upper)
            return generator.choice([*ends, generator.randint(*ends)])
        low, high = side.lower, side.upper
        inside = generator.uniform(low, high), up(low), down(high)
        return generator.choice([low, high, *(min(high, max(low, x)) for x in inside)])

    points = [tuple(coordinate(side) for side in box.columns) for _ in range(count)]
    return [
        tuple(side.lower for side in box.columns),
        tuple(side.upper for side in box.columns),
        *points,
    ]


EPSILONS = ["1e-300", "1e-30", "1e-3", "0.1", "1/3", "1", "2.5", "8", "9.5", "30", "120", "499"]


def some_box(generator: random.Random) -> xp.Box:
    sides: list[Any] = []
    for _ in range(generator.randint(1, 5)):
        size = 10.0 ** generator.choice([-300, -8, 0, 0, 0, 1, 2, 4, 12])
        lower = generator.uniform(-size, size)
        kind = generator.randrange(6)
        if kind == 0:
            sides.append((lower, lower))
        elif kind == 1:
            low = generator.randint(-10, 10)
            sides.append(xp.integers(low, low + generator.randint(0, 20)))
        elif kind == 2:
            sides.append((0.0, abs(lower)))
        else:
            sides.append((lower, lower + generator.random() * size))
    return xp.Box(sides)


def some_query(generator: random.Random, box: xp.Box) -> xp.queries.Query:
    scale = 10.0 ** generator.choice([-300, -3, 0, 0, 0, 1, 4, 8, 150])
    weights = [
        generator.choice([0.0, 1.0, 1.0, 1.0]) * generator.gauss(0, 1) * scale for _ in box.columns
    ]
    intercept = generator.choice([0.0, 1.0, 1e3, -1e8]) * generator.gauss(0, 1)
    epsilon = generator.choice(EPSILONS)
    if generator.random() < 0.5:
        return xp.logistic(weights, intercept=intercept, epsilon=epsilon)
    if generator.random() < 0.3:
        query = xp.linear(weights, intercept=intercept, epsilon=epsilon)
        with suppress(xp.InvalidInput):  # where the score is the same everywhere
            query.on(box)
            return query
    middle = generator.gauss(0, 1) * 10.0 ** generator.randint(-3, 5)
    width = 10.0 ** generator.choice([-320, -12, -3, 0, 1, 2, 5, 100])
    ends = (middle - width, middle + width) if middle - width < middle + width else (0.0, width)
    return xp.linear(weights, intercept=intercept, range=ends, clip=True, epsilon=epsilon)


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_any_box_is_further_off_than_the_error(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(150):
        box = some_box(generator)
        query = some_query(generator, box)
        likelihood = query.on(box)
        assert query.epsilon is not None
        with mpmath.workdps(digits(query.epsilon)):
            points = some_points(generator, box, 6)
            for position in (0, 1):
                error = likelihood.term(position).error
                assert deviation(likelihood, position, points) <= error, (query.tree(), box)


@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_an_ordinary_box_is_further_off_and_the_error_is_small(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(60):
        size = generator.randint(1, 6)
        box = xp.Box([(-1, generator.uniform(-0.9, 9)) for _ in range(size)])
        weights = [generator.gauss(0, 2) for _ in range(size)]
        epsilon = generator.choice(["1e-3", "0.1", "1/3", "1", "2.5", "8"])
        ends = generator.uniform(-5, 0), generator.uniform(0.5, 5)
        for query in (
            xp.logistic(weights, intercept=generator.gauss(0, 3), epsilon=epsilon),
            xp.linear(weights, intercept=0.5, range=ends, clip=True, epsilon=epsilon),
            xp.linear(weights, epsilon=epsilon),
        ):
            likelihood = query.on(box)
            with mpmath.workdps(60):
                points = some_points(generator, box, 6)
                for position in (0, 1):
                    error = likelihood.term(position).error
                    assert deviation(likelihood, position, points) <= error < 2e-10


def test_the_ordinary_error_is_below_one_part_in_a_trillion() -> None:
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    weights = {"age": 0.0855, "sex": 0.4617}
    clipped = xp.linear(weights, range=(0, 12), clip=True, epsilon="1")
    for query in (clipped, xp.logistic(weights, intercept=-3, epsilon="1")):
        assert max(query.on(box).term(position).error for position in (0, 1)) < 1e-12


def test_terms_are_the_formulas() -> None:
    box = xp.Box([(0, 1), (0, 1)])
    linear = xp.linear([3, 0], intercept=1, range=(0, 8), epsilon="1").on(box)
    assert linear.term(1) == ScoreTerm(Link.CLIPPED, 1.0, (0.75, 0.0), -0.75, linear.term(1).error)
    assert linear.term(0) == ScoreTerm(Link.CLIPPED, 1.0, (-0.75, 0.0), 0.75, linear.term(0).error)
    logistic = xp.logistic([3, 0], intercept=1, epsilon="1").on(box)
    assert logistic.term(1) == ScoreTerm(
        Link.LOGISTIC, 1.0, (3.0, 0.0), 1.5, logistic.term(1).error
    )
    assert logistic.term(0) == ScoreTerm(
        Link.LOGISTIC, 1.0, (-3.0, 0.0), -0.5, logistic.term(0).error
    )


def test_the_links_are_what_their_names_say() -> None:
    generator = random.Random(3)
    with mpmath.workdps(60):
        for _ in range(200):
            z, epsilon = generator.uniform(-6, 6), generator.uniform(0.01, 9)
            e = mpmath.mpf(epsilon)
            logistic = 2 * mpmath.atanh(mpmath.tanh(e / 4) * mpmath.tanh(mpmath.mpf(z) / 2))
            clipped = mpmath.log1p(mpmath.tanh(e / 2) * max(-1, min(1, mpmath.mpf(z))))
            assert abs(oracles.logistic_link(Fraction(z), epsilon) - logistic) < 1e-50
            assert abs(oracles.clipped_link(Fraction(z), epsilon) - clipped) < 1e-50


def test_a_score_that_is_the_same_everywhere_has_no_error() -> None:
    still = xp.Box([(2, 2), (0, 5)])
    for query in (
        xp.logistic([3, 0], epsilon=1),
        xp.linear([3, 0], range=(0, 9), epsilon=1),
        xp.linear([3, 1e-300], range=(0, 9), epsilon=1),
    ):
        term = query.on(still).term(1)
        assert (term.weights, term.offset, term.error) == ((0.0, 0.0), 0.0, 0.0)


@pytest.mark.parametrize(
    ("weights", "ends"), [([1e150], (0, 1)), ([1.0], (0, 1e-320)), ([1e300], (0, 5e-324))]
)
def test_where_doubles_say_nothing_a_constant_is_within_half_of_epsilon(
    weights: list[float], ends: tuple[float, float]
) -> None:
    query = xp.linear(weights, range=ends, clip=True, epsilon="3")
    term = query.on(xp.Box([(-1, 1)])).term(0)
    assert (term.weights, term.offset, term.error) == ((0.0,), 0.0, 1.5)
    huge = xp.logistic([1e150], epsilon="3").on(xp.Box([(-1, 1)])).term(0)
    assert (huge.weights, huge.error) == ((0.0,), 1.5)


def worst_deviation(
    query: xp.queries.Query, box: xp.Box, position: int, point: Callable[[random.Random], Point]
) -> mpmath.mpf:
    generator = random.Random(11)
    with mpmath.workdps(60):
        points = [point(generator) for _ in range(400)]
        worst = deviation(query.on(box), position, points)
        assert worst <= query.on(box).term(position).error
    return worst


@pytest.mark.parametrize("position", [0, 1])
def test_the_score_is_off_where_large_weights_cancel(position: int) -> None:
    box = xp.Box([(0, 1), (0, 1)])
    query = xp.linear([1e8, -1e8], intercept=0.3, range=(0, 1), clip=True, epsilon=1)
    logistic = xp.logistic([1e8, -1e8], intercept=0.3, epsilon=1)

    def canceling(generator: random.Random) -> Point:
        x = generator.random()
        return x, min(1.0, max(0.0, x + generator.uniform(-3e-9, 3e-9)))

    # Without the rounding of the score an error is about 8e-13.
    for family in (query, logistic):
        worst = worst_deviation(family, box, position, canceling)
        assert worst > family.on(box).term(position).error / 100
        assert worst > 1e-10


def test_the_grid_is_most_of_an_ordinary_error() -> None:
    query = xp.linear([1], range=(0, 1), epsilon="1")
    box = xp.Box([(0, 1)])
    for position in (0, 1):
        worst = worst_deviation(query, box, position, lambda generator: (generator.random(),))
        assert worst > query.on(box).term(position).error / 4


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_the_share_leaves_little_for_the_low_response_when_epsilon_is_large(family: str) -> None:
    box = xp.Box([(0, 40)])
    query: xp.queries.Query = xp.logistic([1], epsilon=28)
    if family == "linear":
        query = xp.linear([1], range=(0, 40), epsilon=28)

    def near_the_top(generator: random.Random) -> Point:
        return (min(40.0, 40 - 10.0 ** generator.uniform(-14, 1)),)

    # Half a step of the grid and the rest are about 1e-12 of a weight here.
    worst = worst_deviation(query, box, 0, near_the_top)
    assert worst > query.on(box).term(0).error / 200
    assert worst > 1e-6


def test_the_doubles_of_the_term_are_off_where_coordinates_are_large() -> None:
    # Scores x - 2^50 are exact in doubles here, but 2/3 and the offset are not.
    start = 2**50
    box = xp.Box([xp.integers(start, start + 3)])
    query = xp.linear([1], intercept=-start, range=(0, 3), epsilon=1)
    worst = worst_deviation(query, box, 1, lambda g: (start + g.randint(0, 3),))
    assert worst > 1e-3


def test_epsilon_is_off_where_its_weights_are_rounded_down() -> None:
    # At the ends the grid is exact, so what is left is heavy/light against e^epsilon.
    for epsilon in map(Fraction, ("1/3", "1", "2.5")):
        likelihood = xp.linear([1], range=(0, 1), epsilon=epsilon).on(xp.Box([(0, 1)]))
        with mpmath.workdps(60):
            worst = deviation(likelihood, 1, [(0.0,), (1.0,)])
        assert Fraction(1, 100 * OneBitGrid.at(epsilon).heavy) < worst <= likelihood.term(1).error


def test_a_point_and_a_table_of_points_give_the_same_bits() -> None:
    generator = random.Random(5)
    box = xp.Box([(-1e3, 1e3)] * 7)
    for _ in range(50):
        score = BoxScore(tuple(generator.gauss(0, 10) for _ in range(7)), 0.1, box)
        points = np.array([[generator.uniform(-1e3, 1e3) for _ in range(7)] for _ in range(40)])
        table = score.at(list(points.T)).tolist()
        assert [score.at(point) for point in points.tolist()] == table


def test_scores_in_doubles_are_within_their_rounding_and_extreme_at_the_corners() -> None:
    generator = random.Random(6)
    for _ in range(300):
        box = some_box(generator)
        scale = 10.0 ** generator.choice([-310, -3, 0, 8])
        weights = tuple(generator.gauss(0, 1) * scale for _ in box.columns)
        score = BoxScore(weights, generator.choice([0.0, -1.0, 1e5]), box)
        rounding = oracles.score_rounding(weights, score.intercept, score.reach)
        low, high = score.at(score.corner(-1)), score.at(score.corner(1))
        lowest, highest, under = score.ends
        for point in some_points(generator, box, 8):
            computed = score.at(point)
            exact = oracles.affine(weights, score.intercept, point)
            assert abs(Fraction(computed) - exact) <= rounding
            assert low <= computed <= high
            assert lowest <= exact * under <= highest
