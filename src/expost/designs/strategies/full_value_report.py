"""A full-value report: one response about the value, at the full budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost.designs._accuracy import Outcomes
from expost.designs._reports import Mechanism, Report
from expost.designs.strategies._strategy import NOT_REPORTABLE, Simulation
from expost.designs.study import Arrival, StudyModel

__all__ = ["FullValueReport"]

_QUERIES = {
    Mechanism.RANDOMIZED_RESPONSE: "randomized_response",
    Mechanism.SUBSET_SELECTION: "subset_selection",
    Mechanism.HADAMARD_RESPONSE: "hadamard_response",
    Mechanism.UNARY_ENCODING: "unary_encoding, variant optimized; local_hashing with about "
    "e^epsilon + 1 buckets is as accurate",
}


@dataclass(frozen=True)
class FullValueReport:
    """Ask for the value once, by one of the mechanisms that report it.

    All goals are estimated from it.
    """

    mechanism: Mechanism
    latest_arrival: ClassVar[Arrival] = Arrival.OPEN_ENDED
    family: ClassVar[str] = "full-value report"

    @property
    def name(self) -> str:
        return f"full-value report, {self.mechanism.value}"

    @property
    def description(self) -> str:
        return (
            "Ask each subject for the full value once, at the full budget "
            f"({_QUERIES[self.mechanism]}), and estimate everything from that, even goals that "
            "come up later."
        )

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if not model.support.reportable:
            return NOT_REPORTABLE
        report = Report.of(self.mechanism, len(model.support), epsilon)
        match self.mechanism:
            case Mechanism.SUBSET_SELECTION if report.size == 1:
                return "the best sets have one value, which is randomized response"
            case Mechanism.HADAMARD_RESPONSE if report.count == 2:
                return "on two values it is randomized response"
            case Mechanism.HADAMARD_RESPONSE if not report.is_likelihood_affordable(model.subjects):
                return (
                    "with so many values and subjects only unary encoding is predicted, which "
                    "is at least as accurate"
                )
        return None

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        values = np.arange(len(model.support), dtype=np.intp)
        report = Report.of(self.mechanism, len(values), epsilon)
        return report.outcomes(values, model.weights, model.subjects)
