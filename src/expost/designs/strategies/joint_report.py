"""A joint report: one response about the answers to all questions, at the full budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs._accuracy import Outcomes
from expost.designs._reports import Mechanism, Report
from expost.designs.strategies._strategy import NEEDS_STATEMENTS, NOT_REPORTABLE, Simulation
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

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if not model.all_statements:
            return NEEDS_STATEMENTS
        if not model.support.reportable:
            return NOT_REPORTABLE
        match model.cell_count:
            case 2:
                return "all questions are the same"
            case count if count == len(model.support):
                return "the answers tell all values apart, so it is the full-value report"
        return None

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        report = Report.of(Mechanism.SUBSET_SELECTION, model.cell_count, epsilon)
        return report.outcomes(model.cells, model.weights, model.subjects)
