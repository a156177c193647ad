"""Distributions on a box: of points that are given, and what other points would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._types import Floats
from expost.domains import Box, FiniteSet
from expost.errors import InvalidInput, expect
from expost.estimation.atoms import Seen
from expost.knowledge import Samples
from expost.queries import BoxLikelihood, Query

__all__ = ["PointAtoms", "Points", "point_scores", "read_support"]


# The probabilities of all responses at all points.
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Points(FiniteSet):
    """Points of a box as the values of a distribution."""

    samples: Samples

    def __init__(self, samples: Samples) -> None:
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "names", samples.box.called("value"))
        object.__setattr__(self, "values", samples.points)

    def __repr__(self) -> str:
        return f"Points({len(self):,})"

    def tree(self) -> dict[str, Any]:
        raise InvalidInput("points are no domain of a file; their box is")


@dataclass(frozen=True, slots=True, eq=False)
class PointAtoms:
    """Points of a box, of which a distribution is a mixture."""

    samples: Samples

    def __len__(self) -> int:
        return len(self.samples)

    def seen(self, query: Query) -> Seen:
        likelihood, columns = query.on(self.samples.box), list(self.samples.columns)
        return Seen(
            len(likelihood.responses),
            lambda position: likelihood.logs(position, columns),
            lambda: _chances(likelihood, self.samples),
        )


def read_support(support: Any, box: Box) -> Samples:
    """The points on which a distribution is estimated: samples, or rows of them."""
    samples = support if isinstance(support, Samples) else Samples(box, support)
    if samples.box != box:
        raise InvalidInput("has another box than the answers")
    return samples


def point_scores(query: Query, samples: Samples) -> Floats:
    """The score that a query is about at each point: what its responses say on average."""
    expect(samples, Samples, "Samples")
    meaning, likelihood = query.meaning(samples.box), query.on(samples.box)
    worth = np.array([float(meaning.estimate(response)) for response in likelihood.responses])
    return np.asarray(worth @ _chances(likelihood, samples))


def _chances(likelihood: BoxLikelihood, samples: Samples) -> Floats:
    """The probability of every response at every point."""
    count, columns = len(likelihood.responses), list(samples.columns)
    if count * len(samples) > _LARGEST_TABLE:
        raise InvalidInput(f"{count:,} responses at {len(samples):,} points are too many")
    weights = [likelihood.weights(position, columns) for position in range(count)]
    rows = np.array([[float(weight) for weight in each] for each in weights])
    return np.asarray(rows / rows.sum(axis=0))
