"""All questions one after the other at one epsilon, as long as the Bayesian filter accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost.answers import Answers
from expost.designs._accuracy import Outcomes, SimulatedOutcomes
from expost.designs._goals import response_table
from expost.designs.strategies._fixed_plan import (
    outcomes_from_tallies,
    reason_against_simulation,
    simulated_subject_count,
)
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Arrival, StudyModel
from expost.filters import BayesianFilter
from expost.panel import Panel
from expost.sampling import InsecureSource

__all__ = ["FixedEpsilon"]

#: A round in which fewer subjects answer than this share is the last one.
_LEAST_ANSWERING = 0.001


@dataclass(frozen=True)
class FixedEpsilon:
    """Ask everyone all questions in so many rounds, each time at a share of the budget.

    Refusals depend on earlier answers, so the subjects of a panel are simulated.
    """

    #: The share of the budget for each question.
    share: Fraction
    rounds: int
    #: The hardest case of arrival that the share is meant for.
    latest_arrival: Arrival
    family: ClassVar[str] = "the Bayesian filter"

    @property
    def name(self) -> str:
        repeats = "" if self.rounds == 1 else f", up to {self.rounds} rounds"
        return f"filter, {self._part} of the budget each{repeats}"

    @property
    def description(self) -> str:
        repeats = "once" if self.rounds == 1 else f"in up to {self.rounds} rounds"
        return (
            f"Ask all subjects every question {repeats}, each time at {self._part} of the budget, "
            "and let the Bayesian filter of each subject decide."
        )

    @property
    def _part(self) -> str:
        return "all" if self.share == 1 else str(self.share)

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        return reason_against_simulation(model)

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        if model.all_statements and not model.support.domain.sides:
            combined = self._outcomes(model.combined, epsilon, simulation)
            return replace(combined, cells=combined.cells[model.cells])
        return self._outcomes(model, epsilon, simulation)

    def _outcomes(
        self, model: StudyModel, epsilon: Fraction, simulation: Simulation
    ) -> SimulatedOutcomes:
        support = model.support
        size = simulated_subject_count(model, self.rounds * len(model.questions), simulation)
        generator = np.random.default_rng(simulation.seed)
        values = generator.choice(len(support), size=size, p=model.weights)
        panel = Panel(
            support.domain,
            filter=BayesianFilter(epsilon=epsilon),
            subjects=range(size),
            source=InsecureSource(simulation.seed),
        )
        queries = [question.query(epsilon * self.share) for question in model.questions]
        answering: list[float] = []
        listed = answering_subjects = np.arange(size)
        for _ in range(self.rounds):
            # Subjects who refused everything will refuse again, because nothing has changed.
            # Leaving them out takes a list of the others, which is worth it once those are few.
            listed = answering_subjects if 2 * len(answering_subjects) < len(listed) else listed
            values_asked = support.panel_values(values[listed])
            subject_names = None if len(listed) == size else listed.tolist()
            answered = np.zeros(len(listed), dtype=np.bool_)
            for query in queries:
                replies = panel.ask(query, values_asked, subject_names)
                answered |= replies.answered
                if self.rounds == 1:
                    answering.append(float(replies.answered.mean()))
            if self.rounds > 1:
                answering.append(float(answered.sum()) / size)
            answering_subjects = listed[answered]
            if len(answering_subjects) < _LEAST_ANSWERING * size:
                break
        return _panel_outcomes(panel.answers(), size, model, tuple(answering))


def _panel_outcomes(
    answers: Answers, size: int, model: StudyModel, answering: tuple[float, ...]
) -> SimulatedOutcomes:
    """Return the outcomes of a panel's answers."""
    tables = {
        key: np.log(response_table(model.support, query)) for key, query in answers.queries.items()
    }
    logs = np.array([tables[key][position] for key, position in answers.responses])
    subject_rows = np.repeat(np.array(answers.subjects, dtype=np.intp), answers.exchanges)
    tally = np.bincount(subject_rows * len(logs) + answers.codes, minlength=size * len(logs))
    return outcomes_from_tallies(tally.reshape(size, len(logs)), logs, model, answering)
