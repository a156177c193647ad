"""Random transcripts over boxes with categories; box_cases.py has those without."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import mpmath
import numpy as np

import expost as xp
from expost.domains import Categories
from support import oracles
from support.box_cases import rounded_down

Combination = dict[int, str]
"""The category of every coordinate that has some."""

Person = tuple[Combination, tuple[float, ...]]
"""Categories, and all the other coordinates."""


@dataclass(frozen=True)
class Question:
    """A query by its weights, an entry per coordinate, and whether the response is the high one."""

    kind: str
    weights: list[Any]
    intercept: float
    epsilon: str
    high: bool

    @property
    def query(self) -> xp.queries.Query:
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

    def without(self, combination: Combination) -> oracles.OneBit:
        """The same where the categories are known, as a query about the other coordinates."""
        intercept, weights = Fraction(self.intercept), []
        for j, weight in enumerate(self.weights):
            if j in combination:
                intercept += Fraction(weight.get(combination[j], 0))
            else:
                weights.append(weight)
        ends = (Fraction(-2), Fraction(2)) if self.kind == "linear" else None
        return oracles.OneBit(
            tuple(weights), float(intercept), ends, Fraction(self.epsilon), self.high,
            self.kind == "probit",
        )  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A transcript over a box with categories."""

    box: xp.Box
    questions: tuple[Question, ...]

    @cached_property
    def transcript(self) -> xp.Transcript:
        transcript = xp.Transcript(self.box)
        for ask in self.questions:
            query = ask.query
            transcript = transcript.add(query, query.on(self.box).responses[ask.high])
        return transcript

    @property
    def spent(self) -> Fraction:
        return sum((Fraction(ask.epsilon) for ask in self.questions), Fraction(0))

    def combinations(self) -> Iterator[Combination]:
        sides = enumerate(self.box.sides)
        labels = {j: side.labels for j, side in sides if isinstance(side, Categories)}
        for chosen in itertools.product(*labels.values()):
            yield dict(zip(labels, chosen, strict=True))

    def oracle(self, combination: Combination) -> oracles.OnBox:
        """As if those of these categories were a box of their own."""
        sides: list[Any] = [s for s in self.box.sides if not isinstance(s, Categories)]
        return oracles.OnBox(
            tuple(float(side.lower) for side in sides),
            tuple(float(side.upper) for side in sides),
            tuple(isinstance(side.lower, int) for side in sides),
            tuple(ask.without(combination) for ask in self.questions),
        )

    def extremes(self, generator: np.random.Generator, count: int = 60) -> tuple[Person, Person]:
        """Whose responses these are most and least likely to be, as far as a dense search finds."""
        candidates: list[tuple[mpmath.mpf, Person]] = []
        for combination in self.combinations():
            oracle = self.oracle(combination)
            for sign in (1, -1):
                point = np.empty(0)
                if oracle.lo:
                    point = oracle.extreme(generator, sign, count)
                coordinates = tuple(point.tolist())
                candidates.append((oracle.log_likelihood(coordinates), (combination, coordinates)))
        return max(candidates, key=lambda pair: pair[0])[1], min(
            candidates, key=lambda pair: pair[0]
        )[1]

    def formula_loss(self, highest: Person, lowest: Person) -> mpmath.mpf:
        """What the paper's formula says about two people."""
        above, below = (
            self.oracle(combination).log_likelihood(point)
            for combination, point in (highest, lowest)
        )
        # The intercept with a category in it was rounded once, by far less than this.
        return rounded_down(above - below) - mpmath.mpf(10) ** -12

    def sampled_loss(self, highest: Person, lowest: Person) -> mpmath.mpf:
        """What the weights say that are really sampled for two people."""
        ratio = Fraction(1)
        for exchange, ask in zip(self.transcript.exchanges, self.questions, strict=True):
            likelihood = exchange.query.on(self.box)
            above, below = (likelihood.pmf(self.locate(somebody)) for somebody in (highest, lowest))
            ratio *= above.probability(int(ask.high)) / below.probability(int(ask.high))
        return rounded_down(oracles.log(ratio))

    def locate(self, somebody: Person) -> tuple[float, ...]:
        combination, coordinates = somebody
        remaining = iter(coordinates)
        value = [
            combination[j] if j in combination else next(remaining)
            for j in range(len(self.box.sides))
        ]
        point = self.box.locate(value)
        assert point is not None
        return point


def random_study(generator: random.Random) -> Study:
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
    questions: list[Question] = []
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
        questions.append(Question(kind, weights, generator.gauss(0, 1), epsilon, high))
    return Study(xp.Box(sides), tuple(questions))
