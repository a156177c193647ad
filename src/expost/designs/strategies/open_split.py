"""A plain split of the budget if the number of questions is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from typing import ClassVar

from expost.designs._accuracy import Outcomes
from expost.designs.strategies._fixed_plan import fixed_plan, reason_against_plan
from expost.designs.strategies._strategy import LEAST_LEFT, Simulation
from expost.designs.study import Arrival, StudyModel
from expost.saturation import geometric_caps

__all__ = ["OpenSplit"]


@dataclass(frozen=True)
class OpenSplit:
    """Each subject answers every question at a share of the budget, until nothing is left.

    ``share`` is None if each question takes a third of what remains.
    """

    share: Fraction | None
    latest_arrival: ClassVar[Arrival] = Arrival.OPEN_ENDED
    family: ClassVar[str] = "basic composition"

    @property
    def name(self) -> str:
        if self.share is None:
            return "basic composition, a third of the remainder"
        return f"basic composition, {self.share} of the budget each"

    @property
    def description(self) -> str:
        if self.share is None:
            return "Ask all subjects every question as it comes, with a third of the remainder."
        return (
            f"Ask all subjects every question as it comes, each with {self.share} of the budget: "
            f"there can be {int(1 / self.share)}."
        )

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if self.share is not None and self.share * len(model.questions) > 1:
            return f"the budget is spent after {int(1 / self.share)} questions"
        return reason_against_plan(model, len(model.questions))

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        count = len(model.questions)
        if self.share is not None:
            epsilons = [epsilon * self.share] * count
        else:
            spent = [Fraction(0), *islice(geometric_caps(epsilon), count)]
            caps = [cap for cap in spent if epsilon - cap >= LEAST_LEFT]
            epsilons = [cap - before for before, cap in pairwise(caps)]
        return fixed_plan(model, epsilons, len(epsilons), simulation)
