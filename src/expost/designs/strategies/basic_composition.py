"""Basic composition: sampled questions for each subject, at equal parts of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs._accuracy import Outcomes
from expost.designs._goals import GroupQuestion
from expost.designs.strategies._fixed_plan import fixed_plan, reason_against_plan
from expost.designs.strategies._strategy import Simulation, questions_text
from expost.designs.study import Arrival, StudyModel
from expost.queries import Query

__all__ = ["BasicComposition"]


@dataclass(frozen=True)
class BasicComposition:
    """Each subject answers ``sampled`` sampled questions, each at an equal part of the budget.

    With one of them it is random sampling: one question at the full budget. Epsilons add up to the
    budget, so no filter has to look at answers.
    """

    sampled: int
    total: int
    latest_arrival: ClassVar[Arrival] = Arrival.SEQUENTIAL

    @property
    def family(self) -> str:
        if self.sampled > 1:
            return "basic composition"
        return "one sampled question" if self.total > 1 else "single question"

    @property
    def name(self) -> str:
        if self.total == 1:
            return "single question"
        if self.sampled == 1:
            return "one sampled question"
        if self.sampled == self.total:
            return f"basic composition, all {self.total}"
        return f"basic composition, {self.sampled} sampled questions"

    @property
    def description(self) -> str:
        if self.total == 1:
            return "Ask the question once, at the full budget."
        if self.sampled == 1:
            return (
                f"Draw one of the {self.total} questions for each subject in advance, and ask only "
                "that one, at the full budget."
            )
        questions = questions_text(self.sampled, self.total)
        return f"Ask each subject {questions}, each with 1/{self.sampled} of the budget."

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        is_report = isinstance(model.questions[0], GroupQuestion) and model.support.reportable
        if self.total == 1 and is_report and model.cell_count == len(model.support):
            return "it is the full-value report"
        return reason_against_plan(model, self.sampled)

    def queries(self, model: StudyModel, epsilon: Fraction) -> tuple[Query, ...]:
        """Return the query for each question; one about a distribution asks for the group."""
        part = epsilon / self.sampled
        return tuple(question.best_query(model.support, part) for question in model.questions)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        return fixed_plan(model, [epsilon / self.sampled] * self.total, self.sampled, simulation)
