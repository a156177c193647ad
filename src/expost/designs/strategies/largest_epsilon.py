"""Each question once, at the largest epsilon that the filter accepts at a rising budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from expost._types import Floats
from expost.designs.outcomes import Kinds, Outcomes
from expost.designs.questions import table_of
from expost.designs.strategies._strategy import Simulation, equal_steps
from expost.designs.study import Arrival, Model
from expost.filters import BayesianFilter
from expost.loss import Odometer
from expost.saturation import equal_caps
from expost.transcript import Transcript

__all__ = ["LargestEpsilon"]

_MOST_QUESTIONS = 8


@dataclass(frozen=True)
class LargestEpsilon:
    """The j-th of K questions at the largest epsilon with which the loss stays within j/K.

    What is accepted depends on the answers so far; all of them are gone through.
    """

    of: int
    latest: ClassVar[Arrival] = Arrival.SEQUENTIAL
    family: ClassVar[str] = "the Bayesian filter"

    @property
    def name(self) -> str:
        return "filter, largest epsilon, in steps"

    @property
    def description(self) -> str:
        return (
            "Ask everybody every question at the largest epsilon that the Bayesian filter accepts "
            f"while {equal_steps(self.of)} are released."
        )

    def fits(self, model: Model) -> bool:
        return (
            model.yes_or_no
            and not model.support.domain.sides
            and 1 < len(model.questions) <= _MOST_QUESTIONS
        )

    def outcomes(self, model: Model, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        states = [(Odometer(Transcript(model.support.domain)), np.ones(len(model.support)))]
        answering = []
        for number, cap in enumerate(equal_caps(epsilon, questions=self.of)):
            answered = 0.0
            following = []
            for odometer, chances in states:
                after = list(_asked(model, number, odometer, chances, cap))
                if len(after) > 1:
                    answered += float(chances @ model.weights)
                following += after
            states = following
            answering.append(answered)
            simulation.tick()
        table = np.array([chances for _, chances in states])
        return Kinds.of(table, model.weights, tuple(answering), sum(answering))


def _asked(
    model: Model, number: int, odometer: Odometer, chances: Floats, cap: Fraction
) -> Iterator[tuple[Odometer, Floats]]:
    """What becomes of a state: two if the question is answered, else itself."""
    question = model.questions[number]
    decision = BayesianFilter(epsilon=cap).decide(odometer, question.query(cap))
    largest = cap if decision.accepted else decision.largest_epsilon
    if not largest:
        yield odometer, chances
        return
    query = question.query(Fraction(largest))
    responses = query.on(model.support.domain).responses
    for response, row in zip(responses, table_of(model.support, query), strict=True):
        yield odometer.add(query, response), chances * row
