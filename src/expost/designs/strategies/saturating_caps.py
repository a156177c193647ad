"""Saturating queries: each response ends at a cap, and the caps rise in steps.

After a response of such a query the likelihood is E on a set of values and 1 elsewhere, whatever
was answered before. So subjects are in few states, and what is seen of them is one exact channel.
Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice
from typing import ClassVar

import numpy as np

from expost.designs._accuracy import Outcomes
from expost.designs.strategies._fixed_plan import reason_against_simulation
from expost.designs.strategies._saturating_states import SaturatingStates
from expost.designs.strategies._strategy import (
    LEAST_LEFT,
    NEEDS_STATEMENTS,
    NOT_REPORTABLE,
    Simulation,
    equal_steps,
    questions_text,
)
from expost.designs.study import Arrival, StudyModel
from expost.saturation import equal_caps, geometric_caps

__all__ = ["SaturatingCaps"]


@dataclass(frozen=True)
class SaturatingCaps:
    """Ask saturating queries about sampled questions, in their order.

    ``sampled`` is None if their number is unknown: each then spends a third of what remains.
    Otherwise the caps are equal steps up to the budget.
    """

    sampled: int | None
    total: int
    family: ClassVar[str] = "saturating queries"

    @property
    def latest_arrival(self) -> Arrival:
        return Arrival.OPEN_ENDED if self.sampled is None else Arrival.SEQUENTIAL

    @property
    def name(self) -> str:
        if self.sampled is None:
            return "saturating, a third of the remainder"
        if self.sampled == self.total:
            return "saturating, equal steps"
        return f"saturating, {self.sampled} sampled questions"

    @property
    def description(self) -> str:
        if self.sampled is None:
            return (
                "Ask all subjects every question as it comes, with a saturating query whose cap "
                "spends a third of the remaining budget."
            )
        return (
            f"Ask each subject {questions_text(self.sampled, self.total)} with saturating queries, "
            f"whose caps are {equal_steps(self.sampled)}."
        )

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if not model.all_statements:
            return NEEDS_STATEMENTS
        if not model.support.reportable:
            return NOT_REPORTABLE
        if len(model.questions) == 1:
            return "with one question they are randomized response"
        if len(model.support) == 2:
            return "on two values, randomized response reveals as much"
        return reason_against_simulation(model)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        if self.sampled is None:
            possible_caps = islice(geometric_caps(epsilon), self.total)
            caps = tuple(cap for cap in possible_caps if epsilon - cap >= LEAST_LEFT)
            plans = [tuple(range(len(caps)))]
        else:
            caps = equal_caps(epsilon, questions=self.sampled)
            plans = list(combinations(range(self.total), self.sampled))
        answering = tuple(
            len(caps) / self.total if self.sampled else float(question < len(caps))
            for question in range(self.total)
        )
        combined, masses = model.combined, np.bincount(model.cells).astype(np.float64)
        states = SaturatingStates(combined, masses, list(map(float, caps)), plans, answering)
        outcomes = states.outcomes(simulation)
        return replace(outcomes, cells=outcomes.cells[model.cells])
