"""Queries from regressions of statsmodels predict as they do; everything else is one clear line."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.queries.models import from_statsmodels
from support.sleep_survey import NAMED, NAMES, PLAIN, chances, one_bit, people, scores

POINTS, HOURS = people(80)
# Not a clean cut, which would have no best fit.
LONG = (np.median(HOURS) < HOURS + 3 * np.random.default_rng(5).normal(size=80)).astype(int)
FRESH, _ = people(30, seed=2)
TABLE = pd.DataFrame(POINTS, columns=NAMES)
WITH_CONSTANT = sm.add_constant(TABLE)
Binomial = sm.families.Binomial
LINKS = sm.families.links

REGRESSIONS = {
    "OLS": lambda x: sm.OLS(HOURS, x).fit(),
    "robust errors": lambda x: sm.OLS(HOURS, x).fit(cov_type="HC3"),
    "elastic net": lambda x: sm.OLS(HOURS, x).fit_regularized(alpha=0.01),
    "WLS": lambda x: sm.WLS(HOURS, x, weights=np.arange(1, 81)).fit(),
    "GLS": lambda x: sm.GLS(HOURS, x).fit(),
    "RLM": lambda x: sm.RLM(HOURS, x).fit(),
    "QuantReg": lambda x: sm.QuantReg(HOURS, x).fit(),
    "Gaussian GLM": lambda x: sm.GLM(HOURS, x).fit(),
    "Logit": lambda x: sm.Logit(LONG, x).fit(disp=0),
    "Logit with a penalty": lambda x: sm.Logit(LONG, x).fit_regularized(alpha=0.1, disp=0),
    "Probit": lambda x: sm.Probit(LONG, x).fit(disp=0),
    "logistic GLM": lambda x: sm.GLM(LONG, x, family=Binomial()).fit(),
    "probit GLM": lambda x: sm.GLM(LONG, x, family=Binomial(LINKS.Probit())).fit(),
}
KINDS = {"Logit": "logistic", "logistic": "logistic", "Probit": "probit", "probit": "probit"}


def check(query: Any, domain: Any, names: list[str] | None, predicted: Any, points: Any) -> None:
    """The prediction is the score, or the probability that the response speaks of."""
    predicted = np.asarray(predicted)
    ends = query.on(domain).responses
    if query.kind == "linear":
        np.testing.assert_allclose(scores(query, domain, points, names), predicted, rtol=1e-9)
    if names is not None:
        columns = dict(zip(names, points.T, strict=True))
        points = np.array([columns.get(name, np.full(len(points), 20)) for name in domain.names]).T
    share = (predicted - ends[0]) / (ends[1] - ends[0])
    np.testing.assert_allclose(chances(query, domain, points), one_bit(share, 1), rtol=1e-9)


# A search of statsmodels may overflow on its way.
fits = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@fits
@pytest.mark.parametrize("fit", REGRESSIONS.values(), ids=REGRESSIONS)
@pytest.mark.parametrize("order", [["const", *NAMES], [*NAMES[::-1], "const"], NAMES])
def test_a_regression_is_asked_about_what_it_predicts(fit: Any, order: list[str]) -> None:
    results = fit(WITH_CONSTANT[order])
    query = from_statsmodels(results, NAMED, 1)
    fresh = sm.add_constant(pd.DataFrame(FRESH, columns=NAMES))[order]
    check(query, NAMED, NAMES, results.predict(fresh), FRESH)


@fits
@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_curve_gives_the_kind_of_query(name: str) -> None:
    query = from_statsmodels(REGRESSIONS[name](WITH_CONSTANT), NAMED, 1)
    assert query.kind == KINDS.get(name.split()[0], "linear")


def test_an_array_goes_by_position_or_by_given_names() -> None:
    results = sm.OLS(HOURS, sm.add_constant(POINTS)).fit()
    predicted = results.predict(sm.add_constant(FRESH))
    check(from_statsmodels(results, PLAIN, 1), PLAIN, None, predicted, FRESH)
    query = from_statsmodels(results, NAMED, 1, features=NAMES)
    check(query, NAMED, NAMES, predicted, FRESH)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(["OLS", "Logit", "Probit"]), st.booleans())
def test_random_weights_give_the_same_prediction(seed: int, name: str, constant: bool) -> None:
    # Fitting finds what it finds; here a regression has any parameters.
    table = WITH_CONSTANT if constant else TABLE
    model = {"OLS": sm.OLS, "Logit": sm.Logit, "Probit": sm.Probit}[name](LONG, table)
    generator = np.random.default_rng(seed)
    results = model.fit(disp=0) if name != "OLS" else model.fit()
    spread = 10.0 ** generator.integers(-4, 0)
    results._results.params = generator.normal(0, spread, table.shape[1])
    points, _ = people(10, seed)
    fresh = pd.DataFrame(points, columns=NAMES)
    predicted = results.predict(sm.add_constant(fresh) if constant else fresh)
    query = from_statsmodels(results, NAMED, 1)
    check(query, NAMED, NAMES, predicted, points)


def test_a_constant_may_have_another_name_and_another_value() -> None:
    results = sm.OLS(HOURS, TABLE.assign(all=5.0)).fit()
    query = from_statsmodels(results, NAMED, 1)
    predicted = results.predict(pd.DataFrame(FRESH, columns=NAMES).assign(all=5.0))
    check(query, NAMED, NAMES, predicted, FRESH)
    assert query.score.intercept == 5 * results.params["all"]


def test_a_coordinate_that_is_constant_in_the_data_is_a_coordinate() -> None:
    men = TABLE.assign(sex=1.0)
    results = sm.OLS(HOURS, men).fit()
    query = from_statsmodels(results, NAMED, 1)
    check(query, NAMED, NAMES, results.predict(pd.DataFrame(FRESH, columns=NAMES)), FRESH)


def test_a_regression_from_a_file() -> None:
    results = pickle.loads(pickle.dumps(sm.Logit(LONG, WITH_CONSTANT).fit(disp=0)))
    query = from_statsmodels(results, NAMED, 1)
    fresh = sm.add_constant(pd.DataFrame(FRESH, columns=NAMES))
    check(query, NAMED, NAMES, results.predict(fresh), FRESH)


PATIENTS = TABLE.assign(
    region=np.array(["north", "south", "islands"])[np.arange(80) % 3],
    male=TABLE["sex"] == 1,
    hours=HOURS,
    long=LONG,
)
PATIENT = xp.Box(
    male=xp.categories("True", "False"),
    age=(10, 100),
    region=xp.categories("north", "south", "islands"),
)


@pytest.mark.parametrize(
    "terms",
    [
        "age + region + male",
        "C(region) + age",
        "C(region, Treatment(reference='south')) + C(male)",
        "region - 1",
        "C(region) + age - 1",
        "region_north + region_south + age",
    ],
)
@pytest.mark.parametrize("method", [smf.ols, smf.probit])
def test_a_formula_has_weights_of_categories(method: Any, terms: str) -> None:
    outcome = "hours" if method is smf.ols else "long"
    options = {} if method is smf.ols else {"disp": 0}
    dummies = {f"region_{name}": PATIENTS["region"].eq(name) * 1 for name in ("north", "south")}
    table = PATIENTS.assign(**dummies)
    results = method(f"{outcome} ~ {terms}", table).fit(**options)
    query = from_statsmodels(results, PATIENT, 1)
    aligned = query.score.on_box(PATIENT)
    rows = PATIENTS.assign(male=PATIENTS["male"].map(str))[["age", "region", "male"]]
    computed = [aligned.at(PATIENT.locate(row) or ()) for row in rows.to_dict("records")]
    expected = results.predict(table, which="linear") if method is smf.probit else results.predict()
    np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-9)


SUPPORTED = (
    "results: must be what fit() of OLS, WLS, GLS, RLM, QuantReg, Logit or Probit of statsmodels "
    "returns, or that of a GLM with a Binomial family and a Logit or Probit link, or a Gaussian "
    "family"
)


class Doubled(sm.OLS):  # type: ignore[misc]
    """A subclass may predict otherwise."""


def without_data() -> Any:
    results = sm.Logit(LONG, WITH_CONSTANT).fit(disp=0)
    results.remove_data()
    return results


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (3, f"{SUPPORTED}, not int"),
        (Doubled(HOURS, TABLE).fit(), f"{SUPPORTED}, not Doubled"),
        (sm.Poisson(LONG, TABLE / 100).fit(disp=0), f"{SUPPORTED}, not Poisson"),
        (
            sm.GLM(LONG, TABLE, family=sm.families.Poisson()).fit(),
            f"{SUPPORTED}, not a GLM with family Poisson and link Log",
        ),
        (
            sm.GLM(LONG, TABLE / 100, family=Binomial(LINKS.CLogLog())).fit(),
            f"{SUPPORTED}, not a GLM with family Binomial and link CLogLog",
        ),
        (sm.OLS(HOURS, TABLE), "results: this OLS is not fitted; give what fit() returns"),
        (
            sm.OLS(np.stack([HOURS, HOURS], axis=1), TABLE).fit(),
            "results: has 2 outputs; a query needs exactly 1",
        ),
        (
            sm.Logit(LONG, TABLE, offset=HOURS / 10).fit(disp=0),
            "results: was fitted with an offset, which a query does not have",
        ),
        (
            sm.GLM(LONG, TABLE, family=Binomial(), offset=HOURS / 10).fit(),
            "results: was fitted with an offset, which a query does not have",
        ),
        (without_data(), "results: its data was removed, and with it the names of its parameters"),
        (
            smf.ols("hours ~ age + np.log(pressure)", PATIENTS).fit(),
            "weights.np.log(pressure): the domain has no such coordinate",
        ),
        (
            smf.ols("hours ~ age + region", PATIENTS).fit(),
            "results: encodes 'region', which has no categories in the domain",
        ),
        (
            sm.OLS(HOURS, POINTS).fit(),
            "features: the model was fitted without names; give them, in its order",
        ),
    ],
)
def test_other_results_are_one_line(results: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        from_statsmodels(results, NAMED, 1)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("terms", "labels", "message"),
    [
        (
            "region",
            ["north", "south", "west", "islands"],
            "results: of the categories of 'region' it has no parameters for 'west', 'islands'; "
            "only one that others are compared with has none",
        ),
        (
            "region - 1",
            ["north", "west"],
            "results: of the categories of 'region' it has no parameters for 'west'; "
            "only one that others are compared with has none",
        ),
        (
            "C(region, Sum)",
            ["north", "south", "islands"],
            "weights.C(region, Sum)[S.islands]: the domain has no such coordinate",
        ),
    ],
)
def test_categories_that_do_not_fit_are_one_line(
    terms: str, labels: list[str], message: str
) -> None:
    results = smf.ols(f"hours ~ {terms}", PATIENTS).fit()
    with pytest.raises(xp.InvalidInput) as caught:
        from_statsmodels(results, xp.Box(region=xp.categories(*labels)), 1)
    assert str(caught.value).startswith(message)


def test_only_a_linear_query_has_a_range() -> None:
    results = sm.Probit(LONG, WITH_CONSTANT).fit(disp=0)
    with pytest.raises(xp.InvalidInput, match=r"^range: is for linear queries, and a Probit beco"):
        from_statsmodels(results, NAMED, 1, range=(0, 1))
    sleep = sm.OLS(HOURS, WITH_CONSTANT).fit()
    clipped = from_statsmodels(sleep, NAMED, 1, range=(4, 12), clip=True)
    assert clipped.on(NAMED).responses == (4, 12)


def test_statsmodels_is_never_imported_for_something_else() -> None:
    program = (
        "import sys, expost as xp\n"
        "from expost.queries.models import from_statsmodels\n"
        "try: from_statsmodels(3, xp.Box([(0, 1)]), 1)\n"
        "except xp.InvalidInput: sys.exit('statsmodels' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
