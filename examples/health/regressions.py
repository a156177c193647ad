"""The four regressions of section 6.3 and appendix E of the paper, as printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import expost as xp

__all__ = ["HOURS", "PERSON", "PRINTED", "Regression"]

PERSON = xp.Box(age=(10, 100), sex=xp.integers(0, 1), pressure=(50, 200), bmi=(10, 50))
# Predicted hours of sleep are cut off at these ends.
HOURS = (0, 12)


@dataclass(frozen=True)
class Regression:
    """An outcome, what it is predicted from, and how. Only hours of sleep are not a yes or no."""

    outcome: str
    weights: Mapping[str, float]
    intercept: float

    @property
    def features(self) -> list[str]:
        return list(self.weights)

    @property
    def logistic(self) -> bool:
        return self.outcome != "sleep"

    def query(self) -> xp.queries.Query:
        """One bit about what is predicted of a person, with epsilon 1."""
        if self.logistic:
            return xp.logistic(self.weights, intercept=self.intercept, epsilon="1")
        return xp.linear(
            self.weights, intercept=self.intercept, range=HOURS, clip=True, epsilon="1"
        )


PRINTED = (
    Regression("heart", {"age": -0.059, "sex": -1.456, "pressure": -0.0134}, 6.177),
    Regression("stroke", {"age": 0.0761, "sex": 0.0952, "bmi": 0.0163}, -7.989),
    Regression("diabetes", {"age": 0.0491, "pressure": -0.0091, "bmi": 0.1039}, -5.07),
    Regression("sleep", {"age": 0.0855, "sex": 0.4617, "pressure": -0.07}, 12.323),
)
