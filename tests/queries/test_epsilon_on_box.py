"""The worst case of a query on a box, without a search, against all pairs of many points."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import expost as xp
from expost.numbers import Nats
from support import integer_boxes


@pytest.mark.parametrize("seed", range(60))
def test_it_is_that_of_the_points_of_a_box_of_integers(seed: int) -> None:
    generator = random.Random(f"epsilon/{seed}")
    ranges = tuple(
        (low, low + generator.randint(1, 3)) for low in generator.choices(range(-2, 2), k=2)
    )
    query = integer_boxes.some_query(generator, ranges)
    case = integer_boxes.DecisionCase(ranges, (), query, xp.BayesianFilter(1), 1)
    exact = query.on(case.points).epsilon
    bound = xp.loss.worst_case_loss(query, case.box)
    assert bound.lower <= exact.enclosure.upper
    assert exact.enclosure.lower <= bound.upper
    assert bound.width < 1e-9


@pytest.mark.parametrize("epsilon", ["0.01", "1", "8", "30"])
@pytest.mark.parametrize("curve", [xp.logistic, xp.probit])
def test_roundings_of_the_curve_stay_inside(
    curve: Callable[..., xp.queries.Query], epsilon: str
) -> None:
    """Neighboring doubles, where the share in doubles goes down while the score goes up."""
    start = 0.731
    near = [start]
    for _ in range(200):
        near.append(float(np.nextafter(near[-1], 2)))
    query = curve([1.0], epsilon=epsilon)
    box = xp.Box([(near[0], near[-1])])
    likelihood = query.on(box)
    bound = xp.loss.worst_case_loss(query, box)
    for position in (0, 1):
        weights = likelihood.weights(position, [np.array(near)]).tolist()
        highest, lowest = max(weights), min(weights)
        assert Nats(ratio=Fraction(highest, lowest)).enclosure.lower <= bound.upper
