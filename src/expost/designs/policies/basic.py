"""Some random questions for each subject, with equal parts of the budget: basic composition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs.outcomes import Outcomes
from expost.designs.policies.joint import fixed_plan
from expost.designs.policies.policy import Simulation
from expost.designs.study import Arrival, Model

__all__ = ["Basic"]


@dataclass(frozen=True)
class Basic:
    """Each subject is asked so many random ones of all questions, each at an equal part.

    At one of them it is one random question at the full budget. Epsilons add up to the budget, so
    no filter has to look at answers.
    """

    asked: int
    of: int
    latest: ClassVar[Arrival] = Arrival.IN_TURN

    @property
    def family(self) -> str:
        if self.asked > 1:
            return "basic composition"
        return "one random question" if self.of > 1 else "the question once"

    @property
    def name(self) -> str:
        if self.of == 1:
            return "the question once"
        if self.asked == 1:
            return "one random question each"
        if self.asked == self.of:
            return f"basic composition, all {self.of}"
        return f"basic composition, {self.asked} random ones"

    @property
    def words(self) -> str:
        if self.of == 1:
            return "Ask the question once, at the full budget."
        if self.asked == 1:
            return (
                f"Draw one of the {self.of} questions for each subject beforehand, and ask only "
                "that one, at the full budget."
            )
        which = "every question" if self.asked == self.of else f"{self.asked} random questions"
        return f"Ask each subject {which}, each with 1/{self.asked} of the budget."

    def fits(self, model: Model) -> bool:
        return True

    def outcomes(self, model: Model, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        each = epsilon / self.asked
        tables = [question.best(model.support, each)[1] for question in model.questions]
        return fixed_plan(tables, self.asked, model, simulation)
