"""An affine score, as it is written: weights by name or by position, and an intercept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from expost.domains import Attributes, Box, Categories, Domain, FiniteSet, some
from expost.errors import InvalidInput, at
from expost.files.reading import array, double, doubles, each, members, text
from expost.queries.scores.aligned import BoxScore, SetScore
from expost.queries.words import listed

__all__ = ["Score", "WeightsLike", "read_score", "weights_from_json"]

Weight = float | dict[str, float]
"""Of a coordinate, or of each of its categories."""

WeightLike = float | Mapping[str, float]
WeightsLike = Mapping[str, WeightLike] | Mapping[str, float] | Sequence[WeightLike]


@dataclass(frozen=True, slots=True)
class Score:
    """intercept + Σ weight·coordinate, not yet aligned with the coordinates of a domain."""

    names: tuple[str, ...] | None
    weights: tuple[Weight, ...]
    intercept: float

    def __str__(self) -> str:
        size = sum(len(weight) if isinstance(weight, dict) else 1 for weight in self.weights)
        return f"{size} weight{'s' if size > 1 else ''}"

    @property
    def coordinates(self) -> str:
        """Those that it depends on, in words."""
        used = [j for j, weight in enumerate(self.weights) if weight not in (0.0, {})]
        if self.names is None:
            return f"{len(used)} of {len(self.weights)} coordinates"
        return listed([self.names[j] for j in used]) or "no coordinate"

    def tree(self) -> dict[str, Any]:
        """The JSON shape, with numbers as doubles."""
        weights: Any = list(self.weights)
        if self.names is not None:
            weights = dict(zip(self.names, self.weights, strict=True))
        return {"weights": weights, "intercept": self.intercept}

    def on(self, domain: Domain) -> BoxScore | SetScore:
        """The score on a domain whose values are points."""
        score: BoxScore | SetScore = domain.asked(self)
        return score

    def on_attributes(self, domain: Attributes) -> SetScore:
        raise InvalidInput("a score of attributes has to say which it is about")

    def on_box(self, box: Box) -> BoxScore:
        columns: list[float] = []
        aligned = self._aligned(box.names, len(box.sides))
        if not box.groups and all(isinstance(weight, float) for weight in aligned):
            return BoxScore(cast("tuple[float, ...]", aligned), self.intercept, box)
        names = box.names or [f"[{index}]" for index in range(len(box.sides))]
        for name, side, weight in zip(names, box.sides, aligned, strict=True):
            with at(_below("weights", name)):
                if isinstance(side, Categories):
                    columns += _by_category(weight, side.labels)
                else:
                    columns.append(_of_number(weight))
        return BoxScore(tuple(columns), self.intercept, box)

    def on_set(self, domain: FiniteSet) -> SetScore:
        names = domain.called("value")
        aligned = self._aligned(names, len(names))
        weights = []
        for name, weight in zip(names, aligned, strict=True):
            with at(_below("weights", name)):
                weights.append(_of_number(weight))
        for index, value in enumerate(domain.values):
            if isinstance(value, str):
                raise InvalidInput(f"a score needs numbers, and values[{index}] is a label")
            if isinstance(value, tuple) and any(isinstance(x, str) for x in value):
                raise InvalidInput(
                    f"a score needs numbers, and there are labels among {some(names)}"
                )
        rows = np.array(domain.values, dtype=np.float64).reshape(len(domain), len(names))
        kind = "values" if domain.names is None else "rows"
        columns = np.ascontiguousarray(rows.T)
        return SetScore(tuple(weights), self.intercept, columns, names, kind)

    def _aligned(self, names: tuple[str, ...] | None, size: int) -> tuple[Weight, ...]:
        with at("weights"):
            if self.names is None:
                if names is not None:
                    raise InvalidInput(f"must name the coordinates: {some(names)}")
                if len(self.weights) != size:
                    raise InvalidInput(f"{len(self.weights)} weights for {size} coordinates")
                return self.weights
            if names is None:
                raise InvalidInput("must be a list: the coordinates of this box have no names")
            known = set(names)
            for name in self.names:
                if name not in known:
                    shown = some(names)
                    raise InvalidInput(f"the domain has no such coordinate; it has {shown}", name)
            by_name = dict(zip(self.names, self.weights, strict=True))
            return tuple(by_name.get(name, 0.0) for name in names)


def _below(place: str, name: str) -> str:
    return f"{place}{name}" if name.startswith("[") else f"{place}.{name}"


def _by_category(weight: Weight, labels: Sequence[str]) -> list[float]:
    if not isinstance(weight, dict):
        if weight == 0.0:
            return [0.0] * len(labels)
        raise InvalidInput(f"needs a weight for each category: {some(labels)}")
    known = set(labels)
    for label in weight:
        if label not in known:
            shown = some(labels)
            raise InvalidInput(f"the domain has no such category; it has {shown}", label)
    return [weight.get(label, 0.0) for label in labels]


def _of_number(weight: Weight) -> float:
    if isinstance(weight, dict):
        raise InvalidInput("this coordinate has no categories")
    return weight


def _weight(weight: Any) -> Weight:
    # Most are texts, and asking whether one is a Mapping takes longer than reading it.
    if isinstance(weight, str) or not isinstance(weight, Mapping):
        return double(weight)
    fields = members(dict(weight) if not isinstance(weight, dict) else weight, optional=None)
    result = {}
    for label, of_it in fields.items():
        with at(text(label)):
            result[label] = double(of_it)
    if not result:
        raise InvalidInput("must not be empty")
    return result


def read_score(weights: WeightsLike, intercept: float) -> Score:
    """A score as a person writes it."""
    names: tuple[str, ...] | None = None
    values: list[Weight] = []
    if (plain := doubles(weights)) is not None:
        values += plain
    elif isinstance(weights, Mapping):
        with at("weights"):
            names = tuple(text(name) for name in weights)
        for name, weight in weights.items():
            with at(f"weights.{name}"):
                values.append(_weight(weight))
    else:
        values = each(weights, _weight, "weights")
    if not values:
        raise InvalidInput("must not be empty", "weights")
    with at("intercept"):
        return Score(names, tuple(values), double(intercept))


def weights_from_json(value: Any) -> Any:
    """The weights of a file: an object or a list, whose entries are read later."""
    with at("weights"):
        return array(value) if isinstance(value, list) else members(value, optional=None)
