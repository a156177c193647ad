"""Basic composition: sampled questions for each subject, at equal parts of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs.outcomes import Outcomes
from expost.designs.strategies._fixed_plan import fixed_plan
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, Model

__all__ = ["BasicComposition"]


@dataclass(frozen=True)
class BasicComposition:
    """Each subject answers ``asked`` sampled questions, each at an equal part of the budget.

    With one of them it is random sampling: one question at the full budget. Epsilons add up to the
    budget, so no filter has to look at answers.
    """

    asked: int
    of: int
    latest: ClassVar[Arrival] = Arrival.SEQUENTIAL

    @property
    def family(self) -> str:
        if self.asked > 1:
            return "basic composition"
        return "one sampled question" if self.of > 1 else "single question"

    @property
    def name(self) -> str:
        if self.of == 1:
            return "single question"
        if self.asked == 1:
            return "one sampled question"
        if self.asked == self.of:
            return f"basic composition, all {self.of}"
        return f"basic composition, {self.asked} sampled questions"

    @property
    def description(self) -> str:
        if self.of == 1:
            return "Ask the question once, at the full budget."
        if self.asked == 1:
            return (
                f"Draw one of the {self.of} questions for each subject in advance, and ask only "
                "that one, at the full budget."
            )
        which = "every question" if self.asked == self.of else f"{self.asked} sampled questions"
        return f"Ask each subject {which}, each with 1/{self.asked} of the budget."

    def fits(self, model: Model) -> bool:
        return True

    def outcomes(self, model: Model, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        each = epsilon / self.asked
        tables = [question.best(model.support, each)[1] for question in model.questions]
        return fixed_plan(tables, self.asked, model, simulation)
