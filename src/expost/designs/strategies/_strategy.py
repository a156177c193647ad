"""The protocol that all strategies implement."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from expost.designs._accuracy import Outcomes
from expost.designs.study import Arrival, StudyModel

__all__ = [
    "LEAST_LEFT",
    "NEEDS_STATEMENTS",
    "NOT_REPORTABLE",
    "Simulation",
    "Strategy",
    "equal_steps",
    "questions_text",
]

#: If the number of questions is unknown, none is asked when less of the budget remains.
LEAST_LEFT = Fraction(1, 1 << 20)
NEEDS_STATEMENTS = "it is predicted for statements only; a goal is a mean or a distribution"
NOT_REPORTABLE = "one query cannot report the full value on a box, nor at several steps"


@dataclass(frozen=True)
class Simulation:
    """The size and the seed of a simulation."""

    repetitions: int
    seed: int


def equal_steps(count: int) -> str:
    """Format equal steps of a budget: ``1/3, 2/3 and all of the budget``."""
    first_steps = [f"{step}/{count}" for step in range(1, min(count, 3))]
    ellipsis = ", …" if count > 3 else ""
    return f"{', '.join(first_steps)}{ellipsis} and all of the budget"


def questions_text(sampled: int, total: int) -> str:
    """Describe how many of all questions each subject is asked."""
    if sampled == total:
        return "every question"
    return "one sampled question" if sampled == 1 else f"{sampled} sampled questions"


class Strategy(Protocol):
    """A plan of what to ask each subject within a budget of epsilon."""

    @property
    def latest_arrival(self) -> Arrival:
        """The hardest case of arrival in which a study can use it."""

    @property
    def family(self) -> str:
        """The name of its family, in figures."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def description(self) -> str:
        """An instruction for carrying it out, in a sentence or two."""

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        """Return why it makes no sense for the questions of a study; None if it makes sense."""

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        """Compute or simulate the outcomes of subjects."""
