"""Queries from models that scikit-learn has fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput, at, expect, read_at
from expost.numbers import ExactLike
from expost.queries.models._fitted_objects import (
    first_step,
    fitted_attribute,
    is_a,
    is_search,
    steps_of,
)
from expost.queries.models._prediction import ModelPrediction, coordinate_names
from expost.queries.models._sklearn_scores import SUPPORTED_MODELS, prediction_of
from expost.queries.models._sklearn_steps import map_of
from expost.queries.scores.linear import Linear
from expost.queries.scores.logistic import Logistic
from expost.queries.scores.probit import Probit

__all__ = ["from_sklearn"]


def from_sklearn(
    model: Any,
    domain: Domain,
    epsilon: ExactLike,
    *,
    features: Sequence[str] | None = None,
    range: Sequence[float] | None = None,
    clip: bool = False,
) -> Linear | Logistic | Probit:
    r"""Make a query for one bit about the prediction of a fitted model for the subject.

    A linear regression becomes :func:`linear`, with ``range`` and ``clip`` as there. A binary
    classifier whose probability is the logistic curve of its ``decision_function`` becomes
    :func:`logistic`, and response 1 stands for ``classes_[1]``. Another linear classifier has no
    probability; it becomes :func:`linear`, about its ``decision_function``.

    The steps of a ``Pipeline`` in front are affine maps of columns, :math:`z = Ax + c`. They are
    folded into the weights, in exact fractions that are rounded once:

    .. math:: w \cdot (A x + c) + b = (A^\top w) \cdot x + (w \cdot c + b)

    A ``OneHotEncoder`` gives the weights of the categories of a coordinate; so do columns called
    ``region_north`` if the domain has a coordinate ``region`` with a category ``north``.

    A model that was fitted on a frame is matched with the domain by name. One that was fitted on
    an array takes coordinates by position in a box without names. Otherwise give the names of its
    ``features``.

    On :class:`Attributes` the features are attributes of numbers, and the query is asked about
    these: ``from_sklearn(model, person, 1).about("age", "visits")``.

    Args:
        model: A fitted regression or classifier, or a pipeline that ends in one.
        domain: The domain whose coordinates are the features of the model.
        epsilon: The guarantee of the query in nats, exact as written.
        features: The names of the features, if the model was fitted on an array.
        range: The two ends of the prediction, as for :func:`linear`.
        clip: Whether predictions beyond the range count as its nearest end.
    """
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    with at("model"):
        prediction = _fold_pipeline(model)
        first = first_step(model)
        width = int(fitted_attribute(first, "n_features_in_"))
    fitted_names = getattr(first, "feature_names_in_", None)
    column_names = None if fitted_names is None else [str(name) for name in fitted_names]
    names = coordinate_names(column_names, features, domain, width)
    return prediction.query(domain, names, width, epsilon, range, clip)


def _fold_pipeline(model: Any) -> ModelPrediction:
    """Return what a model predicts, as a function of the columns that its pipeline takes."""
    if is_search(model):
        return _fold_pipeline(fitted_attribute(model, "best_estimator_"))
    if not is_a(model, "sklearn.pipeline", "Pipeline"):
        return prediction_of(model)
    if not steps_of(model):
        raise InvalidInput(f"{SUPPORTED_MODELS}, not an empty one")
    *steps, (name, last) = steps_of(model)
    prediction = read_at(f"[{name!r}]", _fold_pipeline, last)
    # From the end: what is folded is one function all the way.
    for name, step in reversed(steps):
        with at(f"[{name!r}]"):
            prediction = replace(prediction, score=prediction.score.of(map_of(step)))
    return prediction
