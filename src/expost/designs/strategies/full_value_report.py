"""A full-value report: one response about the value, at the full budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost.designs._accuracy import Outcomes
from expost.designs._goals import one_shot_outcomes
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, StudyModel

__all__ = ["FullValueReport"]

# Beyond this number of values, subset selection would take long to simulate.
_MOST_BY_SUBSETS = 256


@dataclass(frozen=True)
class FullValueReport:
    """Ask for the value once, by subset selection or by Hadamard response.

    All goals are estimated from it. Subsets of one value are randomized response.
    """

    hadamard: bool = False
    latest_arrival: ClassVar[Arrival] = Arrival.OPEN_ENDED
    family: ClassVar[str] = "full-value report"

    @property
    def name(self) -> str:
        return f"full-value report, {'Hadamard response' if self.hadamard else 'subset selection'}"

    @property
    def description(self) -> str:
        return (
            "Ask each subject for the full value once, at the full budget "
            f"({'hadamard_response' if self.hadamard else 'subset_selection'}), and estimate "
            "everything from that, even goals that come up later."
        )

    def fits(self, model: StudyModel) -> bool:
        size = len(model.support)
        return model.support.reportable and (
            size > 2 if self.hadamard else size <= _MOST_BY_SUBSETS
        )

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        cells = np.arange(len(model.support), dtype=np.intp)
        return one_shot_outcomes(cells, model.weights, epsilon)[self.hadamard]
