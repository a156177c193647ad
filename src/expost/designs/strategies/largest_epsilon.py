"""Each question once, at the largest epsilon that the filter accepts at a rising budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost._types import Floats
from expost.designs._accuracy import ExactOutcomes, Outcomes
from expost.designs._goals import response_table
from expost.designs.strategies._strategy import NEEDS_STATEMENTS, Simulation, equal_steps
from expost.designs.study import Arrival, StudyModel
from expost.filters import BayesianFilter
from expost.loss import Odometer
from expost.saturation import equal_caps
from expost.transcript import Transcript

__all__ = ["LargestEpsilon"]

_MOST_QUESTIONS = 8


@dataclass(frozen=True)
class LargestEpsilon:
    """Ask the j-th of K questions at the largest epsilon for which the loss stays within j/K.

    That depends on the answers so far, so all sequences of answers are enumerated.
    """

    total: int
    latest_arrival: ClassVar[Arrival] = Arrival.SEQUENTIAL
    family: ClassVar[str] = "the Bayesian filter"
    name: ClassVar[str] = "filter, largest epsilon, in steps"

    @property
    def description(self) -> str:
        return (
            "Ask all subjects every question at the largest epsilon that the Bayesian filter "
            f"accepts while {equal_steps(self.total)} are released."
        )

    def reason_against(self, model: StudyModel, epsilon: Fraction) -> str | None:
        if not model.all_statements:
            return NEEDS_STATEMENTS
        if model.support.domain.sides:
            return "it is not predicted on a box"
        if self.total == 1:
            return "one question takes the full budget"
        if self.total > _MOST_QUESTIONS:
            return f"its sequences of answers are listed for at most {_MOST_QUESTIONS} questions"
        return None

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        states = [(Odometer(Transcript(model.support.domain)), np.ones(len(model.support)))]
        answering = []
        for index, cap in enumerate(equal_caps(epsilon, questions=self.total)):
            answering_share = 0.0
            next_states = []
            for odometer, chances in states:
                successors = list(_next_states(model, index, odometer, chances, cap))
                if len(successors) > 1:
                    answering_share += float(chances @ model.weights)
                next_states += successors
            states = next_states
            answering.append(answering_share)
        table = np.array([chances for _, chances in states])
        return ExactOutcomes.of(table, model.weights, tuple(answering), sum(answering))


def _next_states(
    model: StudyModel, index: int, odometer: Odometer, chances: Floats, cap: Fraction
) -> Iterator[tuple[Odometer, Floats]]:
    """Yield the states after a question: two if it is answered, otherwise the state itself."""
    question = model.questions[index]
    decision = BayesianFilter(epsilon=cap).decide(odometer, question.query(cap))
    largest = cap if decision.accepted else decision.largest_epsilon
    if not largest:
        yield odometer, chances
        return
    query = question.query(Fraction(largest))
    responses = query.on(model.support.domain).responses
    for response, row in zip(responses, response_table(model.support, query), strict=True):
        yield odometer.add(query, response), chances * row
