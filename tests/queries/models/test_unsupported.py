"""Models that make no query: one line that names the step and says what would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import SparsePCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC

import expost as xp
from expost.domains import Domain
from support.sleep_survey import NAMED, NAMES, PLAIN, Floats, people

POINTS, HOURS = people()
LONG = np.median(HOURS) < HOURS


class Doubled(LinearRegression):  # type: ignore[misc]
    """A subclass that predicts otherwise."""

    def predict(self, points: Floats) -> Floats:
        return 2 * np.asarray(super().predict(points))


class Ridge2:
    """A model of nobody's, that looks like one."""

    coef_ = np.ones(3)
    intercept_ = 0.0


Ridge2.__name__, Ridge2.__module__ = "Ridge", "sklearn.linear_model._ridge"


def half_fitted() -> Any:
    model = LinearRegression().fit(POINTS, HOURS)
    del model.coef_
    return model


def huge() -> Any:
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(POINTS, HOURS)
    model.steps[0][1].scale_ = np.full(3, 5e-324)
    return model


def zero_scale() -> Any:
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(POINTS, HOURS)
    model.steps[0][1].scale_ = np.array([1.0, 0.0, 1.0])
    return model


def without_values() -> Any:
    model = make_pipeline(SimpleImputer(), Ridge()).fit(POINTS, HOURS)
    model.steps[0][1].statistics_ = np.array([50.0, 0.5, np.nan])
    return model


def infinite() -> Any:
    model = LinearRegression().fit(POINTS, HOURS)
    model.coef_ = np.array([1.0, np.nan, 1.0])
    return model


def multinomial() -> Any:
    model = LogisticRegression(max_iter=5000).fit(POINTS, LONG)
    model.multi_class = "multinomial"
    return model


