"""The protocol that all strategies implement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from expost.designs._accuracy import Outcomes
from expost.designs.study import Arrival, StudyModel

__all__ = ["Simulation", "Strategy", "equal_steps"]


@dataclass(frozen=True)
class Simulation:
    """How much to simulate, from which seed, and who is told."""

    repetitions: int
    seed: int
    tick: Callable[[], None] = lambda: None


def equal_steps(count: int) -> str:
    """Parts of a budget up to all of it, in words: ``1/3, 2/3 and all of the budget``."""
    first_steps = [f"{step}/{count}" for step in range(1, min(count, 3))]
    ellipsis = ", …" if count > 3 else ""
    return f"{', '.join(first_steps)}{ellipsis} and all of the budget"


class Strategy(Protocol):
    """A plan of what to ask each subject within a budget of epsilon."""

    @property
    def latest_arrival(self) -> Arrival:
        """The hardest case in which it can be carried out."""

    @property
    def family(self) -> str:
        """What figures call it and others of its kind."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def description(self) -> str:
        """How it is carried out, in a sentence."""

    def fits(self, model: StudyModel) -> bool:
        """Whether it makes sense for the questions of a study."""

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        """What subjects show."""
