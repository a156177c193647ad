"""An affine score as its author wrote it: weights by name or by position, and an intercept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._format import format_list, format_number
from expost.domains import (
    Attributes,
    Box,
    Categories,
    Domain,
    FiniteSet,
    Side,
    join_names,
    require_finite,
)
from expost.errors import InvalidInput, at, did_you_mean, read_at
from expost.files.reading import double, members, read_list, text
from expost.queries.scores._aligned import BoxScore, SetScore

__all__ = ["AffineScore", "WeightsLike", "read_score", "score_from_fields", "weights_from_json"]

_CATEGORIES = 4

#: The weight of a coordinate, or of each of its categories.
Weight = float | dict[str, float]

WeightLike = float | Mapping[str, float]
WeightsLike = Mapping[str, WeightLike] | Mapping[str, float] | Sequence[WeightLike]


@dataclass(frozen=True, slots=True)
class AffineScore:
    """intercept + Σ weight·coordinate, not yet aligned with the coordinates of a domain."""

    names: tuple[str, ...] | None
    weights: tuple[Weight, ...]
    intercept: float

    def __str__(self) -> str:
        size = sum(len(weight) if isinstance(weight, dict) else 1 for weight in self.weights)
        return f"{size} weight{'s' if size > 1 else ''}"

    @property
    def coordinates(self) -> str:
        """The coordinates that the score depends on, in words."""
        used = [j for j, weight in enumerate(self.weights) if weight not in (0.0, {})]
        if self.names is None:
            return f"{len(used)} of {len(self.weights)} coordinates"
        return format_list([self.names[j] for j in used]) or "no coordinate"

    def describe(self, domain: Domain) -> str:
        """Describe the coordinates and weights on a domain, the one with most effect first."""
        if isinstance(domain, Box):
            names = domain.names or tuple(f"[{j}]" for j in range(len(domain.sides)))
            weights = self._aligned(domain.names, len(domain.sides))
            effects = list(map(_effect, weights, domain.sides))
        else:
            values = require_finite(domain, "a score of attributes must name them with about")
            names = values.called("value")
            weights = self._aligned(names, len(names))
            widths = np.ptp(values.columns, axis=1).tolist()
            effects = [abs(_of_number(w)) * width for w, width in zip(weights, widths, strict=True)]
        order = sorted(range(len(names)), key=lambda j: -effects[j])
        descriptions = [f"{names[j]} ({_weight_text(weights[j])})" for j in order if effects[j] > 0]
        return format_list(descriptions) or "no coordinate"

    def tree(self) -> dict[str, Any]:
        """Return the JSON shape, with numbers as doubles."""
        weights: Any = list(self.weights)
        if self.names is not None:
            weights = dict(zip(self.names, self.weights, strict=True))
        return {"weights": weights, "intercept": self.intercept}

    def on(self, domain: Domain) -> BoxScore | SetScore:
        """Align the score with a domain whose values are points."""
        match domain:
            case FiniteSet():
                return self.on_set(domain)
            case Attributes():
                raise InvalidInput("a score of attributes must name them with about")
            case Box():
                return self.on_box(domain)
            case _:
                assert_never(domain)

    def on_box(self, box: Box) -> BoxScore:
        columns: list[float] = []
        aligned = self._aligned(box.names, len(box.sides))
        names = box.names or [f"[{index}]" for index in range(len(box.sides))]
        for name, side, weight in zip(names, box.sides, aligned, strict=True):
            with at(_join_location("weights", name)):
                if isinstance(side, Categories):
                    columns += _by_category(weight, side.labels)
                else:
                    columns.append(_of_number(weight))
        return BoxScore(tuple(columns), self.intercept, box)

    def on_set(self, domain: FiniteSet) -> SetScore:
        names = domain.called("value")
        weights = tuple(
            read_at(_join_location("weights", name), _of_number, weight)
            for name, weight in zip(names, self._aligned(names, len(names)), strict=True)
        )
        return SetScore(weights, self.intercept, domain)

    def _aligned(self, names: tuple[str, ...] | None, size: int) -> tuple[Weight, ...]:
        if self.names is None and names is None and len(self.weights) == size:
            return self.weights
        with at("weights"):
            if self.names is None:
                if names is not None:
                    raise InvalidInput(f"must name the coordinates: {join_names(names)}")
                raise InvalidInput(f"{len(self.weights)} weights for {size} coordinates")
            if names is None:
                raise InvalidInput("must be a list: the coordinates of this box have no names")
            by_name = dict(zip(self.names, self.weights, strict=True))
            if not by_name.keys() <= set(names):
                name = next(name for name in self.names if name not in names)
                shown = f"{join_names(names)}{did_you_mean(name, names)}"
                raise InvalidInput(f"the domain has no such coordinate; it has {shown}", name)
            return tuple([by_name.get(name, 0.0) for name in names])


def _effect(weight: Weight, side: Side) -> float:
    """Return how far a coordinate can move a score."""
    if isinstance(side, Categories):
        by_label = weight if isinstance(weight, dict) else {}
        columns = [by_label.get(label, 0.0) for label in side.labels]
        return max(columns) - min(columns)
    return abs(_of_number(weight)) * (side.upper - side.lower)


def _weight_text(weight: Weight) -> str:
    """Format a weight, or the largest weights of categories."""
    if not isinstance(weight, dict):
        return format_number(weight, 4)
    labels = sorted((label for label in weight if weight[label]), key=lambda k: -abs(weight[k]))
    shown = ", ".join(
        f"{format_number(weight[label], 4)} for {label}" for label in labels[:_CATEGORIES]
    )
    return f"{shown}, …" if len(labels) > _CATEGORIES else shown


def _join_location(prefix: str, name: str) -> str:
    return f"{prefix}{name}" if name.startswith("[") else f"{prefix}.{name}"


def _by_category(weight: Weight, labels: Sequence[str]) -> list[float]:
    if not isinstance(weight, dict):
        if weight == 0.0:
            return [0.0] * len(labels)
        raise InvalidInput(f"needs a weight for each category: {join_names(labels)}")
    allowed = set(labels)
    for label in weight:
        if label not in allowed:
            shown = f"{join_names(labels)}{did_you_mean(label, labels)}"
            raise InvalidInput(f"the domain has no such category; it has {shown}", label)
    return [weight.get(label, 0.0) for label in labels]


def _of_number(weight: Weight) -> float:
    if isinstance(weight, dict):
        raise InvalidInput("this coordinate has no categories")
    return weight


def _weight(weight: Any) -> Weight:
    # Most are strings, and isinstance(…, Mapping) takes longer than reading them.
    if isinstance(weight, str) or not isinstance(weight, Mapping):
        return double(weight)
    fields = members(dict(weight) if not isinstance(weight, dict) else weight, optional=None)
    result = {}
    for label, category_weight in fields.items():
        result[label] = read_at(text(label), double, category_weight)
    if not result:
        raise InvalidInput("must not be empty")
    return result


def read_score(weights: WeightsLike, intercept: float) -> AffineScore:
    """Read a score as its author wrote it."""
    names: tuple[str, ...] | None = None
    if isinstance(weights, Mapping):
        with at("weights"):
            names = tuple(map(text, weights))
        values = [read_at(f"weights.{name}", _weight, weight) for name, weight in weights.items()]
    else:
        such_as = 'weights by name, such as {"age": 2}, or a list'
        values = read_list(weights, _weight, "weights", such_as)
    if not values:
        raise InvalidInput("must not be empty", "weights")
    with at("intercept"):
        return AffineScore(names, tuple(values), double(intercept))


def weights_from_json(value: Any) -> Any:
    """Check that weights in a file are an object or a list; entries are read later."""
    return value if isinstance(value, list) else read_at("weights", members, value, optional=None)


def score_from_fields(fields: dict[str, Any]) -> AffineScore:
    """Read the score of a query in a file."""
    return read_score(weights_from_json(fields["weights"]), fields.get("intercept", 0))
