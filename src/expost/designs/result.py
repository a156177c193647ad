"""The result of a design: how accurate each strategy is, and which one is recommended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost.cards import View
from expost.designs.accuracy import Accuracy
from expost.designs.strategies import DeclaredPlan, Strategy
from expost.designs.study import Study
from expost.files.tables import ResultTable

__all__ = ["Design", "Point", "Prediction"]

_SURE = 2.0
"""Differences of fewer standard errors of the simulation are not told apart."""
_ALIKE = 0.01
"""Nobody notices a difference of one per cent."""


@dataclass(frozen=True)
class Prediction:
    """The predicted accuracy of one strategy."""

    strategy: Strategy
    possible: bool
    """Whether the study can carry it out, given when its questions are known."""
    accuracy: Accuracy
    answers: float
    """How many answers a subject gives, on average."""
    answering: tuple[float, ...]
    """The share of subjects who answer in each round."""

    @property
    def name(self) -> str:
        """What to call it."""
        return self.strategy.name

    @property
    def error(self) -> float:
        """The standard error of all goals together: the root of the mean square over goals.

        The error of a mean is relative to the range of its score. Infinite if some goal is not
        determined at all.
        """
        return self.accuracy.together

    @property
    def delta(self) -> Fraction:
        """Of its guarantee: 0 unless it is the weaker one of a budget with a delta."""
        return self.strategy.delta if isinstance(self.strategy, DeclaredPlan) else Fraction(0)

    def like(self, other: Prediction) -> bool:
        """Whether the simulation does not tell the two apart."""
        spread = math.hypot(self.accuracy.simulation_error, other.accuracy.simulation_error)
        return abs(self.error - other.error) <= max(_SURE * spread, _ALIKE * other.error)

    def tree(self) -> dict[str, Any]:
        """The prediction as JSON; what is not determined is null."""
        found = self.accuracy
        return {
            "strategy": self.name,
            "family": self.strategy.family,
            "how": self.strategy.description,
            "possible": self.possible,
            "delta": float(self.delta),
            "error": _number(self.error),
            "simulation_error": _number(found.simulation_error),
            "simulated_groups": found.groups,
            "standard_errors": [_number(error) for error in found.standard_errors],
            "asymptotic": [_number(error) for error in found.asymptotic],
            "answers_per_subject": self.answers,
            "answering": list(self.answering),
        }


@dataclass(frozen=True)
class Point:
    """The best of a family at one budget."""

    epsilon: float
    family: str
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Design(ResultTable):
    """Predictions for all strategies, the best first, and the recommended one.

    :func:`expost.design` returns it.
    """

    study: Study
    predictions: tuple[Prediction, ...]
    curve: tuple[Point, ...] = ()
    """How accurate each family is at other budgets, if that was asked for."""

    @property
    def recommended(self) -> Prediction | None:
        """The most accurate one that the study can carry out; None if none determines all goals.

        One with a delta only if none with the stronger guarantee is as good.
        """
        fit = [each for each in self.predictions if each.possible and math.isfinite(each.error)]
        as_good = (each for each in fit if not each.delta and each.like(fit[0]))
        return next(as_good, fit[0]) if fit else None

    @property
    def alike(self) -> tuple[Prediction, ...]:
        """Others that the simulation does not tell from it."""
        best = self.recommended
        if best is None:
            return ()
        return tuple(
            each
            for each in self.predictions
            if each is not best and each.possible and each.like(best)
        )

    def best_of(self, *families: str) -> Prediction | None:
        """The most accurate one of some families that the study can carry out."""
        for each in self.predictions:
            if each.possible and each.strategy.family in families and math.isfinite(each.error):
                return each
        return None

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        rows = self.predictions
        columns: dict[str, Any] = {
            "strategy": [each.name for each in rows],
            "possible": [each.possible for each in rows],
            "delta": [float(each.delta) for each in rows],
            "error": [each.error for each in rows],
            "simulation_error": [each.accuracy.simulation_error for each in rows],
            "answers_per_subject": [each.answers for each in rows],
        }
        for number, goal in enumerate(self.study.goals):
            errors = [each.accuracy.standard_errors[number] for each in rows]
            columns[f"{number + 1}: {goal.name}"] = errors
        return columns

    def tree(self) -> dict[str, Any]:
        """The design as JSON."""
        best = self.recommended
        return {
            "recommended": None if best is None else best.name,
            "alike": [each.name for each in self.alike],
            "subjects": self.study.subjects,
            "epsilon": float(self.study.epsilon),
            "delta": float(self.study.delta),
            "arrival": self.study.arrival.value,
            "goals": [goal.name for goal in self.study.goals],
            "strategies": [each.tree() for each in self.predictions],
            "by_budget": [
                {"epsilon": point.epsilon, "family": point.family, "error": _number(point.error)}
                for point in self.curve
            ],
        }

    def _view(self) -> View:
        best = self.recommended

        def row(place: int) -> tuple[object, ...]:
            each = self.predictions[place]
            sign = "recommended" if each is best else "" if each.possible else "not possible"
            return each.name, f"{each.error:.4g}", f"{each.answers:.3g}", sign

        return View(
            f"Design({self.study.subjects:,} subjects, {len(self.study.goals)} goals)",
            {"recommended": "none" if best is None else best.name},
            ("strategy", "standard error", "answers per subject", ""),
            len(self.predictions),
            row,
        )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
