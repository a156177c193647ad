"""The models of scikit-learn whose prediction is an affine score, or a curve of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from expost.errors import InvalidInput
from expost.queries.models._fitted_objects import fitted_attribute, is_a
from expost.queries.models._prediction import Affine, Input, ModelPrediction, exact_doubles

__all__ = ["SUPPORTED_MODELS", "prediction_of"]

SUPPORTED_MODELS = (
    "must be a fitted linear model of scikit-learn: a regression such as LinearRegression, Ridge, "
    "Lasso, ElasticNet, their CV variants, SGDRegressor, LinearSVR, or SVR with kernel='linear'; "
    "or a classifier of two classes such as LogisticRegression, LinearSVC, SGDClassifier, "
    "RidgeClassifier, LinearDiscriminantAnalysis, or SVC with kernel='linear'; "
    "alone, or at the end of a Pipeline"
)

_REGRESSIONS = {
    "sklearn.linear_model": (
        "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars",
        "LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression",
        "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "QuantileRegressor", "Ridge",
        "RidgeCV", "SGDOneClassSVM", "SGDRegressor", "TheilSenRegressor",
    ),
    "sklearn.svm": ("LinearSVR", "NuSVR", "SVR"),
}  # fmt: skip
_PROBABILITIES = {
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis",),
    "sklearn.linear_model": ("LogisticRegression", "LogisticRegressionCV"),
}
_DECISIONS = {
    "sklearn.linear_model": ("Perceptron", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier"),
    "sklearn.svm": ("LinearSVC", "NuSVC", "SVC"),
}


def prediction_of(model: Any) -> ModelPrediction:
    """Read the result of a fitted model: what it predicts, or its ``decision_function``."""
    name = type(model).__name__
    probability = _is_one_of(model, _PROBABILITIES)
    if probability or _is_one_of(model, _DECISIONS):
        _check_classes(model)
    elif not _is_one_of(model, _REGRESSIONS):
        raise InvalidInput(f"{SUPPORTED_MODELS}, not {name}")
    if getattr(model, "kernel", "linear") != "linear":
        raise InvalidInput(f"{name} with this kernel is not affine; only kernel='linear' is")
    if probability or getattr(model, "loss", "") == "log_loss":
        return ModelPrediction("logistic", _score(model), name)
    return ModelPrediction("linear", _score(model), name)


def _is_one_of(model: Any, homes: Mapping[str, Sequence[str]]) -> bool:
    return any(is_a(model, module, *names) for module, names in homes.items())


def _check_classes(model: Any) -> None:
    classes = fitted_attribute(model, "classes_")
    if len(classes) != 2:
        raise InvalidInput(f"has {len(classes)} classes; a query needs exactly 2")
    if getattr(model, "multi_class", "auto") == "multinomial":
        # Releases before 1.8 then predict 1/(1 + e^-2s), not 1/(1 + e^-s).
        raise InvalidInput("is multinomial; fit it without multi_class")


def _score(model: Any) -> Affine:
    weights = fitted_attribute(model, "coef_")
    if hasattr(weights, "toarray"):  # a sparse matrix
        weights = weights.toarray()
    weights = np.atleast_2d(np.asarray(weights))
    if len(weights) != 1:
        raise InvalidInput(f"has {len(weights)} outputs; a query needs exactly 1")
    if is_a(model, "sklearn.linear_model", "SGDOneClassSVM"):
        intercept = -exact_doubles(model.offset_, "offset_")[0]
    else:
        intercepts = np.atleast_1d(fitted_attribute(model, "intercept_"))
        intercept = exact_doubles(intercepts, "intercept_")[0]
    mapped = exact_doubles(weights[0], "coef_")
    return Affine({Input(index): weight for index, weight in enumerate(mapped)}, intercept)
