"""A joint report: one response about the answers to all questions, at the full budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs._accuracy import Outcomes
from expost.designs._goals import one_shot_outcomes
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, StudyModel

__all__ = ["JointReport"]


@dataclass(frozen=True)
class JointReport:
    """Ask once for the combination of answers to all questions, if all are known in advance."""

    latest_arrival: ClassVar[Arrival] = Arrival.UP_FRONT
    family: ClassVar[str] = "joint report"
    name: ClassVar[str] = "joint report"
    description: ClassVar[str] = (
        "Ask each subject once, at the full budget, which combination of answers to all "
        "questions is theirs (subset selection over the combinations)."
    )

    def fits(self, model: StudyModel) -> bool:
        if not model.all_statements or not model.support.reportable:
            return False
        return 2 < int(model.combinations.max()) + 1 < len(model.support)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        return one_shot_outcomes(model.combinations, model.weights, epsilon)[0]
