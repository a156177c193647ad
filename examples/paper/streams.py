"""The queries of the paper's experiments: endless streams of random regressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from expost.domains import Box
from expost.queries import Query, linear, logistic

__all__ = ["LINEAR", "SMOOTH", "STEEP", "STREAMS", "Stream"]


@dataclass(frozen=True, slots=True)
class Stream:
    """Regressions on [-1, 1]^d with parameters that are uniform on [-scale, scale].

    Linear ones are normalized to ‖θ‖₁ = 1, so that their scores are within [-1, 1].
    """

    name: str
    number: int
    """Part of the seed, so that no two streams share their random numbers."""
    link: Literal["linear", "logistic"]
    scale: float
    dimension: int = 9
    epsilon: str = "0.1"

    @property
    def box(self) -> Box:
        """The domain of the queries."""
        return Box([(-1, 1)] * self.dimension)

    def queries(self, generator: np.random.Generator) -> Iterator[Query]:
        """Random regressions without end."""
        while True:
            theta = generator.uniform(-self.scale, self.scale, self.dimension + 1)
            if self.link == "linear":
                theta /= np.abs(theta).sum()
            intercept, *weights = theta.tolist()
            if self.link == "linear":
                yield linear(weights, intercept=intercept, range=(-1, 1), epsilon=self.epsilon)
            else:
                yield logistic(weights, intercept=intercept, epsilon=self.epsilon)


LINEAR = Stream("linear", 1, "linear", 1)
STEEP = Stream("logistic.steep", 2, "logistic", 10)
"""The parameters that the paper prints."""
SMOOTH = Stream("logistic.smooth", 3, "logistic", 1)
"""The parameters that reproduce the paper's figures."""

STREAMS = {stream.name: stream for stream in (LINEAR, STEEP, SMOOTH)}
