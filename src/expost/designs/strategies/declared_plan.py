"""All questions under a budget with a delta, at the largest epsilon of a declared plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.designs._accuracy import Outcomes
from expost.designs.strategies._fixed_plan import fixed_plan, reason_against_plan
from expost.designs.strategies._strategy import Simulation, questions_text
from expost.designs.study import Arrival, StudyModel
from expost.errors import InvalidInput
from expost.filters.rules import Declared
from expost.numbers import bisect, decimal_text

__all__ = ["DeclaredPlan", "largest_of_plan"]

_BITS = 24


@dataclass(frozen=True)
class DeclaredPlan:
    """Ask sampled questions, composed exactly under (epsilon, delta)."""

    sampled: int
    total: int
    delta: Fraction
    latest_arrival: ClassVar[Arrival] = Arrival.SEQUENTIAL
    family: ClassVar[str] = "a budget with a delta"

    @property
    def name(self) -> str:
        everything = self.sampled == self.total
        questions = "all" if everything else questions_text(self.sampled, self.total)
        return f"declared plan with a delta, {questions}"

    @property
    def description(self) -> str:
        return (
            f"Ask each subject {questions_text(self.sampled, self.total)} under ApproximateFilter "
            f"with the rule Declared and a delta of {decimal_text(self.delta)}, each at the "
            "largest epsilon that the plan allows. With a delta the guarantee is weaker."
        )

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if not self.delta:
            return "the study has no delta"
        return reason_against_plan(model, self.sampled)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        query_epsilon = largest_of_plan(epsilon, self.delta, self.sampled)
        return fixed_plan(model, [query_epsilon] * self.total, self.sampled, simulation)


def largest_of_plan(epsilon: Fraction, delta: Fraction, times: int) -> Fraction:
    """Return the largest epsilon, with few digits, at which a plan has so many queries."""

    def fits(query_epsilon: Fraction) -> bool:
        try:
            return Declared.most(epsilon, delta, query_epsilon).plan[0][1] >= times
        except InvalidInput:
            return False

    equal_share = epsilon / times
    largest, _ = bisect(fits, equal_share, epsilon * 2, steps=_BITS)
    return Fraction(int(largest * 10**4), 10**4) if largest > equal_share else equal_share
