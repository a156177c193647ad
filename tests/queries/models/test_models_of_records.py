"""Fitted models as queries about attributes of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import expost as xp
from expost.queries.models import from_statsmodels

PERSON = xp.Attributes(
    age=xp.integers(0, 9),
    visits=xp.changing([0, 1, 2, 5]),
    region=["n", "s"],
    income=xp.integers(0, 99_999),
)
GENERATOR = np.random.default_rng(1)
ROWS = pd.DataFrame(
    {"visits": GENERATOR.choice([0, 1, 2, 5], 200), "age": GENERATOR.integers(0, 10, 200)}
)
HOURS = 0.3 * ROWS["age"] - 0.2 * ROWS["visits"] + GENERATOR.normal(0, 0.1, 200)
LINE = make_pipeline(StandardScaler(), LinearRegression()).fit(ROWS, HOURS)


def test_a_regression_about_attributes_scores_as_it_predicts() -> None:
    query = xp.from_sklearn(LINE, PERSON, "1", range=(-3, 3)).about("age", "visits", at=4)
    combinations: Any = PERSON.part(("age", "visits")).values
    frame = pd.DataFrame(list(combinations), columns=["age", "visits"])
    likelihood = query.on(PERSON)
    high = likelihood.position(3)
    assert high is not None
    odds = np.e / (1 + np.e)
    for predicted, (age, visits) in zip(
        LINE.predict(frame[["visits", "age"]]), combinations, strict=True
    ):
        location = PERSON.locate({"age": age, "visits": visits, "region": "n", "income": 0})
        assert location is not None
        share = (predicted + 3) / 6
        expected = 1 - odds + (2 * odds - 1) * share
        assert float(likelihood.pmf(location).probability(high)) == pytest.approx(
            expected, abs=1e-9
        )


def test_a_classifier_and_a_regression_of_statsmodels_are_queries_about_attributes() -> None:
    yes = HOURS.median() < HOURS
    classifier = LogisticRegression().fit(ROWS[["age"]], yes)
    assert xp.from_sklearn(classifier, PERSON, "1").about("age").on(PERSON).responses == (0, 1)
    fitted = sm.OLS(HOURS, sm.add_constant(ROWS)).fit()
    query = from_statsmodels(fitted, PERSON, "1", range=(-4, 4))
    about_step = query.about("visits", "age", at=1)
    transcript = xp.Transcript(PERSON).add(about_step, 4)
    assert xp.Transcript.from_json(transcript.to_json()) == transcript


ARRAY = LinearRegression().fit(ROWS.to_numpy(), HOURS)
REGIONS = pd.DataFrame({"region": ["n", "s"] * 100})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: xp.from_sklearn(ARRAY, PERSON, "1"),
            "features: the model was fitted without names; give them, in its order",
        ),
        (
            lambda: xp.from_sklearn(ARRAY, PERSON, "1", features=["age", "height"]),
            "model: unknown attribute 'height'; known: age, visits, region, income",
        ),
        (
            lambda: xp.from_sklearn(ARRAY, PERSON, "1", features=["age", "region"]),
            "domain: region has labels: of Attributes a model takes those of numbers, such as",
        ),
        (
            lambda: xp.from_sklearn(ARRAY, PERSON, "1", features=["age", "income"]),
            "model: age, income have 1,000,000 combinations; a question can be about at most 100,",
        ),
        (
            lambda: xp.from_sklearn(
                make_pipeline(OneHotEncoder(), LinearRegression()).fit(REGIONS, HOURS), PERSON, "1"
            ),
            "model: encodes 'region', which has no categories in the domain",
        ),
        (
            lambda: xp.from_sklearn(LINE, PERSON, "1", range=(-3, 3)).on(PERSON),
            "about: the domain has attributes; call query.about(…) with some of age",
        ),
        (
            lambda: xp.from_sklearn(LINE, PERSON, "1", range=(-3, 3)).about("age").on(PERSON),
            "weights.visits: the domain has no such coordinate; it has age",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_attributes_is_one_line(make: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        make()
    assert str(caught.value).startswith(message)
