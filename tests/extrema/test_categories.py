"""Coordinates with categories: as if every combination of categories were a box of its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
import oracles
from boxes import rounded_down
from expost.domains import Categories

SEEDS = range(120)


@dataclass(frozen=True)
class Asked:
    """A query by its weights, an entry per coordinate, and whether the response is the high one."""

    kind: str
    weights: list[Any]
    intercept: float
    epsilon: str
    high: bool

    @property
    def query(self) -> xp.Query:
        if self.kind == "linear":
            return xp.linear(
                self.weights,
                intercept=self.intercept,
                range=(-2, 2),
                clip=True,
                epsilon=self.epsilon,
            )
        regression = xp.logistic if self.kind == "logistic" else xp.probit
        return regression(self.weights, intercept=self.intercept, epsilon=self.epsilon)

    def without(self, combination: dict[int, str]) -> oracles.OneBit:
        """The same where the categories are known, as a query about the other coordinates."""
        intercept, weights = Fraction(self.intercept), []
        for j, weight in enumerate(self.weights):
            if j in combination:
                intercept += Fraction(weight.get(combination[j], 0))
            else:
                weights.append(weight)
        ends = (Fraction(-2), Fraction(2)) if self.kind == "linear" else None
        # What is lost here is far below the tolerance of the comparison.
        return oracles.OneBit(
            tuple(weights), float(intercept), ends, Fraction(self.epsilon), self.high,
            self.kind == "probit",
        )  # fmt: skip


def some_study(generator: random.Random) -> tuple[xp.Box, list[Asked]]:
    sides: list[Any] = []
    for _ in range(generator.randint(1, 4)):
        shape = generator.random()
        if shape < 0.5:
            count = generator.choice([1, 2, 2, 3, 5])
            sides.append(xp.categories(*(f"c{k}" for k in range(count))))
        elif shape < 0.65:
            sides.append(xp.integers(0, generator.choice([1, 3])))
        else:
            start = generator.uniform(-2, 1)
            sides.append((start, start + generator.choice([0, 0.5, 3])))
    asked: list[Asked] = []
    steepness = generator.choice([0.3, 1, 4])
    for _ in range(generator.choice([1, 2, 4, 7])):
        weights = [
            {label: generator.gauss(0, 1) * steepness for label in side.labels}
            if isinstance(side, Categories)
            else generator.choice([0, 1, 1]) * generator.gauss(0, 1) * steepness
            for side in sides
        ]
        kind = generator.choice(["logistic", "logistic", "linear", "probit"])
        epsilon = generator.choice(["0.1", "1", "2"])
        high = generator.random() < 0.5
        asked.append(Asked(kind, weights, generator.gauss(0, 1), epsilon, high))
    return xp.Box(sides), asked


def transcript_of(box: xp.Box, asked: list[Asked]) -> xp.Transcript:
    transcript = xp.Transcript(box)
    for ask in asked:
        transcript = transcript.add(ask.query, ask.query.on(box).responses[ask.high])
    return transcript


def by_combination(box: xp.Box) -> Iterator[dict[int, str]]:
    labels = {j: side.labels for j, side in enumerate(box.sides) if isinstance(side, Categories)}
    for chosen in itertools.product(*labels.values()):
        yield dict(zip(labels, chosen, strict=True))


def found(box: xp.Box, asked: list[Asked], seed: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The largest and the smallest log-likelihood that a dense search finds in any combination."""
    values: list[mpmath.mpf] = []
    for combination in by_combination(box):
        numbers: list[Any] = [side for j, side in enumerate(box.sides) if j not in combination]
        oracle = oracles.OnBox(
            tuple(float(side.lower) for side in numbers),
            tuple(float(side.upper) for side in numbers),
            tuple(isinstance(side.lower, int) for side in numbers),
            tuple(ask.without(combination) for ask in asked),
        )
        for sign in (1, -1):
            point = np.empty(0)
            if numbers:
                point = oracle.extreme(np.random.default_rng(seed), sign, 60)
            values.append(oracle.log_likelihood(point.tolist()))
    return max(values), min(values)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_is_that_of_the_two_categories_most_apart(seed: int) -> None:
    box, asked = some_study(random.Random(seed))
    transcript = transcript_of(box, asked)
    loss = xp.realized_loss(transcript, gap=1e-3)
    assert loss.upper - loss.lower <= 1.001e-3
    with mpmath.workdps(40):
        highest, lowest = found(box, asked, seed)
        assert rounded_down(highest - lowest) <= loss.upper + 1e-12
        # The search is dense, and there are few coordinates: it comes close.
        assert highest - lowest >= loss.lower - 0.02


def test_numbers_between_categories_are_nobody() -> None:
    labels = ["north", "south", "islands"]
    box = xp.Box([xp.categories(*labels)])
    one = xp.logistic([{"north": -3, "south": 3}], epsilon="1")
    other = xp.logistic([{"north": 3, "south": -3}], epsilon="1")
    loss = xp.realized_loss(xp.Transcript(box).add(one, 1).add(other, 1), gap=1e-6)
    products = []
    for label in labels:
        place = box.locate([label])
        assert place is not None
        pmfs = one.on(box).pmf(place), other.on(box).pmf(place)
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
