"""Predictions of fitted models: affine functions of columns, and the query about a prediction.

A step of a pipeline is a map: a function for each column that it makes. A model is one function.
Folding a pipeline is composing its functions, in exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, assert_never

from expost.domains import Attributes, Box, Categories, Domain, FiniteSet
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import double, read_list, text
from expost.numbers import ExactLike
from expost.queries.models._fitted_objects import fitted_attribute
from expost.queries.scores.linear import Linear, linear
from expost.queries.scores.logistic import Logistic, logistic
from expost.queries.scores.probit import Probit, probit

__all__ = [
    "Affine",
    "AffineMap",
    "Input",
    "ModelPrediction",
    "compose",
    "coordinate_names",
    "exact_doubles",
    "fitted_doubles",
    "single_column",
]

_range = range  # ``range`` is also an argument: the ends of a score


@dataclass(frozen=True, slots=True)
class ModelPrediction:
    """An affine score, or a curve of one that is a probability."""

    kind: Literal["linear", "logistic", "probit"]
    score: Affine
    #: The name of the model.
    name: str
    #: The argument that has the model, for errors.
    argument: str = "model"

    def query(
        self,
        domain: Domain,
        names: Sequence[str] | None,
        width: int,
        epsilon: ExactLike,
        range: Sequence[float] | None,
        clip: bool,
    ) -> Linear | Logistic | Probit:
        """Return the query about it; ``names`` are the coordinates, or None for positions."""
        weights, intercept = read_at(
            self.argument, _by_coordinate, self.score, names, width, domain
        )
        query: Linear | Logistic | Probit
        if self.kind == "linear":
            query = linear(weights, intercept=intercept, range=range, clip=clip, epsilon=epsilon)
        elif range is not None or clip:
            field_name = "clip" if range is None else "range"
            reason = f"is for linear queries, and a {self.name} becomes a {self.kind} one"
            raise InvalidInput(reason, field_name)
        else:
            family = logistic if self.kind == "logistic" else probit
            query = family(weights, intercept=intercept, epsilon=epsilon)
        self._check_fits(query, domain)
        return query

    def _check_fits(self, query: Linear | Logistic | Probit, domain: Domain) -> None:
        """Refuse a query that does not fit the domain now, not when it is asked."""
        match domain:
            case FiniteSet() | Box():
                query.on(domain)
            case Attributes():
                part = read_at(self.argument, domain.part, query.score.names or ())
                for name in part.about:
                    if len(domain[name].fractions) < len(domain[name].values):
                        raise InvalidInput(f"{name} has labels: {_NUMERIC_HINT}", "domain")
                query.on(part)
            case _:
                assert_never(domain)


_NUMERIC_HINT = (
    "of Attributes a model takes those of numbers, such as integers(0, 1); a Box has categories(…)"
)


def coordinate_names(
    fitted_names: Sequence[str] | None, features: Sequence[str] | None, domain: Domain, size: int
) -> list[str] | None:
    """Return the coordinate of each column; None if columns go by position."""
    plain = bool(domain.sides) and domain.names is None
    with at("features"):
        if features is None:
            names = None if fitted_names is None else list(fitted_names)
        elif fitted_names is not None:
            raise InvalidInput(f"the model has names: {', '.join(fitted_names)}; leave it out")
        else:
            names = read_list(features, text)
        if names is None and not plain:
            raise InvalidInput("the model was fitted without names; give them, in its order")
        if names is not None and plain:
            raise InvalidInput("the model has names for them, and this box has none")
        if names is not None and (len(names) != size or len(set(names)) < size):
            raise InvalidInput(f"must be {size} different names")
        return names


def _by_coordinate(
    score: Affine, names: Sequence[str] | None, width: int, domain: Domain
) -> tuple[Any, float]:
    """Return weights as a query has them: of coordinates, and of categories of a coordinate."""
    by_coordinate: dict[Any, Fraction] = {}
    encoded: dict[Any, dict[str, Fraction]] = {}
    for source, weight in score.weights.items():
        key: Any = source.column if names is None else names[source.column]
        if source.label is None and names is not None:
            key, source = _split_indicator(key, source, domain)
        if source.label is None:
            by_coordinate[key] = weight
            continue
        # Of these categories, those without a column have weight 0.
        by_label = encoded.setdefault(key, {})
        for label in source.labels:
            by_label.setdefault(label, Fraction(0))
        by_label[source.label] += weight
    for key in by_coordinate.keys() & encoded.keys():
        raise InvalidInput(f"takes {key!r} both as a number and by its categories")
    try:
        result: dict[Any, Any] = {key: float(weight) for key, weight in by_coordinate.items()}
        for key, by_label in encoded.items():
            result[key] = _of_labels(by_label, _labels_of(key, domain))
        intercept = float(score.constant)
    except OverflowError:
        raise InvalidInput("its score is too large for a double") from None
    if names is None:
        return [result.get(index, 0.0) for index in _range(width)], intercept
    return result, intercept


def _of_labels(weights: Mapping[str, Fraction], labels: tuple[str, ...]) -> dict[str, float]:
    for label in labels:
        if label not in weights:
            raise InvalidInput(f"was fitted without the category {label!r} of the domain")
    return {label: float(weights[label]) for label in labels}


def _labels_of(key: Any, domain: Domain) -> tuple[str, ...]:
    coordinate_keys = _range(len(domain.sides)) if domain.names is None else domain.names
    side = dict(zip(coordinate_keys, domain.sides, strict=False)).get(key)
    if isinstance(side, Categories):
        return side.labels
    hint = f"; {_NUMERIC_HINT}" if domain.kinds else ""
    raise InvalidInput(f"encodes {key!r}, which has no categories in the domain{hint}")


def _split_indicator(name: str, source: Input, domain: Domain) -> tuple[str, Input]:
    """Split a column such as ``region_north`` into a coordinate and a category."""
    if domain.names is not None and name not in domain.names:
        for coordinate, side in zip(domain.names, domain.sides, strict=False):
            label = name.removeprefix(f"{coordinate}_")
            if isinstance(side, Categories) and label != name and label in side.labels:
                return coordinate, Input(source.column, label, side.labels)
    return name, source


class Input(NamedTuple):
    """A column, or an indicator of one of the categories that an encoder knows."""

    column: int
    label: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ weight·input."""

    weights: Mapping[Input, Fraction]
    constant: Fraction = Fraction(0)

    def of(self, columns: Sequence[Affine]) -> Affine:
        """Compose with columns that are themselves functions of inputs."""
        weights: dict[Input, Fraction] = {}
        constant = self.constant
        for source, weight in self.weights.items():
            inner = columns[source.column]
            if source.label is not None:
                inner = single_column(source._replace(column=_find_unchanged_column(inner)))
            constant += weight * inner.constant
            for key, factor in inner.weights.items():
                weights[key] = weights.get(key, Fraction(0)) + weight * factor
        return Affine(weights, constant)

    def times(self, factor: Fraction) -> Affine:
        weights = {key: factor * weight for key, weight in self.weights.items()}
        return Affine(weights, factor * self.constant)


#: The output columns of a step, as functions of its input columns.
AffineMap = Sequence[Affine]


def single_column(source: Input) -> Affine:
    """Return the function that is just this input."""
    return Affine({source: Fraction(1)})


def compose(first: AffineMap, second: AffineMap) -> AffineMap:
    """Apply the second map to the columns of the first."""
    return [function.of(first) for function in second]


def exact_doubles(entries: Iterable[Any], field_name: str) -> list[Fraction]:
    return [Fraction(double_) for double_ in read_list(entries, double, field_name)]


def fitted_doubles(step: Any, name: str) -> list[Fraction]:
    """Return the numbers of an attribute that fitting a step has set."""
    return exact_doubles(fitted_attribute(step, name), name)


def _find_unchanged_column(function: Affine) -> int:
    """Return the column of an unchanged function: only such a column has categories."""
    (source, *further) = function.weights or [Input(-1)]
    if further or function != single_column(source) or source.label is not None:
        raise InvalidInput("changes a column before its categories are encoded")
    return source.column
