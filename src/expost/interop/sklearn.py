"""Queries from models that scikit-learn has fitted.

scikit-learn is never imported here: an object can only be one of its models if it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expost.domains import Box, Domain
from expost.errors import InvalidInput, at, expect
from expost.queries import Linear, Logistic, linear, logistic
from expost.reading import double, each, text
from expost.rounding import ExactLike

__all__ = ["from_sklearn"]

_REGRESSIONS = ("LinearRegression", "Ridge", "Lasso")
_TAKES = (
    "must be a fitted LinearRegression, Ridge, Lasso or binary LogisticRegression, "
    "alone or behind StandardScaler in a Pipeline"
)


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

    A model that was fitted on a frame is matched with the domain by name. One that was fitted on
    an array goes by position in a plain box, and elsewhere needs the names of its ``features``.
    """
    expect(domain, Domain, "a FiniteSet or a Box")
    with at("model"):
        scalers, last = _steps(model)
        score = _affine(last)
        for scaler in reversed(scalers):
            score = _behind(scaler, score)
        known = _known_features([*scalers, last][0])
        weights, intercept = _rounded(score)
    names = _names(known, features, domain, len(weights))
    named: Any = weights if names is None else dict(zip(names, weights, strict=True))
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


def _steps(model: Any) -> tuple[list[Any], Any]:
    """The scalers, first to last, and the model behind them."""
    steps = [model]
    if _is(model, "sklearn.pipeline", "Pipeline") and model.steps:
        steps = [step for _, step in model.steps]
    *scalers, last = steps
    for scaler in scalers:
        if not _is(scaler, "sklearn.preprocessing", "StandardScaler"):
            raise InvalidInput(f"{_TAKES}; it has a step {type(scaler).__name__}")
    if not _is(last, "sklearn.linear_model", *_REGRESSIONS, "LogisticRegression"):
        raise InvalidInput(f"{_TAKES}, not {type(last).__name__}")
    fitted = [hasattr(scaler, "scale_") for scaler in scalers] + [hasattr(last, "coef_")]
    for step, is_fitted in zip([*scalers, last], fitted, strict=True):
        if not is_fitted:
            raise InvalidInput(f"this {type(step).__name__} is not fitted")
    return scalers, last


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


def _exact(numbers: Any, place: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(x) for x in each(numbers, double, place))


def _rounded(score: _Affine) -> tuple[list[float], float]:
    try:
        return [float(weight) for weight in score.weights], float(score.intercept)
    except OverflowError:
        raise InvalidInput("its score is too large for a double") from None


def _known_features(first: Any) -> list[str] | None:
    """The names of the columns that the model was fitted on, if they had any."""
    names = getattr(first, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _names(
    known: list[str] | None, given: Sequence[str] | None, domain: Domain, size: int
) -> list[str] | None:
    """The coordinate of each feature; None where positions say it."""
    plain = isinstance(domain, Box) and domain.names is None
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
