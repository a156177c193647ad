"""Sums that are convex or concave as a whole: corners and summits against exact values."""

from __future__ import annotations

import itertools
import random
from unittest import mock

import numpy as np
import pytest

from expost.solver._methods import (
    BranchAndBound,
    ConcaveMaximizer,
    CornerEnumeration,
    choose_maximizer,
)
from expost.solver.kernels import entries
from expost.solver.kernels.layout import PackedProblem
from expost.terms import Link, ScoreTerm
from support.optimizer_parts import exact_sum, make_packed

EPSILONS = [1e-6, 0.1, 1.0, 8.0]


def linear_sides(
    generator: random.Random, epsilon: float, *, integer: bool = False
) -> tuple[PackedProblem, PackedProblem]:
    """Terms whose scores keep within [-1, 1], often just so, some of them counted several times."""
    d = generator.randint(1, 5)
    terms: list[ScoreTerm] = []
    for _ in range(generator.randint(1, 12)):
        weights = [generator.choice([0.0, 1.0, 1.0]) * generator.uniform(-1, 1) for _ in range(d)]
        size = (sum(map(abs, weights)) or 1.0) * generator.choice([1.0, 1.5]) * (1 + 1e-15)
        term = ScoreTerm(Link.CLIPPED, epsilon, tuple(w / size for w in weights), 0.0, 0.0)
        terms += [term] * generator.choice([1, 1, 3])
    upper = [generator.choice([1.0, 1.0, -1.0]) for _ in range(d)]
    return make_packed(terms, [-1.0] * d, upper, [integer] * d)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_corner_is_the_largest_exact_one(epsilon: float) -> None:
    for seed in range(40):
        _, lowest = linear_sides(random.Random(seed), epsilon, integer=seed % 2 == 0)
        side = lowest.views
        corners = choose_maximizer(lowest)
        assert isinstance(corners, CornerEnumeration)
        exact = max(
            exact_sum(side, x) for x in itertools.product(*zip(side.lo, side.hi, strict=True))
        )
        assert corners.lower <= exact <= corners.upper
        assert corners.upper - corners.lower < 1e-8


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("tolerance", [0.1, 1e-4, 1e-7])
def test_no_point_is_above_a_summit(epsilon: float, tolerance: float) -> None:
    for seed in range(30):
        generator = random.Random(seed)
        highest, _ = linear_sides(generator, epsilon)
        side = highest.views
        summit, search = choose_maximizer(highest), BranchAndBound(highest)
        assert isinstance(summit, ConcaveMaximizer)
        for way in (summit, search):
            way.advance(tolerance, 100_000)
        assert 0 <= summit.upper - summit.lower <= tolerance
        sides = list(zip(side.lo, side.hi, strict=True))
        points = [[generator.uniform(*ends) for ends in sides] for _ in range(30)]
        assert max(exact_sum(side, point) for point in points) <= summit.upper
        assert search.lower <= summit.upper
        assert summit.lower <= search.upper


def test_a_climb_that_stalls_goes_on_as_a_search() -> None:
    highest, _ = linear_sides(random.Random(1), 1.0)
    summit, search = choose_maximizer(highest), BranchAndBound(highest)
    assert isinstance(summit, ConcaveMaximizer)

    stalled = np.array([-50.0]), np.array([100.0]), np.array([highest.views.lo])
    with mock.patch.object(entries, "climb", return_value=stalled):
        summit.advance(1e-4, 100_000)
    search.advance(1e-4, 100_000)
    assert (summit.lower, summit.upper) == (search.lower, search.upper)
    assert summit.nodes == search.nodes + 1


def test_what_is_clipped_or_too_steep_is_searched() -> None:
    for epsilon, weight in ((1.0, 1.01), (40.0, 1.0)):
        term = ScoreTerm(Link.CLIPPED, epsilon, (weight,), 0.0, 0.0)
        highest, lowest = make_packed([term], [-1.0], [1.0])
        assert isinstance(choose_maximizer(highest), BranchAndBound)
        assert isinstance(choose_maximizer(lowest), BranchAndBound)


def test_integers_have_no_summit_but_corners() -> None:
    highest, lowest = linear_sides(random.Random(3), 1.0, integer=True)
    assert isinstance(choose_maximizer(highest), BranchAndBound)
    assert isinstance(choose_maximizer(lowest), CornerEnumeration)
