"""Made-up patients. They are not data about anybody, and nothing about health follows from them.

Age, sex, blood pressure and body-mass index depend on each other in a plausible way:

    sex       0 or 1, evenly
    age       15 + 80·B, where B has the beta distribution (2, 2)
    bmi       normal around 24 + 0.05·(age - 50), standard deviation 4, within [15, 45]
    pressure  normal around 100 + 0.4·age + 0.8·(bmi - 25) + 3·sex, standard deviation 12,
              within [80, 195]

Their outcomes follow the regressions that the paper printed: a disease is there with the
probability that is predicted, and hours of sleep are normal around what is predicted, standard
deviation 1. So a fit has to find these regressions again, within its standard errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from examples.health.regressions import Regression

__all__ = ["Columns", "patients"]

Columns = dict[str, NDArray[np.float64]]


def patients(regression: Regression, size: int, seed: int) -> Columns:
    """Columns of the data set for one regression; each has patients of its own."""
    # A seed, and the letters of the outcome, so that no two data sets are alike.
    generator = np.random.default_rng([seed, *regression.outcome.encode()])
    sex = generator.integers(0, 2, size).astype(float)
    age = 15 + 80 * generator.beta(2, 2, size)
    bmi = np.clip(generator.normal(24 + 0.05 * (age - 50), 4), 15, 45)
    usual = 100 + 0.4 * age + 0.8 * (bmi - 25) + 3 * sex
    pressure = np.clip(generator.normal(usual, 12), 80, 195)
    columns = {"age": age, "sex": sex, "pressure": pressure, "bmi": bmi}
    score = regression.intercept + sum(w * columns[name] for name, w in regression.weights.items())
    if regression.logistic:
        outcome = (generator.random(size) < 1 / (1 + np.exp(-score))).astype(float)
    else:
        outcome = generator.normal(score, 1)
    return {**columns, regression.outcome: outcome}
