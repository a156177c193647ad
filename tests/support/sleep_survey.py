"""People with an age, a sex and a pressure, how long they sleep, and what a query says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp

Floats = NDArray[np.float64]

NAMES = ["age", "sex", "pressure"]
LOW, HIGH = np.array([10.0, 0, 50]), np.array([100.0, 1, 200])
NAMED = xp.Box(pressure=(50, 200), age=(10, 100), bmi=(10, 50), sex=xp.integers(0, 1))
PLAIN = xp.Box([(10, 100), xp.integers(0, 1), (50, 200)])


def people(size: int = 300, seed: int = 1) -> tuple[Floats, Floats]:
    """Points of the box, and the hours that belong to them."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(LOW, HIGH, (size, 3))
    points[:, 1] = generator.integers(0, 2, size)
    return points, points @ [0.08, 0.5, -0.07] + 12 + generator.normal(0, 0.5, size)


def scores(query: Any, domain: Any, points: Floats, names: list[str] | None) -> list[float]:
    """The score that the query has at points whose columns have these names."""
    own = query.score.on_box(domain)
    if names is not None:
        columns = dict(zip(names, points.T, strict=True))
        points = np.array([columns.get(name, np.zeros(len(points))) for name in domain.names]).T
    return [own.at(point) for point in points.tolist()]


def chances(query: Any, domain: xp.Box, points: Floats) -> list[float]:
    """How likely it is that subjects with these values give the second response of two."""
    likelihood = query.on(domain)
    places = [domain.locate(point) for point in points.tolist()]
    return [float(likelihood.pmf(place).probability(1)) for place in places]


def one_bit(shares: Any, epsilon: float) -> Any:
    """The probability of the upper response, by the formula of the guide."""
    grown = np.exp(epsilon)
    return (1 + np.asarray(shares) * (grown - 1)) / (grown + 1)
