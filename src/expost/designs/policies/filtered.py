"""All questions in turn, each at the same epsilon, as long as the Bayesian filter accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from expost.designs.outcomes import Outcomes, Places
from expost.designs.policies.joint import simulated, tallied
from expost.designs.policies.policy import Simulation
from expost.designs.questions import table_of
from expost.designs.study import Arrival, Model
from expost.filters import BayesianFilter
from expost.panel import Panel
from expost.sampling import InsecureSource

__all__ = ["Filtered"]

_NOBODY = 0.001
"""A round in which fewer subjects answer than this share is the last one."""


@dataclass(frozen=True)
class Filtered:
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
    def words(self) -> str:
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
        tables = [table_of(support, query) for query in queries]
        starts = np.cumsum([0, *map(len, tables)])
        tally = np.zeros((size, starts[-1]), dtype=np.int16)
        answering: list[float] = []
        still = np.arange(size)
        for _ in range(self.rounds):
            answered = np.zeros(len(still), dtype=np.bool_)
            chosen = [support.values[place] for place in values[still].tolist()]
            for query, start in zip(queries, starts, strict=False):
                replies = panel.ask(query, chosen, None if len(still) == size else still.tolist())
                codes = _codes(query.on(support.domain).responses, replies.responses)
                own = np.flatnonzero(codes >= 0)
                tally[still[own], start + codes[own]] += 1
                answered |= replies.answered
                if self.rounds == 1:
                    answering.append(float(replies.answered.mean()))
                simulation.tick()
            if self.rounds > 1:
                answering.append(float(answered.sum()) / size)
            # Who refused everything will do so again, for nothing has changed.
            still = still[answered]
            if len(still) < _NOBODY * size:
                break
        return tallied(tally, np.log(np.concatenate(tables)), model, tuple(answering))


def _codes(responses: Sequence[Any], given: Sequence[Any]) -> Places:
    """The number of each response; -1 for who gave none."""
    numbers: dict[Any, int] = {response: number for number, response in enumerate(responses)}
    numbers[None] = -1
    return np.fromiter((numbers[each] for each in given), dtype=np.intp, count=len(given))
