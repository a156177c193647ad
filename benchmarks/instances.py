"""Seeded optimization problems: queries about a secret in a box, with responses.

Every response is one bit. With it folded in, its likelihood is (1 + (e^ε - 1)·link(v)) / (e^ε + 1)
for an affine v = row·x + offset, where the link is the logistic function or clips to [0, 1]. Peers
are given the rows; we are given queries and responses. The constant cancels in a loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import expost as xp

__all__ = ["Array", "Instance", "Question", "draw", "health_table", "replay"]

Array = NDArray[np.float64]
Exchanges = tuple[xp.Box, list[tuple[xp.queries.Query, Any]]]
Link = Literal["logistic", "linear"]


@dataclass(frozen=True)
class Question:
    """One query; without ends, those of a linear one are its range on the box."""

    link: Link
    weights: tuple[float, ...]
    intercept: float
    epsilon: str
    ends: tuple[float, float] | None = None

    def query(self) -> xp.queries.Query:
        """A new one, which nothing has been worked out from yet."""
        if self.link == "logistic":
            return xp.logistic(self.weights, intercept=self.intercept, epsilon=self.epsilon)
        return xp.linear(
            self.weights,
            intercept=self.intercept,
            range=self.ends,
            clip=self.ends is not None,
            epsilon=self.epsilon,
        )


@dataclass(frozen=True, eq=False)
class Instance:
    """A transcript, and the same as plain arrays. ``gap`` is the tolerance on its loss."""

    family: str
    questions: tuple[Question, ...]
    responses: tuple[int, ...]
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
    gap: float

    def __len__(self) -> int:
        return len(self.questions)

    def first(self, n: int) -> Instance:
        """The instance as it was after n responses."""
        return replace(self, questions=self.questions[:n], responses=self.responses[:n])

    @property
    def box(self) -> xp.Box:
        sides = zip(self.lower.tolist(), self.upper.tolist(), self.integer, strict=True)
        return xp.Box(
            [
                xp.integers(int(low), int(high)) if is_integer else (low, high)
                for low, high, is_integer in sides
            ]
        )

    def exchanges(self) -> Exchanges:
        """Build the box, and queries with responses."""
        box = self.box
        queries = [question.query() for question in self.questions]
        answers = zip(queries, self.responses, strict=True)
        return box, [(query, query.on(box).responses[answer]) for query, answer in answers]

    def transcript(self) -> xp.Transcript:
        """Build the transcript."""
        return replay(self.exchanges())

    @cached_property
    def growth(self) -> Array:
        """e^ε - 1, by term."""
        return np.expm1([float(question.epsilon) for question in self.questions])

    @cached_property
    def logistic(self) -> NDArray[np.bool_]:
        return np.array([question.link == "logistic" for question in self.questions])

    @cached_property
    def affine(self) -> tuple[Array, Array]:
        """Rows and offsets of v."""
        forms = [
            _affine(question, response, self.lower, self.upper)
            for question, response in zip(self.questions, self.responses, strict=True)
        ]
        return np.array([row for row, _ in forms]), np.array([offset for _, offset in forms])

    @cached_property
    def ranges(self) -> tuple[Array, Array]:
        """The least and the largest v on the box."""
        rows, offsets = self.affine
        ends = rows * self.lower, rows * self.upper
        return np.minimum(*ends).sum(1) + offsets, np.maximum(*ends).sum(1) + offsets

    def shares(self, v: Array) -> Array:
        """The links."""
        return np.where(self.logistic, np.exp(-np.logaddexp(0, -v)), np.clip(v, 0, 1))

    def log_likelihood(self, points: Array) -> Array:
        """Up to a constant, at points that are the last axis."""
        rows, offsets = self.affine
        logs: Array = np.log1p(self.growth * self.shares(points @ rows.T + offsets))
        return np.asarray(logs.sum(-1))


def replay(exchanges: Exchanges) -> xp.Transcript:
    """A new transcript of queries that may have been used before."""
    box, pairs = exchanges
    transcript = xp.Transcript(box)
    for query, response in pairs:
        transcript = transcript.add(query, response)
    return transcript


def _affine(question: Question, response: int, lower: Array, upper: Array) -> tuple[Array, float]:
    row, offset = np.array(question.weights), question.intercept
    if question.link == "logistic":
        return (row, offset) if response else (-row, -offset)
    if question.ends is None:
        centre = offset + float(row @ (lower + upper)) / 2
        reach = float(abs(row) @ (upper - lower)) / 2
        low, high = centre - reach, centre + reach
    else:
        low, high = question.ends
    row, offset = row / (high - low), (offset - low) / (high - low)
    return (row, offset) if response else (-row, 1 - offset)


def draw(
    family: str, link: Link, *, n: int, d: int, scale: float, seed: int, gap: float = 0.01
) -> Instance:
    """Random queries of ε = 0.1 over [-1, 1]^d, answered by a random secret."""
    generator = np.random.default_rng([seed, n, d])
    parameters = generator.uniform(-scale, scale, (n, d + 1))
    questions = tuple(
        Question(link, tuple(row[:-1].tolist()), float(row[-1]), "0.1") for row in parameters
    )

    def answered(responses: Iterable[int]) -> Instance:
        low, high = np.full(d, -1.0), np.full(d, 1.0)
        return Instance(family, questions, tuple(responses), low, high, low > high, gap)

    ones = answered([1] * n)
    rows, offsets = ones.affine
    shares = ones.shares(rows @ generator.uniform(-1, 1, d) + offsets)
    probabilities = (1 + ones.growth * shares) / (2 + ones.growth)
    return answered(np.where(generator.random(n) < probabilities, 1, 0).tolist())


def health_table() -> list[Instance]:
    """The sixteen outcomes of the paper's regressions on age, sex, pressure and body-mass index."""
    questions = (
        Question("logistic", (-0.059, -1.456, -0.0134, 0.0), 6.177, "1"),
        Question("logistic", (0.0761, 0.0952, 0.0, 0.0163), -7.989, "1"),
        Question("logistic", (0.0491, 0.0, -0.0091, 0.1039), -5.07, "1"),
        Question("linear", (0.0855, 0.4617, -0.07, 0.0), 12.323, "1", (0.0, 12.0)),
    )
    low, high = np.array([10.0, 0, 50, 10]), np.array([100.0, 1, 200, 50])
    whole = np.array([False, True, False, False])
    return [
        Instance("health", questions, responses, low, high, whole, 0.001)
        for responses in product((0, 1), repeat=4)
    ]
