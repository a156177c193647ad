"""Fit the four regressions with scikit-learn, ask them as queries, and account for the answers.

    python -m examples.health.train [--data FILE.csv ...] [--patients 20000] [--seed 1]

Without data the patients are made up (patients.py says how).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

import expost as xp
from examples.health.data import load
from examples.health.patients import Columns, patients
from examples.health.regressions import HOURS, PERSON, PRINTED, Regression

__all__ = ["fit", "losses", "main", "query"]


def fit(regression: Regression, columns: Columns) -> Any:
    """A fitted model of scikit-learn; its features are in the order of the regression."""
    features = np.column_stack([columns[name] for name in regression.features])
    # Without a penalty, because that depends on the units of the columns.
    unpenalized = LogisticRegression(C=np.inf, solver="newton-cholesky")
    model = unpenalized if regression.logistic else LinearRegression()
    return model.fit(features, columns[regression.outcome])


def query(regression: Regression, model: Any) -> xp.queries.Query:
    """One bit about what the model predicts of a person, with epsilon 1."""
    if regression.logistic:
        return xp.from_sklearn(model, PERSON, "1", features=regression.features)
    return xp.from_sklearn(model, PERSON, "1", features=regression.features, range=HOURS, clip=True)


def losses(queries: Sequence[xp.queries.Query]) -> dict[tuple[int, ...], float]:
    """A certified bound on the loss of each outcome of the four queries."""
    found: dict[tuple[int, ...], float] = {}
    for responses in product((0, 1), (0, 1), (0, 1), HOURS):
        transcript = xp.Transcript(PERSON)
        for asked, response in zip(queries, responses, strict=True):
            transcript = transcript.add(asked, response)
        found[responses] = xp.realized_loss(transcript, gap=0.001).upper
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="train", description="The four health regressions")
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="FILE.csv")
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.patients < 1000 or options.seed < 0:
        parser.error("--patients is at least 1000, and --seed at least 0")
    try:
        _report(load(options.data), options.patients, options.seed)
    except xp.InvalidInput as error:
        print(f"train: {error}", file=sys.stderr)
        sys.exit(2)


def _report(given: dict[str, Columns], size: int, seed: int) -> None:
    fitted = []
    for regression in PRINTED:
        made_up = regression.outcome not in given
        columns = patients(regression, size, seed) if made_up else given[regression.outcome]
        model = fit(regression, columns)
        rows = len(columns[regression.outcome])
        print(f"{regression.outcome}: {rows:,} {'made-up patients' if made_up else 'rows'}")
        weights = [*np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])]
        names = [*regression.features, "intercept"]
        printed = [*regression.weights.values(), regression.intercept]
        for name, own, theirs in zip(names, weights, printed, strict=True):
            print(f"  {name:<10}{own:>10.4f}   the paper {theirs:>8.4f}")
        fitted.append(query(regression, model))
    _table(losses(fitted), losses([regression.query() for regression in PRINTED]))


def _table(own: dict[tuple[int, ...], float], printed: dict[tuple[int, ...], float]) -> None:
    print("\nheart stroke diabetes sleep   loss at most   with the paper's coefficients")
    for responses, loss in own.items():
        heart, stroke, diabetes, sleep = responses
        print(
            f"{heart:>5}{stroke:>7}{diabetes:>9}{sleep:>6}{loss:>15.3f}{printed[responses]:>17.3f}"
        )
    for name, of in (("median", statistics.median), ("worst", max)):
        print(f"{name:<27}{of(own.values()):>15.3f}{of(printed.values()):>17.3f}")
    print("The four epsilons add up to 4.")


if __name__ == "__main__":
    main()
