"""Queries from fitted models score as the models do, whatever they were fitted on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    StandardScaler,
)

import expost as xp
from support.sleep_survey import HIGH, LOW, NAMED, NAMES, PLAIN, chances, one_bit, people, scores

POINTS, HOURS = people()
LONG = np.median(HOURS) < HOURS
REGRESSIONS = [LinearRegression(), Ridge(3), Lasso(0.01), Ridge(1, fit_intercept=False)]
SCALERS = [
    [],
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False)],
    [StandardScaler(with_mean=False, with_std=False)],
    [StandardScaler(), StandardScaler()],
]


@pytest.mark.parametrize("scalers", SCALERS, ids=range(len(SCALERS)))
@pytest.mark.parametrize("regression", REGRESSIONS, ids=lambda model: type(model).__name__)
def test_a_regression_scores_as_it_predicts(regression: Any, scalers: list[Any]) -> None:
    model = make_pipeline(*scalers, regression).fit(POINTS, HOURS)
    query = xp.from_sklearn(model, PLAIN, "1")
    fresh, _ = people(seed=2)
    np.testing.assert_allclose(scores(query, PLAIN, fresh, None), model.predict(fresh), rtol=1e-9)
    assert query.kind == "linear"
    assert query.epsilon == 1


@pytest.mark.parametrize("scalers", SCALERS, ids=range(len(SCALERS)))
def test_a_classification_scores_as_it_decides(scalers: list[Any]) -> None:
    labels = np.where(LONG, "long", "brief")
    model = make_pipeline(*scalers, LogisticRegression(max_iter=5000)).fit(POINTS, labels)
    query = xp.from_sklearn(model, PLAIN, "0.5")
    fresh, _ = people(seed=3)
    expected = model.decision_function(fresh)
    np.testing.assert_allclose(scores(query, PLAIN, fresh, None), expected, rtol=1e-9, atol=1e-9)
    assert query.kind == "logistic"


def test_response_1_is_the_second_class() -> None:
    model = LogisticRegression(max_iter=5000).fit(POINTS, np.where(LONG, "b", "a"))
    query = xp.from_sklearn(model, PLAIN, "2")
    assert model.classes_.tolist() == ["a", "b"]
    points, _ = people(20, seed=4)
    expected = one_bit(model.predict_proba(points)[:, 1], 2)
    np.testing.assert_allclose(chances(query, PLAIN, points), expected, rtol=1e-9)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("scalers", [[], [StandardScaler()]])
def test_names_are_matched_whatever_their_order(
    frame: Any, order: list[int], scalers: list[Any]
) -> None:
    names = [NAMES[j] for j in order]
    table = frame({name: POINTS[:, NAMES.index(name)] for name in names})
    model = make_pipeline(*scalers, Ridge()).fit(table, HOURS)
    query = xp.from_sklearn(model, NAMED, "1")
    fresh, _ = people(seed=5)
    expected = model.predict(frame(dict(zip(NAMES, fresh.T, strict=True)))[names])
    np.testing.assert_allclose(scores(query, NAMED, fresh, NAMES), expected, rtol=1e-9)


def test_scaled_output_of_another_kind_has_the_same_names() -> None:
    table = pd.DataFrame(POINTS, columns=NAMES)
    model = make_pipeline(StandardScaler(), Ridge()).set_output(transform="pandas")
    query = xp.from_sklearn(model.fit(table, HOURS), NAMED, 1)
    expected = model.predict(table)
    np.testing.assert_allclose(scores(query, NAMED, POINTS, NAMES), expected, rtol=1e-9)


def test_features_name_what_an_array_does_not() -> None:
    model = Ridge().fit(POINTS, HOURS)
    query = xp.from_sklearn(model, NAMED, 1, features=NAMES)
    np.testing.assert_allclose(
        scores(query, NAMED, POINTS, NAMES), model.predict(POINTS), rtol=1e-9
    )


def test_the_scaler_is_folded_exactly_and_rounded_once() -> None:
    model = make_pipeline(StandardScaler(), Ridge()).fit(POINTS * 1e6 + 1e9, HOURS)
    scaler, ridge = (step for _, step in model.steps)
    box = xp.Box([(0, 1e10)] * 3)
    score = xp.from_sklearn(model, box, 1).score
    exact = Fraction(float(ridge.intercept_))
    columns = zip(score.weights, ridge.coef_, scaler.mean_, scaler.scale_, strict=True)
    for computed, weight, mean, scale in columns:
        folded = Fraction(float(weight)) / Fraction(float(scale))
        assert computed == float(folded)
        exact -= folded * Fraction(float(mean))
    assert score.intercept == float(exact)


def test_the_range_of_a_regression() -> None:
    model = LinearRegression().fit(POINTS, HOURS)
    corners = np.array(np.meshgrid(*zip(LOW, HIGH, strict=True))).reshape(3, -1).T
    low, high = xp.from_sklearn(model, PLAIN, 1).on(PLAIN).responses
    predicted = model.predict(corners)
    assert low == pytest.approx(predicted.min())
    assert high == pytest.approx(predicted.max())
    clipped = xp.from_sklearn(model, PLAIN, 1, range=(4, 12), clip=True)
    assert clipped.on(PLAIN).responses == (4, 12)
    with pytest.raises(xp.InvalidInput, match="range: the score reaches"):
        xp.from_sklearn(model, PLAIN, 1, range=(4, 12))


def test_a_finite_set_of_vectors_or_of_numbers() -> None:
    table = pd.DataFrame(POINTS, columns=NAMES)
    rows = xp.FiniteSet(POINTS[:50].tolist(), names=NAMES)
    model = LinearRegression().fit(table, HOURS)
    query = xp.from_sklearn(model, rows, 1)
    np.testing.assert_allclose(query.score.on_set(rows).values, model.predict(table[:50]))
    ages = xp.FiniteSet(range(10, 100))
    single = LinearRegression().fit(POINTS[:, :1], HOURS)
    assert xp.from_sklearn(single, ages, 1, features=["value"]).on(ages).responses


def test_a_model_from_a_file_and_single_precision() -> None:
    model = pickle.loads(pickle.dumps(Ridge().fit(POINTS.astype(np.float32), HOURS)))
    query = xp.from_sklearn(model, PLAIN, 1)
    np.testing.assert_allclose(scores(query, PLAIN, POINTS, None), model.predict(POINTS), rtol=1e-9)


def test_one_target_in_a_column_is_one_output() -> None:
    model = LinearRegression().fit(POINTS, HOURS[:, None])
    expected = model.predict(POINTS)[:, 0]
    query = xp.from_sklearn(model, PLAIN, 1)
    np.testing.assert_allclose(scores(query, PLAIN, POINTS, None), expected, rtol=1e-9)


PATIENTS = pd.DataFrame(
    {
        "age": POINTS[:, 0],
        "region": np.array(["north", "south", "islands"])[np.arange(300) % 3],
        "sex": np.where(POINTS[:, 1] == 1, "m", "f"),
    }
)
PATIENT = xp.Box(
    sex=xp.categories("m", "f"),
    age=(10, 100),
    region=xp.categories("north", "south", "islands"),
)
ENCODERS = {
    "all of them": [(OneHotEncoder(), ["region", "sex"]), (StandardScaler(), ["age"])],
    "without the first": [
        ("passthrough", ["age"]),
        (OneHotEncoder(drop="first"), ["region"]),
        (OneHotEncoder(drop="if_binary"), ["sex"]),
    ],
    "by place": [(OneHotEncoder(), slice(1, 3)), ("passthrough", [0])],
    "age left out": [(OneHotEncoder(), ["sex"]), ("drop", ["age"])],
    "age twice": [("passthrough", ["age"]), (StandardScaler(), ["age"])],
    "by a mask": [(OneHotEncoder(), [False, True, True]), (StandardScaler(), ["age"])],
}


def categorical_scores(query: Any, box: xp.Box, table: pd.DataFrame) -> list[float]:
    aligned = query.score.on_box(box)
    return [aligned.at(box.locate(row)) for row in table.to_dict("records")]


@pytest.mark.parametrize("encoders", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("scalers", [[], [StandardScaler(with_mean=False)]], ids=["", "scaled"])
def test_categories_get_the_weights_of_their_columns(encoders: Any, scalers: list[Any]) -> None:
    columns = make_column_transformer(*encoders, sparse_threshold=0)
    model = make_pipeline(columns, *scalers, LogisticRegression(max_iter=5000))
    model.fit(PATIENTS, LONG)
    query = xp.from_sklearn(model, PATIENT, 1)
    expected = model.decision_function(PATIENTS)
    computed = categorical_scores(query, PATIENT, PATIENTS)
    np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-9)


def test_what_remains_is_passed_through() -> None:
    columns = make_column_transformer((OneHotEncoder(), ["region", "sex"]), remainder="passthrough")
    model = make_pipeline(columns, Ridge()).fit(PATIENTS, HOURS)
    query = xp.from_sklearn(model, PATIENT, 1)
    computed = categorical_scores(query, PATIENT, PATIENTS)
    np.testing.assert_allclose(computed, model.predict(PATIENTS), rtol=1e-9)


@pytest.mark.parametrize("drop_first", [False, True])
def test_columns_of_dummies_are_matched_by_name(drop_first: bool) -> None:
    dummies = pd.get_dummies(PATIENTS, drop_first=drop_first)
    model = Ridge().fit(dummies, HOURS)
    query = xp.from_sklearn(model, PATIENT, 1)
    computed = categorical_scores(query, PATIENT, PATIENTS)
    np.testing.assert_allclose(computed, model.predict(dummies), rtol=1e-9)


def test_an_encoder_alone_in_a_plain_box() -> None:
    table = PATIENTS[["region", "sex"]].to_numpy()
    model = make_pipeline(OneHotEncoder(drop="first"), Ridge()).fit(table, HOURS)
    box = xp.Box([xp.categories("islands", "north"), xp.categories("f", "m")])
    query = xp.from_sklearn(model, box, 1)
    aligned = query.score.on_box(box)
    rows = [["islands", "f"], ["north", "m"], ["north", "f"]]
    computed = [aligned.at(box.locate(row) or ()) for row in rows]
    np.testing.assert_allclose(computed, model.predict(np.array(rows, dtype=object)), rtol=1e-9)


@pytest.mark.parametrize(
    ("encoder", "sides", "message"),
    [
        (
            OneHotEncoder(),
            {"region": xp.categories("north", "west")},
            "model: was fitted without the category 'west' of the domain",
        ),
        (
            OneHotEncoder(),
            {"region": (0, 1)},
            "model: encodes 'region', which has no categories in the domain",
        ),
        (
            OneHotEncoder(min_frequency=200),
            {"region": xp.categories("north", "south")},
            "model['columntransformer']['onehotencoder']: "
            "OneHotEncoder puts rare categories together; fit it without min_frequency",
        ),
    ],
)
def test_categories_that_do_not_fit_are_one_line(encoder: Any, sides: Any, message: str) -> None:
    columns = make_column_transformer((encoder, ["region"]))
    model = make_pipeline(columns, Ridge()).fit(PATIENTS, HOURS)
    with pytest.raises(xp.InvalidInput) as caught:
        xp.from_sklearn(model, xp.Box(**sides), 1)
    assert str(caught.value) == message


def test_scikit_learn_is_never_imported_for_something_else() -> None:
    program = (
        "import sys, expost as xp\n"
        "try: xp.from_sklearn(3, xp.Box([(0, 1)]), 1)\n"
        "except xp.InvalidInput: sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
