"""The four health regressions, fitted: the models find what was put in, and become queries."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.health.data import load
from examples.health.patients import patients
from examples.health.regressions import HOURS, PERSON, PRINTED, Regression
from examples.health.train import fit, losses, main, query

import expost as xp

PATIENTS = 5000
by_outcome = pytest.mark.parametrize("regression", PRINTED, ids=lambda one: one.outcome)


def design(regression: Regression, columns: dict[str, Any]) -> Any:
    features = [columns[name] for name in regression.features]
    return np.column_stack([*features, np.ones(len(features[0]))])


@by_outcome
def test_a_fit_finds_the_regression_again_within_its_standard_errors(
    regression: Regression,
) -> None:
    columns = patients(regression, PATIENTS, seed=3)
    model = fit(regression, columns)
    x = design(regression, columns)
    true = np.array([*regression.weights.values(), regression.intercept])
    share = 1 / (1 + np.exp(-x @ true))
    information = x.T @ (x * (share * (1 - share))[:, None]) if regression.logistic else x.T @ x
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    found = np.append(np.ravel(model.coef_), model.intercept_)
    assert np.all(abs(found - true) < 4.5 * errors)
    assert np.any(found != true)


@by_outcome
def test_patients_are_in_the_domain_and_of_both_kinds(regression: Regression) -> None:
    columns = patients(regression, PATIENTS, seed=4)
    for name, side in zip(PERSON.names or (), PERSON.columns, strict=True):
        assert side.lower <= columns[name].min() < columns[name].max() <= side.upper
    assert set(columns["sex"]) == {0, 1}
    if regression.logistic:
        assert set(columns[regression.outcome]) == {0, 1}


def test_the_same_seed_draws_the_same_patients_and_another_one_does_not() -> None:
    drawn = [patients(PRINTED[0], 100, seed)["age"].tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != patients(PRINTED[1], 100, 1)["age"].tolist()


@by_outcome
def test_a_query_has_the_probabilities_that_the_model_predicts(regression: Regression) -> None:
    columns = patients(regression, PATIENTS, seed=5)
    model = fit(regression, columns)
    features = design(regression, columns)[:50, :-1]
    if regression.logistic:
        share = model.predict_proba(features)[:, 1]
    else:
        share = np.clip(model.predict(features) / HOURS[1], 0, 1)
    asked: Any = query(regression, model).on(PERSON)
    people = zip(*(columns[name][:50].tolist() for name in PERSON.names or ()), strict=True)
    found = [float(asked.pmf(person).probability(1)) for person in people]
    np.testing.assert_allclose(found, (1 + np.expm1(1) * share) / (1 + np.e), rtol=1e-9)


def test_losses_of_all_outcomes_are_certified_and_near_those_of_the_printed_coefficients() -> None:
    fitted = losses([query(one, fit(one, patients(one, 20_000, seed=1))) for one in PRINTED])
    printed = losses([one.query() for one in PRINTED])
    assert len(fitted) == 16
    assert 3.6041 <= max(printed.values()) <= 3.6053
    assert all(abs(fitted[outcome] - printed[outcome]) < 0.1 for outcome in fitted)


def table(path: Path, columns: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(map(float, column) for column in columns.values()), strict=True))
    return path


def test_columns_from_a_file_are_fitted_as_they_are(tmp_path: Path) -> None:
    made = {one.outcome: patients(one, 1000, seed=6) for one in PRINTED[:2]}
    paths = [table(tmp_path / f"{outcome}.csv", columns) for outcome, columns in made.items()]
    read = load(paths)
    assert list(read) == ["heart", "stroke"]
    for regression in PRINTED[:2]:
        own, other = (fit(regression, each[regression.outcome]) for each in (read, made))
        assert own.coef_.tolist() == other.coef_.tolist()


def test_one_file_may_have_the_columns_of_several_regressions(tmp_path: Path) -> None:
    columns = patients(PRINTED[0], 50, seed=7)
    both = {**columns, "sleep": columns["age"] / 10, "remark": columns["age"]}
    assert list(load([table(tmp_path / "both.csv", both)])) == ["heart", "sleep"]


HEADER = "age,sex,pressure,heart"
ROWS = "50,1,120,0\n60,0,130,1\n70,1,140,0\n40,0,150,1\n45,1,125,0\n"
BAD = {
    "": "has none of the columns heart, stroke, diabetes, sleep",
    "age,sex\n50,1\n": "has none of the columns heart, stroke, diabetes, sleep",
    f"{HEADER}\n": "has too few rows for heart",
    f"{HEADER}\n50,1,120,0\n": "has too few rows for heart",
    "age,sex,heart\n50,1,0\n": "heart needs a column pressure",
    "age,age,heart\n50,50,0\n": "has two columns of one name",
    f"{HEADER}\n50,1,120\n": "row 1: has 3 fields, and the header has 4",
    f"{HEADER}\n{ROWS}50,1,,0\n": "row 6: pressure: must be a number",
    f"{HEADER}\n{ROWS}inf,1,120,0\n": "row 6: age: must be a number",
    f"{HEADER}\n{ROWS}nan,1,120,0\n": "row 6: age: must be a number",
    f"{HEADER}\n{ROWS}50,M,120,0\n": "row 6: sex: must be 0 or 1",
    f"{HEADER}\n{ROWS}50,1,120,2\n": "row 6: heart: must be 0 or 1",
    HEADER + "\n" + "50,1,120,0\n" * 6: "heart is the same in all rows",
    f'{HEADER}\n"50,1,120,0\n': "is not a CSV file in UTF-8",
}


@pytest.mark.parametrize(("text", "reason"), BAD.items(), ids=BAD.values())
def test_a_bad_file_is_one_line(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as exit_:
        main(["--data", str(path)])
    assert exit_.value.code == 2
    assert capsys.readouterr() == ("", f"train: {path}: {reason}\n")


def test_files_that_are_missing_binary_or_about_the_same_outcome_are_one_line(
    tmp_path: Path,
) -> None:
    table(tmp_path / "good.csv", patients(PRINTED[0], 50, seed=8))
    (tmp_path / "binary.csv").write_bytes(b"age,\xff\n")
    for paths, reason in [
        (["missing.csv"], "cannot be read"),
        (["binary.csv"], "is not a CSV file in UTF-8"),
        (["good.csv", "good.csv"], "heart is in another file already"),
    ]:
        with pytest.raises(xp.InvalidInput, match=reason):
            load([tmp_path / name for name in paths])


def test_the_script_says_where_its_patients_are_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "heart.csv", patients(PRINTED[0], 1000, seed=9))
    main(["--data", str(path), "--patients", "2000", "--seed", "2"])
    out = capsys.readouterr().out
    assert "heart: 1,000 rows\n" in out
    assert "stroke: 2,000 made-up patients\n" in out
    assert out.count("the paper ") == 16
    assert len([line for line in out.splitlines() if line[:5].strip() in ("0", "1")]) == 16


@pytest.mark.parametrize("option", [("--patients", "10"), ("--seed", "-1")])
def test_a_number_that_cannot_be_used_is_refused(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(option)
    assert exit_.value.code == 2
    assert "at least" in capsys.readouterr().err
