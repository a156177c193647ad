"""Coordinates with categories: as if every combination of categories were a box of its own."""

from __future__ import annotations

import itertools
import random
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from support import oracles
from support.box_cases import complaints
from support.category_box_cases import random_study

SEEDS = range(120)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_is_that_of_the_two_categories_most_apart(seed: int) -> None:
    study = random_study(random.Random(seed))
    loss = xp.realized_loss(study.transcript, gap=1e-3)
    assert not complaints(study, loss, seed, count=60)
    assert loss.upper - loss.lower <= 1.001e-3
    # The search is dense, and there are few coordinates: it comes close.
    with mpmath.workdps(40):
        pair = study.extremes(np.random.default_rng(seed))
        assert study.formula_loss(*pair) >= loss.lower - 0.02


def test_numbers_between_categories_are_nobody() -> None:
    labels = ["north", "south", "islands"]
    box = xp.Box([xp.categories(*labels)])
    query = xp.logistic([{"north": -3, "south": 3}], epsilon="1")
    other = xp.logistic([{"north": 3, "south": -3}], epsilon="1")
    loss = xp.realized_loss(xp.Transcript(box).add(query, 1).add(other, 1), gap=1e-6)
    products = []
    for label in labels:
        location = box.locate([label])
        assert location is not None
        pmfs = query.on(box).pmf(location), other.on(box).pmf(location)
        products.append(pmfs[0].probability(1) * pmfs[1].probability(1))
    assert loss.lower <= oracles.log(max(products) / min(products)) <= loss.upper
    # With numbers from 0 to 1 in their place, one could be both in the north and not in the south.
    square = xp.Transcript(xp.Box([(0, 1), (0, 1)]))
    square = square.add(xp.logistic([-3, 3], epsilon="1"), 1)
    assert loss.upper < xp.realized_loss(square.add(xp.logistic([3, -3], epsilon="1"), 1)).upper


def test_a_category_alone_changes_nothing() -> None:
    with_it = xp.Box(age=(0, 1), planet=xp.categories("earth"))
    query = xp.logistic({"age": 2, "planet": {"earth": 0.5}}, epsilon="1")
    without = xp.logistic({"age": 2}, intercept=0.5, epsilon="1")
    first = xp.realized_loss(xp.Transcript(with_it).add(query, 1), gap=1e-6)
    second = xp.realized_loss(xp.Transcript(xp.Box(age=(0, 1))).add(without, 1), gap=1e-6)
    assert first.lower <= second.upper
    assert second.lower <= first.upper


def test_the_order_of_coordinates_makes_no_difference() -> None:
    weights: dict[str, Any] = {
        "age": 0.03,
        "region": {"north": 1.0, "south": -1.0},
        "sex": {"f": 0.2},
    }
    sides = {
        "age": (0, 90),
        "region": xp.categories("north", "south"),
        "sex": xp.categories("f", "m"),
    }
    losses = {
        xp.realized_loss(xp.Transcript(xp.Box(**dict(order))).add(xp.probit(weights, epsilon=2), 0))
        for order in itertools.permutations(sides.items())
    }
    assert len(losses) == 1


def test_filters_decide_and_find_the_largest_epsilon() -> None:
    box = xp.Box(age=(0, 90), region=xp.categories("north", "south", "islands"))
    query = xp.logistic({"age": 0.05, "region": {"north": 2, "islands": -2}}, epsilon="1")
    odometer = xp.Odometer(xp.Transcript(box).add(query, 1))
    decision = xp.BayesianFilter(epsilon="1.5").decide(odometer, query)
    assert not decision.accepted
    assert not decision.undecided
    assert decision.largest_epsilon is not None
    fits = xp.logistic(query.score.tree()["weights"], epsilon=decision.largest_epsilon)
    assert xp.BayesianFilter(epsilon="1.5").decide(odometer, fits).accepted
