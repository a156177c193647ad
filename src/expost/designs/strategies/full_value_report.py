"""The value itself once, at the full budget: whatever is asked later is worked out from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost.designs._accuracy import Outcomes
from expost.designs._goals import one_shot_outcomes
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, StudyModel

__all__ = ["FullValueReport", "JointReport"]


@dataclass(frozen=True)
class FullValueReport:
    """The value by subset selection (randomized response if sets have one value), or Hadamard."""

    way: int
    """Which of the ways, from 0."""
    latest_arrival: ClassVar[Arrival] = Arrival.OPEN_ENDED
    family: ClassVar[str] = "full-value report"

    @property
    def name(self) -> str:
        return f"full-value report, {('subset selection', 'Hadamard response')[self.way]}"

    @property
    def description(self) -> str:
        return (
            "Ask each subject for the whole value once, at the full budget "
            f"({('subset_selection', 'hadamard_response')[self.way]}), and work everything out "
            "from that, even what is thought of later."
        )

    def fits(self, model: StudyModel) -> bool:
        size = len(model.support)
        return model.support.reportable and (size > 2 if self.way else size <= _MOST_BY_SETS)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        cells = np.arange(len(model.support), dtype=np.intp)
        return one_shot_outcomes(cells, model.weights, epsilon)[self.way][1]


# Beyond this subset selection would take long to simulate, and Hadamard response is for that.
_MOST_BY_SETS = 256


@dataclass(frozen=True)
class JointReport:
    """The answers to all questions as one, where all of them are known beforehand."""

    latest_arrival: ClassVar[Arrival] = Arrival.UP_FRONT
    family: ClassVar[str] = "joint report"

    @property
    def name(self) -> str:
        return "joint report"

    @property
    def description(self) -> str:
        return (
            "Ask each subject once, at the full budget, which combination of answers to all "
            "questions is theirs (subset selection over the combinations)."
        )

    def fits(self, model: StudyModel) -> bool:
        if not model.all_statements or not model.support.reportable:
            return False
        return 2 < int(model.combinations.max()) + 1 < len(model.support)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        return one_shot_outcomes(model.combinations, model.weights, epsilon)[0][1]
