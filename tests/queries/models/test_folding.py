"""Pipelines of affine steps: the query has the score of the model, whatever the steps are."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lars,
    LarsCV,
    Lasso,
    LassoCV,
    LassoLars,
    LassoLarsCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDOneClassSVM,
    SGDRegressor,
    TheilSenRegressor,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR

import expost as xp
from expost.errors import TinyScaleWarning
from support.sleep_survey import NAMED, NAMES, PLAIN, Floats, chances, one_bit, people, scores

POINTS, HOURS = people(60)
LONG = np.where(np.median(HOURS) < HOURS, 2, 1)
FRESH, _ = people(40, seed=2)


def fitted(model: Any, points: Any = POINTS) -> Any:
    """The model as far as it gets; whether it has converged does not matter."""
    target = LONG if hasattr(model, "decision_function") else HOURS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(points, target)


def told(model: Any, points: Any) -> Floats:
    """The score of a model by its own account."""
    tell = getattr(model, "decision_function", None) or model.predict
    return np.asarray(tell(points), dtype=float).reshape(-1)


def check(model: Any, points: Floats = FRESH) -> None:
    """The query about a model that was fitted on an array has its score and its probabilities."""
    query = xp.from_sklearn(model, PLAIN, "1.5")
    expected = told(model, points)
    computed = scores(query, PLAIN, points, None)
    size = np.abs(expected).max()
    np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-9 * size)
    ends: Any = query.on(PLAIN).responses
    if query.kind == "logistic":
        share = model.predict_proba(points)[:, 1]
    else:
        share = (expected - ends[0]) / (ends[1] - ends[0])
    likely = chances(query, PLAIN, points)
    np.testing.assert_allclose(likely, one_bit(share, 1.5), rtol=1e-9)


REGRESSIONS = [
    ARDRegression(),
    BayesianRidge(),
    ElasticNet(0.01),
    ElasticNetCV(alphas=3, cv=3),
    HuberRegressor(),
    Lars(),
    LarsCV(cv=3),
    Lasso(0.01),
    LassoCV(alphas=3, cv=3),
    LassoLars(0.01),
    LassoLarsCV(cv=3),
    LassoLarsIC(),
    LinearRegression(fit_intercept=False),
    LinearSVR(max_iter=100),
    NuSVR(kernel="linear"),
    OrthogonalMatchingPursuit(),
    OrthogonalMatchingPursuitCV(cv=3),
    QuantileRegressor(alpha=0.01),
    Ridge(positive=True),
    RidgeCV(),
    SGDRegressor(random_state=1),
    SVR(kernel="linear"),
    TheilSenRegressor(max_subpopulation=20, random_state=1),
]
SCORED_CLASSES = [
    LinearSVC(max_iter=100),
    LinearSVC(fit_intercept=False, max_iter=100),
    NuSVC(kernel="linear"),
    Perceptron(random_state=1),
    RidgeClassifier(),
    RidgeClassifierCV(),
    SGDClassifier(random_state=1),
    SGDClassifier(loss="modified_huber", random_state=1),
    SGDOneClassSVM(random_state=1),
    SVC(kernel="linear"),
]
LOGISTIC_CLASSES = [
    LinearDiscriminantAnalysis(),
    LogisticRegression(),
    LogisticRegression(solver="liblinear", intercept_scaling=3),
    LogisticRegressionCV(Cs=2, cv=2),
    SGDClassifier(loss="log_loss", random_state=1),
]


@pytest.mark.parametrize("model", REGRESSIONS, ids=lambda model: type(model).__name__)
def test_a_regression_is_asked_about_what_it_predicts(model: Any) -> None:
    pipeline = fitted(make_pipeline(StandardScaler(), model))
    check(pipeline)
    assert xp.from_sklearn(pipeline, PLAIN, 1).kind == "linear"


@pytest.mark.parametrize("model", SCORED_CLASSES, ids=lambda model: type(model).__name__)
def test_a_classifier_without_probabilities_is_asked_about_its_decision(model: Any) -> None:
    pipeline = fitted(make_pipeline(StandardScaler(), model))
    check(pipeline)
    query = xp.from_sklearn(pipeline, PLAIN, 1, range=(-1, 1), clip=True)
    assert query.on(PLAIN).responses == (-1, 1)


@pytest.mark.parametrize("model", LOGISTIC_CLASSES, ids=lambda model: type(model).__name__)
def test_a_classifier_with_probabilities_is_asked_about_them(model: Any) -> None:
    pipeline = fitted(make_pipeline(StandardScaler(), model))
    check(pipeline)
    assert xp.from_sklearn(pipeline, PLAIN, 1).kind == "logistic"


def test_weights_may_be_sparse() -> None:
    check(fitted(LogisticRegression()).sparsify())


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_a_search_is_its_best_model(search: Any) -> None:
    options = {"n_iter": 2} if search is RandomizedSearchCV else {}
    check(
        fitted(search(make_pipeline("passthrough", Ridge()), {"ridge__alpha": [1, 9]}, **options))
    )
    check(fitted(make_pipeline(StandardScaler(), search(Ridge(), {"alpha": [1, 9]}, **options))))


SCALERS = [
    lambda: StandardScaler(),
    lambda: StandardScaler(with_mean=False),
    lambda: MinMaxScaler(feature_range=(-3, 5)),
    lambda: MaxAbsScaler(),
    lambda: RobustScaler(),
    lambda: RobustScaler(with_scaling=False),
    lambda: RobustScaler(with_centering=False, quantile_range=(10, 80), unit_variance=True),
    lambda: FunctionTransformer(),
    lambda: SimpleImputer(),
    lambda: "passthrough",
]


UNIONS = [
    make_union(StandardScaler(), "passthrough"),
    make_union("drop", PCA(2), RobustScaler()),
    FeatureUnion([("a", MaxAbsScaler()), ("b", PCA(1))], transformer_weights={"a": 4, "b": 0.5}),
]
STEPS = [
    PolynomialFeatures(1),
    PolynomialFeatures((0, 1)),
    VarianceThreshold(),
    SelectFromModel(Ridge()),
    *UNIONS,
    ColumnTransformer([("a", StandardScaler(), [2])], remainder=MinMaxScaler()),
    ColumnTransformer([("a", StandardScaler(), np.array([2]))], remainder="drop"),
    ColumnTransformer([("a", StandardScaler(), slice(-2, None)), ("b", "passthrough", [0])]),
    ColumnTransformer([("a", StandardScaler(), []), ("b", "passthrough", [0, 2])]),
    ColumnTransformer(
        [("a", StandardScaler(), [0]), ("b", "passthrough", [1, 2])], transformer_weights={"b": 7}
    ),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_step_is_folded_into_the_weights(step: Any) -> None:
    check(fitted(make_pipeline(step, Ridge())))
    check(fitted(make_pipeline(MinMaxScaler(), step, LogisticRegression())))


def test_the_first_step_that_does_something_knows_the_names() -> None:
    table = pd.DataFrame(POINTS, columns=NAMES)
    union = make_union("drop", make_pipeline("passthrough", StandardScaler()))
    model = fitted(make_pipeline("passthrough", make_pipeline(union), Ridge()), table)
    query = xp.from_sklearn(model, NAMED, 1)
    computed = scores(query, NAMED, FRESH, NAMES)
    expected = model.predict(pd.DataFrame(FRESH, columns=NAMES))
    np.testing.assert_allclose(computed, expected, rtol=1e-9)


def test_components_are_folded_exactly_and_rounded_once() -> None:
    model = fitted(make_pipeline(PCA(2), LinearRegression()))
    pca, last = (step for _, step in model.steps)
    score = xp.from_sklearn(model, PLAIN, 1).score
    directions = [[Fraction(x) for x in row] for row in pca.components_.tolist()]
    weights = [
        sum(Fraction(w) * row[j] for w, row in zip(last.coef_.tolist(), directions, strict=True))
        for j in range(3)
    ]
    shift = sum(w * Fraction(m) for w, m in zip(weights, pca.mean_.tolist(), strict=True))
    assert list(score.weights) == [float(weight) for weight in weights]
    assert score.intercept == float(Fraction(last.intercept_) - shift)


TABLE = pd.DataFrame(
    {
        "age": POINTS[:, 0],
        "region": np.array(["north", "south", "islands"])[np.arange(60) % 3],
        "pressure": POINTS[:, 2],
        "sex": np.where(POINTS[:, 1] == 1, "m", "f"),
    }
)
PATIENT = xp.Box(
    sex=xp.categories("m", "f"),
    age=(10, 100),
    pressure=(50, 200),
    region=xp.categories("north", "south", "islands"),
)


def check_table(model: Any, box: xp.Box = PATIENT) -> None:
    aligned = xp.from_sklearn(model, box, 1).score.on_box(box)
    rows = TABLE[list(box.names or ())].to_dict("records")
    computed = [aligned.at(box.locate(row) or ()) for row in rows]
    np.testing.assert_allclose(computed, told(model, TABLE), rtol=1e-9, atol=1e-9)


COLUMNS = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler(), PCA(1)), ["age", "pressure"]),
    (
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")),
        ["region", "sex"],
    ),
)


def test_numbers_and_categories_go_through_pipelines_of_their_own() -> None:
    check_table(fitted(make_pipeline(COLUMNS, LogisticRegression()), TABLE))
    check_table(fitted(make_pipeline(COLUMNS, StandardScaler(), PCA(3), LinearSVC()), TABLE))


def test_a_category_whose_column_was_not_selected_has_weight_zero() -> None:
    encoded = make_column_transformer((OneHotEncoder(), ["region"]), ("passthrough", ["age"]))
    model = fitted(make_pipeline(encoded, SelectKBest(k=2), Ridge()), TABLE)
    check_table(model)


def test_a_column_that_was_not_selected_need_not_be_in_the_domain() -> None:
    scaled = make_column_transformer((StandardScaler(), ["age", "pressure"]))
    model = fitted(make_pipeline(scaled, SelectKBest(k=1), Ridge()), TABLE)
    check_table(model, xp.Box(pressure=(50, 200)))


def test_a_coordinate_is_a_number_or_has_categories() -> None:
    encoded = make_column_transformer((OneHotEncoder(), [1]), ("passthrough", [1]))
    model = fitted(make_pipeline(encoded, Ridge()))
    with pytest.raises(xp.InvalidInput) as caught:
        xp.from_sklearn(model, PLAIN, 1)
    assert str(caught.value) == "model: takes 1 both as a number and by its categories"


PARTS = ["scale", "project", "select", "degree"]


@st.composite
def steps(draw: st.DrawFn, width: int = 3, depth: int = 2) -> tuple[list[Any], int]:
    """Steps that take so many columns, and how many they make.

    No column depends on the others, for scalers would stretch what rounding leaves of it.
    """
    result: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from([*PARTS, "nest", "split"] if depth else PARTS))
        size = draw(st.integers(1, width))
        if kind == "scale":
            result.append(draw(st.sampled_from(SCALERS))())
        elif kind == "project":
            projections = [PCA(size), PCA(size, whiten=True), IncrementalPCA(size)]
            # A randomized search for directions wants fewer of them than columns.
            projections += [TruncatedSVD(size)] if size < width else []
            result.append(draw(st.sampled_from(projections)))
            width = size
        elif kind == "select":
            selectors = [SelectKBest(k=size)]
            selectors += [RFE(Ridge(), n_features_to_select=size)] if width > 1 else []
            result.append(draw(st.sampled_from(selectors)))
            width = size
        elif kind == "degree":
            result.append(PolynomialFeatures(1, include_bias=False, interaction_only=size == 1))
        elif kind == "nest":
            inner, width = draw(steps(width, depth - 1))
            result.append(make_pipeline(FunctionTransformer(), *inner))
        else:
            order = draw(st.permutations(range(width)))
            parts, width = [], 0
            for name, columns in (("a", order[:size]), ("b", order[size:])):
                inner, aligned = draw(steps(max(len(columns), 1), depth - 1))
                parts.append((name, make_pipeline(FunctionTransformer(), *inner), list(columns)))
                width += aligned if columns else 0
            weights = draw(st.sampled_from([None, {"a": -3, "b": 0.1}]))
            result.append(ColumnTransformer(parts, transformer_weights=weights))
    return result, width


@settings(max_examples=30)
@given(
    steps(),
    st.sampled_from([Ridge(), LinearRegression(), LogisticRegression(), LinearSVC(max_iter=50)]),
    st.integers(0, 2**32),
)
def test_whatever_the_steps_are_the_query_has_the_score_of_the_model(
    drawn: tuple[list[Any], int], last: Any, seed: int
) -> None:
    model = fitted(make_pipeline(*drawn[0], last))
    check(model, people(10, seed)[0])


NORMALS = np.random.default_rng(4).normal(size=(40, 2))


@pytest.mark.parametrize(
    ("step", "attribute"),
    [
        (StandardScaler(), "scale_"),
        (RobustScaler(), "scale_"),
        (MaxAbsScaler(), "scale_"),
        (MinMaxScaler(), "data_range_"),
        (PCA(whiten=True), "explained_variance_"),
    ],
)
def test_a_scale_that_is_tiny_next_to_the_others_is_warned_about(step: Any, attribute: str) -> None:
    box = xp.Box([(-9, 9), (-9, 9)])
    for factor, tiny in ((1e-9, False), (1e-11, True)):
        rows = NORMALS * [1, factor]
        model = make_pipeline(clone(step), LinearRegression()).fit(rows, NORMALS[:, 0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            xp.from_sklearn(model, box, 1, range=(-1, 1), clip=True)
        assert [warning.category for warning in caught] == [TinyScaleWarning] * tiny
        for warning in caught:
            assert f"{attribute}[1] is a scale of" in str(warning.message)
            assert warning.filename == __file__
