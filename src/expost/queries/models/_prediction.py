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
from expost.errors import InvalidInput, at
from expost.files.reading import double, read_list, text
from expost.numbers import ExactLike
from expost.queries.scores.linear import Linear, linear
from expost.queries.scores.logistic import Logistic, logistic
from expost.queries.scores.probit import Probit, probit

__all__ = [
    "Affine",
    "AffineMap",
    "Input",
    "ModelPrediction",
    "after",
    "column",
    "coordinate_names",
    "exact",
]

_range = range  # which is also what people call the ends of a score


@dataclass(frozen=True, slots=True)
class ModelPrediction:
    """An affine score, or a curve of one that is a probability."""

    kind: Literal["linear", "logistic", "probit"]
    score: Affine
    name: str
    """What the model is called."""
    argument: str = "model"
    """Where it was given, for errors."""

    def query(
        self,
        domain: Domain,
        names: Sequence[str] | None,
        width: int,
        epsilon: ExactLike,
        range: Sequence[float] | None,
        clip: bool,
    ) -> Linear | Logistic | Probit:
        """The query about it, if these are the coordinates of the columns; None goes by place."""
        with at(self.argument):
            weights, intercept = _by_coordinate(self.score, names, width, domain)
        query: Linear | Logistic | Probit
        if self.kind == "linear":
            query = linear(weights, intercept=intercept, range=range, clip=clip, epsilon=epsilon)
        elif range is not None or clip:
            place = "clip" if range is None else "range"
            reason = f"is for linear queries, and a {self.name} becomes a {self.kind} one"
            raise InvalidInput(reason, place)
        else:
            family = logistic if self.kind == "logistic" else probit
            query = family(weights, intercept=intercept, epsilon=epsilon)
        self._check_fits(query, domain)
        return query

    def _check_fits(self, query: Linear | Logistic | Probit, domain: Domain) -> None:
        """Refuse now a query that does not fit the domain, and not when it is asked."""
        match domain:
            case FiniteSet() | Box():
                query.on(domain)
            case Attributes():
                with at(self.argument):
                    part = domain.part(query.score.names or ())
                for name in part.about:
                    if len(domain[name].numbers) < len(domain[name].values):
                        raise InvalidInput(f"{name} has labels: {_NUMBERS}", "domain")
                query.on(part)
            case _:
                assert_never(domain)


_NUMBERS = (
    "of Attributes a model takes those of numbers, such as integers(0, 1); a Box has categories(…)"
)


def coordinate_names(
    known: Sequence[str] | None, given: Sequence[str] | None, domain: Domain, size: int
) -> list[str] | None:
    """The coordinate of each column; None where positions say it."""
    plain = bool(domain.sides) and domain.names is None
    with at("features"):
        if given is None:
            names = None if known is None else list(known)
        elif known is not None:
            raise InvalidInput(f"the model knows its own: {', '.join(known)}")
        else:
            names = read_list(given, text)
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
    """Weights as a query has them: of coordinates, and of the categories of a coordinate."""
    numbers: dict[Any, Fraction] = {}
    encoded: dict[Any, dict[str, Fraction]] = {}
    for where, weight in score.weights.items():
        key: Any = where.place if names is None else names[where.place]
        if where.label is None and names is not None:
            key, where = _indicated(key, where, domain)
        if where.label is None:
            numbers[key] = weight
            continue
        # Of these categories, those without a column have weight 0.
        own = encoded.setdefault(key, {})
        for label in where.labels:
            own.setdefault(label, Fraction(0))
        own[where.label] += weight
    for key in numbers.keys() & encoded.keys():
        raise InvalidInput(f"takes {key!r} both as a number and by its categories")
    try:
        result: dict[Any, Any] = {key: float(weight) for key, weight in numbers.items()}
        for key, own in encoded.items():
            result[key] = _of_labels(own, _labels_of(key, domain))
        intercept = float(score.constant)
    except OverflowError:
        raise InvalidInput("its score is too large for a double") from None
    if names is None:
        return [result.get(place, 0.0) for place in _range(width)], intercept
    return result, intercept


def _of_labels(weights: Mapping[str, Fraction], labels: tuple[str, ...]) -> dict[str, float]:
    for label in labels:
        if label not in weights:
            raise InvalidInput(f"was fitted without the category {label!r} of the domain")
    return {label: float(weights[label]) for label in labels}


def _labels_of(key: Any, domain: Domain) -> tuple[str, ...]:
    places = _range(len(domain.sides)) if domain.names is None else domain.names
    side = dict(zip(places, domain.sides, strict=False)).get(key)
    if isinstance(side, Categories):
        return side.labels
    hint = f"; {_NUMBERS}" if domain.kinds else ""
    raise InvalidInput(f"encodes {key!r}, which has no categories in the domain{hint}")


def _indicated(name: str, where: Input, domain: Domain) -> tuple[str, Input]:
    """The coordinate and the category that a column stands for: ``region_north``."""
    if domain.names is not None and name not in domain.names:
        for own, side in zip(domain.names, domain.sides, strict=False):
            label = name.removeprefix(f"{own}_")
            if isinstance(side, Categories) and label != name and label in side.labels:
                return own, Input(where.place, label, side.labels)
    return name, where


class Input(NamedTuple):
    """A column by its place, or whether it has a category: one of those that an encoder knows."""

    place: int
    label: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ weight·input."""

    weights: Mapping[Input, Fraction]
    constant: Fraction = Fraction(0)

    def of(self, columns: Sequence[Affine]) -> Affine:
        """This function of columns that are themselves functions of something."""
        weights: dict[Input, Fraction] = {}
        constant = self.constant
        for where, weight in self.weights.items():
            inner = columns[where.place]
            if where.label is not None:
                inner = column(where._replace(place=_unchanged(inner)))
            constant += weight * inner.constant
            for key, factor in inner.weights.items():
                weights[key] = weights.get(key, Fraction(0)) + weight * factor
        return Affine(weights, constant)

    def times(self, factor: Fraction) -> Affine:
        weights = {key: factor * weight for key, weight in self.weights.items()}
        return Affine(weights, factor * self.constant)


AffineMap = Sequence[Affine]
"""The columns that a step makes, as functions of those that it takes."""


def column(where: Input) -> Affine:
    """What is there, as it is."""
    return Affine({where: Fraction(1)})


def after(first: AffineMap, second: AffineMap) -> AffineMap:
    """What the second map makes of what the first has made."""
    return [function.of(first) for function in second]


def exact(numbers: Iterable[Any], place: str) -> list[Fraction]:
    return [Fraction(number) for number in read_list(numbers, double, place)]


def _unchanged(function: Affine) -> int:
    """The place of a column that nothing was done to, for only such a one has categories."""
    (where, *others) = function.weights or [Input(-1)]
    if others or function != column(where) or where.label is not None:
        raise InvalidInput("changes a column before its categories are encoded")
    return where.place
