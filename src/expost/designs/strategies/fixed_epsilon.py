"""All questions one after the other at one epsilon, as long as the Bayesian filter accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost._types import Indices
from expost.answers import Answers
from expost.designs.outcomes import Outcomes, Seen
from expost.designs.questions import table_of
from expost.designs.strategies._fixed_plan import simulated, tallied
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, Model
from expost.filters import BayesianFilter
from expost.panel import Panel
from expost.sampling import InsecureSource

__all__ = ["FixedEpsilon"]

_NOBODY = 0.001
"""A round in which fewer subjects answer than this share is the last one."""


@dataclass(frozen=True)
class FixedEpsilon:
    """Ask everybody everything in so many rounds, each time at a part of the budget.

    Who answers depends on what was answered before, so subjects of a panel are simulated.
    """

    part: Fraction
    """Of the budget, for each question."""
    rounds: int
    latest: Arrival
    """Whether the part is one for the number of questions, or for whatever comes."""
    family: ClassVar[str] = "the Bayesian filter"

    @property
    def name(self) -> str:
        often = "" if self.rounds == 1 else f", up to {self.rounds} rounds"
        return f"filter, {self._part} of the budget each{often}"

    @property
    def description(self) -> str:
        often = "once" if self.rounds == 1 else f"in up to {self.rounds} rounds"
        return (
            f"Ask everybody every question {often}, each time at {self._part} of the budget, and "
            "let the Bayesian filter of each subject decide."
        )

    @property
    def _part(self) -> str:
        return "all" if self.part == 1 else str(self.part)

    def fits(self, model: Model) -> bool:
        return True

    def outcomes(self, model: Model, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        if model.yes_or_no and not model.support.domain.sides:
            found = self._outcomes(model.joined, epsilon, simulation)
            return replace(found, cells=found.cells[model.combinations])
        return self._outcomes(model, epsilon, simulation)

    def _outcomes(self, model: Model, epsilon: Fraction, simulation: Simulation) -> Seen:
        support = model.support
        size = simulated(model, self.rounds * len(model.questions), simulation)
        generator = np.random.default_rng(simulation.seed)
        values = generator.choice(len(support), size=size, p=model.weights)
        panel = Panel(
            support.domain,
            filter=BayesianFilter(epsilon=epsilon),
            subjects=range(size),
            source=InsecureSource(simulation.seed),
        )
        queries = [question.query(epsilon * self.part) for question in model.questions]
        answering: list[float] = []
        asked = still = np.arange(size)
        for _ in range(self.rounds):
            # Who refused everything will do so again, for nothing has changed. To leave them out
            # takes a list of the others, which is worth it once they are few.
            asked = still if 2 * len(still) < len(asked) else asked
            chosen, names = support.taken(values[asked]), _names(asked, size)
            answered = np.zeros(len(asked), dtype=np.bool_)
            for query in queries:
                replies = panel.ask(query, chosen, names)
                answered |= replies.answered
                if self.rounds == 1:
                    answering.append(float(replies.answered.mean()))
                simulation.tick()
            if self.rounds > 1:
                answering.append(float(answered.sum()) / size)
            still = asked[answered]
            if len(still) < _NOBODY * size:
                break
        return _seen(panel.answers(), size, model, tuple(answering))


def _names(places: Indices, size: int) -> list[int] | None:
    return None if len(places) == size else places.tolist()


def _seen(answers: Answers, size: int, model: Model, answering: tuple[float, ...]) -> Seen:
    """What so many subjects answered, by how often each gave each response."""
    tables = {key: np.log(table_of(model.support, query)) for key, query in answers.queries.items()}
    logs = np.array([tables[key][position] for key, position in answers.given])
    whose = np.repeat(np.array(answers.subjects, dtype=np.intp), answers.exchanges)
    tally = np.bincount(whose * len(logs) + answers.codes, minlength=size * len(logs))
    return tallied(tally.reshape(size, len(logs)), logs, model, answering)
