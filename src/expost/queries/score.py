"""An affine score, as it is written: weights by name or by position, and an intercept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.domains import Box, FiniteSet
from expost.errors import InvalidInput, at
from expost.queries.aligned_score import BoxScore, SetScore
from expost.reading import array, double, each, members, text

__all__ = ["Score", "WeightsLike", "read_score", "weights_from_json"]

WeightsLike = Mapping[str, float] | Sequence[float]


@dataclass(frozen=True, slots=True)
class Score:
    """intercept + Σ weight·coordinate, not yet aligned with the coordinates of a domain."""

    names: tuple[str, ...] | None
    weights: tuple[float, ...]
    intercept: float

    def __str__(self) -> str:
        return f"{len(self.weights)} weight{'s' if len(self.weights) > 1 else ''}"

    def tree(self) -> dict[str, Any]:
        """The JSON shape, with numbers as doubles."""
        weights: Any = list(self.weights)
        if self.names is not None:
            weights = dict(zip(self.names, self.weights, strict=True))
        return {"weights": weights, "intercept": self.intercept}

    def on_box(self, box: Box) -> BoxScore:
        return BoxScore(self._aligned(box.names, len(box.sides)), self.intercept, box)

    def on_set(self, domain: FiniteSet) -> SetScore:
        names = domain.names or ("value",)
        weights = self._aligned(names, len(names))
        for index, value in enumerate(domain.values):
            if isinstance(value, str):
                raise InvalidInput(f"a score needs numbers, and values[{index}] is a label")
        rows = np.array(domain.values, dtype=np.float64).reshape(len(domain), len(names))
        kind = "values" if domain.names is None else "rows"
        return SetScore(weights, self.intercept, np.ascontiguousarray(rows.T), names, kind)

    def _aligned(self, names: tuple[str, ...] | None, size: int) -> tuple[float, ...]:
        with at("weights"):
            if self.names is None:
                if names is not None:
                    raise InvalidInput(f"must name the coordinates: {', '.join(names)}")
                if len(self.weights) != size:
                    raise InvalidInput(f"{len(self.weights)} weights for {size} coordinates")
                return self.weights
            if names is None:
                raise InvalidInput("must be a list: the coordinates of this box have no names")
            for name in self.names:
                if name not in names:
                    known = ", ".join(names)
                    raise InvalidInput(f"the domain has no such coordinate; it has {known}", name)
            by_name = dict(zip(self.names, self.weights, strict=True))
            return tuple(by_name.get(name, 0.0) for name in names)


def read_score(weights: WeightsLike, intercept: float) -> Score:
    """A score as a person writes it."""
    names: tuple[str, ...] | None = None
    if isinstance(weights, Mapping):
        with at("weights"):
            names = tuple(text(name) for name in weights)
        values = []
        for name, weight in weights.items():
            with at(f"weights.{name}"):
                values.append(double(weight))
    else:
        values = each(weights, double, "weights")
    if not values:
        raise InvalidInput("must not be empty", "weights")
    with at("intercept"):
        return Score(names, tuple(values), double(intercept))


def weights_from_json(value: Any) -> Any:
    """The weights of a file: an object or a list, whose entries are read later."""
    with at("weights"):
        return array(value) if isinstance(value, list) else members(value, optional=None)
