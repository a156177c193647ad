"""Queries from models that scikit-learn has fitted.

scikit-learn is never imported here: an object can only be one of its models if it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expost.domains import Categories, Domain
from expost.errors import InvalidInput, at, expect
from expost.files.reading import double, each, text
from expost.numbers import ExactLike
from expost.queries.scores.linear import Linear, linear
from expost.queries.scores.logistic import Logistic, logistic

__all__ = ["from_sklearn"]

_REGRESSIONS = ("LinearRegression", "Ridge", "Lasso")
_TAKES = (
    "must be a fitted LinearRegression, Ridge, Lasso or binary LogisticRegression, "
    "alone or in a Pipeline behind OneHotEncoder, StandardScaler, or a ColumnTransformer of these"
)

Input = tuple[int, str | None]
"""A feature by its place, and the category that it indicates, if any."""

_range = range  # which is also what people call the ends of a score


def from_sklearn(
    model: Any,
    domain: Domain,
    epsilon: ExactLike,
    *,
    features: Sequence[str] | None = None,
    range: Sequence[float] | None = None,
    clip: bool = False,
) -> Linear | Logistic:
    r"""The query that asks for one bit about what a fitted model predicts of the subject.

    A regression becomes :func:`linear`, with ``range`` and ``clip`` as there; a binary
    ``LogisticRegression`` becomes :func:`logistic`, and response 1 stands for ``classes_[1]``. A
    ``StandardScaler`` in front is folded into the weights, in exact fractions that are rounded
    once:

    .. math:: \sum_j w_j \frac{x_j - m_j}{s_j} + b
              = \sum_j \frac{w_j}{s_j} x_j + \Big(b - \sum_j \frac{w_j m_j}{s_j}\Big)

    A ``OneHotEncoder`` gives the weights of the categories of a coordinate; so do columns called
    ``region_north`` if the domain has a coordinate ``region`` with a category ``north``.

    A model that was fitted on a frame is matched with the domain by name. One that was fitted on
    an array goes by position in a plain box, and elsewhere needs the names of its ``features``.
    """
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    with at("model"):
        front, scalers, last = _steps(model)
        score = _affine(last)
        for scaler in reversed(scalers):
            score = _behind(scaler, score)
        first = [*front, *scalers, last][0]
        inputs: list[Input] = [(place, None) for place in _range(len(score.weights))]
        if front:
            inputs, score = _behind_columns(front[0], score)
        weights, intercept = _rounded(_merged(inputs, score.weights), score.intercept)
    width = int(first.n_features_in_)
    names = _names(_known_features(first), features, domain, width)
    named = _by_coordinate(weights, names, width, domain)
    query: Linear | Logistic
    if _is(last, "sklearn.linear_model", *_REGRESSIONS):
        query = linear(named, intercept=intercept, range=range, clip=clip, epsilon=epsilon)
    elif range is not None or clip:
        place = "clip" if range is None else "range"
        raise InvalidInput("is for regressions, and this model is a LogisticRegression", place)
    else:
        query = logistic(named, intercept=intercept, epsilon=epsilon)
    query.on(domain)  # what does not fit the domain is said now
    return query


def _is(thing: Any, module: str, *names: str) -> bool:
    """Whether this is an instance of such a class itself; a subclass may predict otherwise."""
    home = sys.modules.get(module)
    return any(type(thing) is getattr(home, name, None) for name in names)


def _steps(model: Any) -> tuple[list[Any], list[Any], Any]:
    """What splits columns, if anything does, the scalers, first to last, and the model."""
    steps = [model]
    if _is(model, "sklearn.pipeline", "Pipeline") and model.steps:
        steps = [step for _, step in model.steps if step != "passthrough"]
    *before, last = steps
    front = before[:1] if before and (_is_columns(before[0]) or _is_encoder(before[0])) else []
    scalers = before[len(front) :]
    for scaler in scalers:
        if not _is_scaler(scaler):
            raise InvalidInput(f"{_TAKES}; it has a step {type(scaler).__name__}")
    if not _is(last, "sklearn.linear_model", *_REGRESSIONS, "LogisticRegression"):
        raise InvalidInput(f"{_TAKES}, not {type(last).__name__}")
    for step in [*front, *scalers, last]:
        _check_fitted(step)
    return front, scalers, last


def _is_columns(step: Any) -> bool:
    return _is(step, "sklearn.compose", "ColumnTransformer")


def _is_encoder(step: Any) -> bool:
    return _is(step, "sklearn.preprocessing", "OneHotEncoder")


def _is_scaler(step: Any) -> bool:
    return _is(step, "sklearn.preprocessing", "StandardScaler")


def _check_fitted(step: Any) -> None:
    marks = {"ColumnTransformer": "transformers_", "OneHotEncoder": "categories_"}
    marks["StandardScaler"] = "scale_"
    if not hasattr(step, marks.get(type(step).__name__, "coef_")):
        raise InvalidInput(f"this {type(step).__name__} is not fitted")


@dataclass(frozen=True, slots=True)
class _Affine:
    """intercept + Σ weight·feature, exactly."""

    weights: tuple[Fraction, ...]
    intercept: Fraction


def _affine(model: Any) -> _Affine:
    """The score of a model: what it predicts, or its ``decision_function``."""
    if _is(model, "sklearn.linear_model", "LogisticRegression"):
        if len(model.classes_) != 2:
            raise InvalidInput(f"has {len(model.classes_)} classes; a query needs exactly 2")
        if getattr(model, "multi_class", "auto") == "multinomial":
            # Releases before 1.8 then predict 1/(1 + e^-2s), not 1/(1 + e^-s).
            raise InvalidInput("is multinomial; fit it without multi_class")
    weights = np.atleast_2d(np.asarray(model.coef_))
    if len(weights) != 1:
        raise InvalidInput(f"has {len(weights)} outputs; a query needs exactly 1")
    intercept, *_ = _exact(np.atleast_1d(model.intercept_), "intercept_")
    return _Affine(_exact(weights[0], "coef_"), intercept)


def _behind(scaler: Any, score: _Affine) -> _Affine:
    """The score as a function of what goes into the scaler."""
    weights, intercept = score.weights, score.intercept
    # The scaler does what its flags say, whatever else it has worked out.
    if scaler.with_std:
        scales = _exact(scaler.scale_, "scale_")
        if not all(scales):
            raise InvalidInput("the scaler divides by zero", "scale_")
        weights = tuple(w / s for w, s in zip(weights, scales, strict=True))
    if scaler.with_mean:
        means = _exact(scaler.mean_, "mean_")
        intercept -= sum(w * m for w, m in zip(weights, means, strict=True))
    return _Affine(weights, intercept)


def _behind_columns(front: Any, score: _Affine) -> tuple[list[Input], _Affine]:
    """The score as a function of what goes into an encoder or a transformer of columns."""
    everything = [("", front, slice(None))]
    parts = front.transformers_ if _is_columns(front) else everything
    inputs: list[Input] = []
    weights: list[Fraction] = []
    intercept = score.intercept
    for name, step, chosen in parts:
        places = _chosen(front, chosen)
        if isinstance(step, str) and step == "drop":
            continue
        start = front.output_indices_[name].start if _is_columns(front) else 0
        if _is_encoder(step):
            for place, labels, drop in _encoded(step, places):
                # A category without a column has weight 0.
                inputs += [(place, label) for label in labels]
                columns = len(labels) - (drop is not None)
                own = list(score.weights[start : start + columns])
                weights += own if drop is None else [*own[:drop], Fraction(0), *own[drop:]]
                start += columns
            continue
        part = _Affine(score.weights[start : start + len(places)], intercept)
        if _is_scaler(step):
            part = _behind(step, part)
        elif not _does_nothing(step):
            raise InvalidInput(f"{_TAKES}; it has a step {type(step).__name__}")
        inputs += [(place, None) for place in places]
        weights += part.weights
        intercept = part.intercept
    return inputs, _Affine(tuple(weights), intercept)


def _does_nothing(step: Any) -> bool:
    return (isinstance(step, str) and step == "passthrough") or (
        _is(step, "sklearn.preprocessing", "FunctionTransformer")
        and step.func is None
        and step.inverse_func is None
    )


def _chosen(front: Any, chosen: Any) -> list[int]:
    """The places of the columns that a part of a transformer takes."""
    names = list(getattr(front, "feature_names_in_", []))
    if isinstance(chosen, (str, int)):
        chosen = [chosen]
    if not isinstance(chosen, slice) and all(isinstance(entry, str) for entry in chosen):
        return [names.index(name) for name in chosen]
    if isinstance(chosen, slice) and any(isinstance(x, str) for x in (chosen.start, chosen.stop)):
        raise InvalidInput("takes a slice of names; name the columns one by one")
    return [int(place) for place in np.arange(front.n_features_in_)[chosen]]


def _encoded(encoder: Any, places: list[int]) -> Iterator[tuple[int, list[str], int | None]]:
    """Features, their categories, and which of these has no column."""
    if any(rare is not None for rare in getattr(encoder, "infrequent_categories_", [])):
        raise InvalidInput("its OneHotEncoder puts rare categories together")
    dropped = [None] * len(places) if encoder.drop_idx_ is None else encoder.drop_idx_
    for place, labels, drop in zip(places, encoder.categories_, dropped, strict=True):
        yield place, [str(label) for label in labels], None if drop is None else int(drop)


def _exact(numbers: Any, place: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(x) for x in each(numbers, double, place))


def _merged(inputs: Sequence[Input], weights: Sequence[Fraction]) -> dict[Input, Fraction]:
    """A column may go into a model in several ways."""
    result: dict[Input, Fraction] = {}
    for key, weight in zip(inputs, weights, strict=True):
        result[key] = result.get(key, Fraction(0)) + weight
    return result


def _rounded(
    weights: dict[Input, Fraction], intercept: Fraction
) -> tuple[dict[Input, float], float]:
    try:
        return {key: float(weight) for key, weight in weights.items()}, float(intercept)
    except OverflowError:
        raise InvalidInput("its score is too large for a double") from None


def _by_coordinate(
    weights: dict[Input, float], names: list[str] | None, width: int, domain: Domain
) -> Any:
    """Weights as a query has them: of coordinates, and of the categories of a coordinate."""
    result: dict[Any, Any] = {}
    for (place, label), weight in weights.items():
        key: Any = place if names is None else names[place]
        if label is not None:
            result.setdefault(key, {})[label] = weight
            continue
        if names is not None and domain.sides:
            key, label = _indicated(key, domain)
        if label is None:
            result[key] = weight
        else:
            result.setdefault(key, dict.fromkeys(_labels_of(key, domain), 0.0))[label] = weight
    for key, by_label in result.items():
        if isinstance(by_label, dict):
            result[key] = _for_labels(by_label, _labels_of(key, domain))
    return [result.get(place, 0.0) for place in _range(width)] if names is None else result


def _for_labels(weights: dict[str, float], labels: tuple[str, ...]) -> dict[str, float]:
    for label in labels:
        if label not in weights:
            with at("model"):
                raise InvalidInput(f"was fitted without the category {label!r} of the domain")
    return {label: weights[label] for label in labels}


def _labels_of(key: Any, domain: Domain) -> tuple[str, ...]:
    places = _range(len(domain.sides)) if domain.names is None else domain.names
    side = dict(zip(places, domain.sides, strict=False)).get(key)
    if isinstance(side, Categories):
        return side.labels
    with at("model"):
        raise InvalidInput(f"encodes {key!r}, which has no categories in the domain")


def _indicated(name: str, box: Domain) -> tuple[str, str | None]:
    """The coordinate and the category that a column stands for: ``region_north``."""
    assert box.names is not None
    if name not in box.names:
        for own, side in zip(box.names, box.sides, strict=True):
            label = name.removeprefix(f"{own}_")
            if isinstance(side, Categories) and label != name and label in side.labels:
                return own, label
    return name, None


def _known_features(first: Any) -> list[str] | None:
    """The names of the columns that the model was fitted on, if they had any."""
    names = getattr(first, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _names(
    known: list[str] | None, given: Sequence[str] | None, domain: Domain, size: int
) -> list[str] | None:
    """The coordinate of each feature; None where positions say it."""
    plain = bool(domain.sides) and domain.names is None
    with at("features"):
        if given is None:
            names = known
        elif known is not None:
            raise InvalidInput(f"the model knows its own: {', '.join(known)}")
        else:
            names = each(given, text)
        if names is None and not plain:
            raise InvalidInput("the model was fitted without names; give them, in its order")
        if names is not None and plain:
            raise InvalidInput("the model has names for them, and this box has none")
        if names is not None and (len(names) != size or len(set(names)) < size):
            raise InvalidInput(f"must be {size} different names")
        return names
