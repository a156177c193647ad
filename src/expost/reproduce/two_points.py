"""Two points of a box that prove how large a loss is, whatever any solver says.

They are looked for on a grid of hundredths, so that they can be printed as they are. What they
prove is worked out exactly, from the weights that are sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box
from expost.numbers import Nats
from expost.queries.likelihood import BoxLikelihood
from expost.terms.on_box import Link
from expost.transcript import Transcript

__all__ = ["Proof", "two_points"]

Points = NDArray[np.float64]

_STARTS = 60
_STEPS = 41  # twentieths between -1 and 1; then hundredths around the best of them
_NEAR = 0.4


@dataclass(frozen=True, slots=True)
class Proof:
    """The responses are likelier at one point than at the other by a factor of e^loss."""

    likelier: tuple[float, ...]
    unlikelier: tuple[float, ...]
    loss: float
    """In nats, rounded down: the realized loss is no less."""


def two_points(transcript: Transcript, seed: int) -> Proof:
    """The best two that were found, for logistic regressions on [-1, 1]^d."""
    generator = np.random.default_rng(seed)
    likelier, unlikelier = (_climb(_Landscape.of(transcript, sign), generator) for sign in (1, -1))
    ratio = _likelihood(transcript, likelier) / _likelihood(transcript, unlikelier)
    return Proof(likelier, unlikelier, Nats(ratio=ratio).enclosure.lower)


def _answers(transcript: Transcript) -> Iterator[tuple[BoxLikelihood, int]]:
    box = transcript.domain
    assert isinstance(box, Box)
    for exchange in transcript.exchanges:
        likelihood = exchange.query.on(box)
        position = likelihood.position(exchange.response)
        assert position is not None
        yield likelihood, position


def _likelihood(transcript: Transcript, point: tuple[float, ...]) -> Fraction:
    """Exactly."""
    return prod(
        (
            likelihood.pmf(point).probability(position)
            for likelihood, position in _answers(transcript)
        ),
        start=Fraction(1),
    )


@dataclass(frozen=True, slots=True)
class _Landscape:
    """The log-likelihood roughly, which is enough to search."""

    rows: Points
    offsets: Points
    steepness: Points
    sign: int

    @classmethod
    def of(cls, transcript: Transcript, sign: int) -> _Landscape:
        terms = [likelihood.term(position) for likelihood, position in _answers(transcript)]
        assert all(term.link is Link.LOGISTIC for term in terms)
        return cls(
            np.array([term.weights for term in terms]),
            np.array([term.offset for term in terms]),
            np.tanh(np.array([term.epsilon for term in terms]) / 4),
            sign,
        )

    def heights(self, points: Points) -> Points:
        z = points @ self.rows.T + self.offsets
        heights: Points = np.arctanh(self.steepness * np.tanh(z / 2)).sum(axis=-1)
        return self.sign * heights


def _climb(landscape: _Landscape, generator: np.random.Generator) -> tuple[float, ...]:
    """From many points at once, one coordinate after the other, as long as one of them gains."""
    points = np.round(generator.uniform(-1, 1, (_STARTS, landscape.rows.shape[1])), 2)
    best = landscape.heights(points)
    for reach in (2.0, _NEAR):
        before = np.full_like(best, -np.inf)
        while (best > before).any():
            before = best
            for j in range(points.shape[1]):
                points, best = _moved(landscape, points, j, reach)
    return tuple(points[best.argmax()].tolist())


def _moved(landscape: _Landscape, points: Points, j: int, reach: float) -> tuple[Points, Points]:
    """Every point with its coordinate j where it is best, among those within reach."""
    trials = np.repeat(points[:, None], _STEPS + 1, axis=1)
    shifts = np.linspace(-reach / 2, reach / 2, _STEPS)
    around = shifts + (points[:, j, None] if reach < 2 else 0)
    trials[:, 1:, j] = np.round(np.clip(around, -1, 1), 2)
    heights = landscape.heights(trials)
    chosen = np.arange(len(points)), heights.argmax(axis=1)
    return trials[chosen], heights[chosen]