WANTED = (
    "must be a fitted linear model of scikit-learn: a regression such as LinearRegression, Ridge, "
    "Lasso, ElasticNet, their CV variants, SGDRegressor, LinearSVR, or SVR with kernel='linear'; "
    "or a classifier of two classes such as LogisticRegression, LinearSVC, SGDClassifier, "
    "RidgeClassifier, LinearDiscriminantAnalysis, or SVC with kernel='linear'; "
    "alone, or at the end of a Pipeline"
)
SUPPORTED = f"model: {WANTED}"
STEPS = (
    "is not supported; a step may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, "
    "OneHotEncoder, PolynomialFeatures of degree 1, PCA, IncrementalPCA, TruncatedSVD, "
    "SimpleImputer, a selector of features, or a ColumnTransformer, FeatureUnion or Pipeline of "
    "these"
)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, f"{SUPPORTED}, not int"),
        (None, f"{SUPPORTED}, not NoneType"),
        (LinearRegression, f"{SUPPORTED}, not ABCMeta"),
        (Ridge2(), f"{SUPPORTED}, not Ridge"),
        (Doubled().fit(POINTS, HOURS), f"{SUPPORTED}, not Doubled"),
        (RandomForestRegressor(2).fit(POINTS, HOURS), f"{SUPPORTED}, not RandomForestRegressor"),
        (
            make_pipeline(PolynomialFeatures(), Ridge()).fit(POINTS, HOURS),
            "model['polynomialfeatures']: PolynomialFeatures of degree 2 is not affine; only deg",
        ),
        (
            make_pipeline(MinMaxScaler(clip=True), Ridge()).fit(POINTS, HOURS),
            "model['minmaxscaler']: MinMaxScaler(clip=True) is not affine; fit it without clip",
        ),
        (
            make_pipeline(Normalizer(), Ridge()).fit(POINTS, HOURS),
            f"model['normalizer']: Normalizer {STEPS}",
        ),
        (
            make_pipeline(SparsePCA(2), Ridge()).fit(POINTS, HOURS),
            f"model['sparsepca']: SparsePCA {STEPS}",
        ),
        (
            make_pipeline(FunctionTransformer(np.log1p), Ridge()).fit(POINTS, HOURS),
            "model['functiontransformer']: FunctionTransformer with a function is not supported",
        ),
        (
            make_pipeline(SimpleImputer(missing_values=0), Ridge()).fit(POINTS, HOURS),
            "model['simpleimputer']: SimpleImputer replaces a value that a subject may have",
        ),
        (
            make_pipeline(SimpleImputer(add_indicator=True), Ridge()).fit(POINTS, HOURS),
            "model['simpleimputer']: SimpleImputer(add_indicator=True) is not supported",
        ),
        (
            without_values(),
            "model['simpleimputer']: SimpleImputer was fitted on a column without values",
        ),
        (
            make_pipeline(
                ColumnTransformer([("s", StandardScaler(), [0])]), Ridge().fit(POINTS, HOURS)
            ),
            "model['columntransformer']: this ColumnTransformer is not fitted",
        ),
        (
            make_pipeline(ColumnTransformer([("s", Normalizer(), [0])]), Ridge()).fit(
                POINTS, HOURS
            ),
            f"model['columntransformer']['s']: Normalizer {STEPS}",
        ),
        (
            make_pipeline(StandardScaler(), OneHotEncoder(), Ridge()).fit(POINTS[:, 1:2], HOURS),
            "model['standardscaler']: changes a column before its categories are encoded",
        ),
        (make_pipeline("passthrough", Ridge()), "model['ridge']: this Ridge is not fitted"),
        (
            make_pipeline(OneHotEncoder(), Ridge()).fit(POINTS[:, 1:2], HOURS),
            "model: encodes 0, which has no categories in the domain",
        ),
        (
            make_pipeline(make_pipeline(StandardScaler()), Ridge().fit(POINTS, HOURS)),
            "model['pipeline']['standardscaler']: this StandardScaler is not fitted",
        ),
        (
            make_pipeline(make_pipeline("passthrough"), Ridge()).fit(POINTS, HOURS),
            "model['pipeline']: this Pipeline does nothing; leave it out",
        ),
        (make_pipeline(StandardScaler()), f"model['standardscaler']: {WANTED}, not StandardScaler"),
        (Pipeline([]), f"{SUPPORTED}, not an empty one"),
        (LinearRegression(), "model: this LinearRegression is not fitted"),
        (half_fitted(), "model: this LinearRegression is not fitted"),
        (LinearSVC(), "model: this LinearSVC is not fitted"),
        (SVR(kernel="linear"), "model: this SVR is not fitted"),
        (GridSearchCV(Ridge(), {"alpha": [1]}), "model: this GridSearchCV is not fitted"),
        (SVR().fit(POINTS, HOURS), "model: SVR with this kernel is not affine; only kernel='linea"),
        (SVC().fit(POINTS, LONG), "model: SVC with this kernel is not affine; only kernel='linea"),
        (PoissonRegressor().fit(POINTS, LONG), f"{SUPPORTED}, not PoissonRegressor"),
        (
            make_pipeline(StandardScaler(), Ridge().fit(POINTS, HOURS)),
            "model['standardscaler']: this StandardScaler is not fitted",
        ),
        (
            LinearRegression().fit(POINTS, np.stack([HOURS, HOURS], axis=1)),
            "model: has 2 outputs; a query needs exactly 1",
        ),
        (
            LogisticRegression(max_iter=5000).fit(POINTS, np.arange(300) % 3),
            "model: has 3 classes; a query needs exactly 2",
        ),
        (multinomial(), "model: is multinomial; fit it without multi_class"),
        (infinite(), "model.coef_[1]: must be a finite number"),
        (huge(), "model: its score is too large for a double"),
        (zero_scale(), "model['standardscaler'].scale_: the scaler divides by zero"),
        (Lasso(1e9).fit(POINTS, HOURS), "range: the score is the same everywhere"),
    ],
)
def test_other_models_are_one_line(model: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        xp.from_sklearn(model, PLAIN, 1)
    assert str(caught.value).startswith(message)


ARRAY_MODEL = LogisticRegression(max_iter=5000).fit(POINTS, LONG)
FRAME_MODEL = Ridge().fit(pd.DataFrame(POINTS, columns=NAMES), HOURS)


@pytest.mark.parametrize(
    ("model", "domain", "options", "message"),
    [
        (ARRAY_MODEL, NAMED, {}, "features: the model was fitted without names; give them, in its"),
        (ARRAY_MODEL, NAMED, {"features": ["age"]}, "features: must be 3 different names"),
        (ARRAY_MODEL, NAMED, {"features": ["age"] * 3}, "features: must be 3 different names"),
        (ARRAY_MODEL, NAMED, {"features": "age"}, "features: must be a list"),
        (ARRAY_MODEL, NAMED, {"features": [1, 2, 3]}, "features[0]: must be a string"),
        (ARRAY_MODEL, NAMED, {"features": ["age", "sex", "iq"]}, "weights.iq: the domain has no"),
        (ARRAY_MODEL, PLAIN, {"features": NAMES}, "features: the model has names for them, and"),
        (ARRAY_MODEL, xp.Box([(0, 1)]), {}, "weights: 3 weights for 1 coordinates"),
        (ARRAY_MODEL, PLAIN, {"range": (0, 1)}, "range: is for linear queries, and a Logistic"),
        (ARRAY_MODEL, PLAIN, {"clip": True}, "clip: is for linear queries, and a LogisticReg"),
        (ARRAY_MODEL, 5, {}, "must be a FiniteSet, Attributes or a Box, not int"),
        (FRAME_MODEL, PLAIN, {}, "features: the model has names for them, and this box has none"),
        (FRAME_MODEL, NAMED, {"features": NAMES}, "features: the model has names: age, sex, p"),
        (FRAME_MODEL, xp.Box(age=(1, 2)), {}, "weights.sex: the domain has no such coordinate"),
        (FRAME_MODEL, NAMED, {"clip": True}, "range: a clipped score needs one"),
    ],
)
def test_what_does_not_fit_together_is_one_line(
    model: Any, domain: Domain, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        xp.from_sklearn(model, domain, 1, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", 501])
def test_a_bad_epsilon_is_one_line(epsilon: Any) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^epsilon: "):
        xp.from_sklearn(FRAME_MODEL, NAMED, epsilon)
