"""Analysts, who choose the next query and know only the transcript."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import expost as xp
from expost.queries.tables.perturbation import Perturbation

__all__ = [
    "Halves",
    "Next",
    "Questions",
    "adversary",
    "bits",
    "coordinates",
    "cycle_questions",
    "draw_question",
    "in_turn",
    "roomiest",
]

Next = Callable[[xp.Odometer], xp.queries.Query]
Questions = Callable[[np.random.Generator], Iterator[xp.queries.Query]]
"""An endless stream of random ones."""

_FILTER = xp.BayesianFilter(epsilon=1)


@dataclass(frozen=True)
class Halves:
    """Whether the value is in some half of the values, drawn at random."""

    size: int
    epsilon: str = "0.1"

    def queries(self, generator: np.random.Generator) -> Iterator[xp.queries.Query]:
        while True:
            scores = np.zeros(self.size)
            scores[generator.permutation(self.size)[: self.size // 2]] = 1
            yield xp.perturbation(scores, epsilon=self.epsilon)


def bits(size: int) -> list[xp.queries.Query]:
    """Ask whether each binary digit of the value is 1."""
    values = np.arange(size)
    digits = range(size.bit_length() - 1)
    return [xp.perturbation((values >> digit & 1).astype(float), epsilon="0.1") for digit in digits]


def coordinates(dimension: int) -> list[xp.queries.Query]:
    """Ask about each coordinate of a point of a box."""
    rows = np.eye(dimension).tolist()
    return [xp.linear(row, range=(-1, 1), epsilon="0.1") for row in rows]


def draw_question(questions: Questions, generator: np.random.Generator) -> Next:
    """Ask another random question every time."""
    stream = questions(generator)
    return lambda odometer: next(stream)


def cycle_questions(count: int, questions: Questions, generator: np.random.Generator) -> Next:
    """Ask some random questions in turn."""
    return in_turn(list(itertools.islice(questions(generator), count)), generator)


def in_turn(queries: Sequence[xp.queries.Query], generator: np.random.Generator) -> Next:
    """Ask these questions in turn."""
    again = itertools.cycle(queries)
    return lambda odometer: next(again)


def roomiest(pool: int, questions: Questions, generator: np.random.Generator) -> Next:
    """Ask the random question with the smallest loss at worst, of a pool. Dry runs are free."""
    stream = questions(generator)

    def after(odometer: xp.Odometer, query: xp.queries.Query) -> float:
        return _FILTER.decide(odometer, query).loss_at_worst.upper

    def ask(odometer: xp.Odometer) -> xp.queries.Query:
        return min(itertools.islice(stream, pool), key=lambda query: after(odometer, query))

    return ask


def adversary(size: int, generator: np.random.Generator) -> Next:
    """Whether the value is in a set that drives the loss up as fast as can be.

    The likeliest value is set apart from the unlikeliest one, so that one response adds epsilon;
    and the second likeliest from the second unlikeliest one the other way round. Of all sets with
    such a response, none leaves a larger loss after the other one.
    """
    del generator  # it leaves nothing to chance

    def ask(odometer: xp.Odometer) -> xp.queries.Query:
        agreed = np.zeros(size)
        for exchange in odometer.transcript.exchanges:
            assert isinstance(exchange.query, Perturbation)
            agreed += exchange.query.scores == exchange.response
        scores = np.zeros(size)
        scores[np.argsort(-agreed, kind="stable")[::2]] = 1
        return xp.perturbation(scores, epsilon="0.1")

    return ask
