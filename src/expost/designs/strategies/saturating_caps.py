"""Saturating queries: each response ends at a cap, and the caps rise in steps.

After a response of such a query the likelihood is E on a set of values and 1 elsewhere, whatever
was answered before. So subjects are in few states, and what is seen of them is one exact channel.
Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import ClassVar

import numpy as np

from expost._types import Floats
from expost.designs._accuracy import ExactOutcomes, Outcomes
from expost.designs._goals import StatementQuestion
from expost.designs.strategies._strategy import Simulation, equal_steps, questions_text
from expost.designs.study import Arrival, StudyModel
from expost.queries import Channel
from expost.saturation import equal_caps, geometric_caps
from expost.saturation._question import AnswerPartition
from expost.saturation._saturating import TableCache, ratio_at_cap, saturating_query
from expost.saturation._value_classes import ValueLikelihoods, likelihoods_of_set

__all__ = ["SaturatingCaps"]

_MOST_PLANS = 24
_MOST_VALUES = 1_500
_LEAST_LEFT = Fraction(1, 1 << 20)
"""Questions are no longer asked when less of the budget remains."""

_Chances = dict[bytes, Floats]
"""Pr(state | value) by the state, a set of values."""


@dataclass(frozen=True)
class SaturatingCaps:
    """Ask saturating queries about sampled questions, in their order.

    ``sampled`` is None if nobody knows how many there will be: each then spends a third of what is
    left. Otherwise the caps are equal steps up to the budget.
    """

    sampled: int | None
    total: int
    family: ClassVar[str] = "saturating queries"

    @property
    def latest_arrival(self) -> Arrival:
        return Arrival.OPEN_ENDED if self.sampled is None else Arrival.SEQUENTIAL

    @property
    def name(self) -> str:
        if self.sampled is None:
            return "saturating, a third of the remainder"
        if self.sampled == self.total:
            return "saturating, equal steps"
        return f"saturating, {self.sampled} sampled questions"

    @property
    def description(self) -> str:
        if self.sampled is None:
            return (
                "Ask everybody every question as it comes, with a saturating query whose cap "
                "spends a third of what is left of the budget."
            )
        return (
            f"Ask each subject {questions_text(self.sampled, self.total)} with saturating queries, "
            f"whose caps are {equal_steps(self.sampled)}."
        )

    def fits(self, model: StudyModel) -> bool:
        support = model.support
        return (
            model.all_statements
            and support.reportable
            and len(model.questions) > 1
            and 2 < len(support) <= _MOST_VALUES
        )

    def outcomes(self, model: StudyModel, epsilon: Fraction, simulation: Simulation) -> Outcomes:
        if self.sampled is None:
            possible_caps = islice(geometric_caps(epsilon), self.total)
            caps = tuple(cap for cap in possible_caps if epsilon - cap >= _LEAST_LEFT)
            plans = [tuple(range(len(caps)))]
        else:
            caps = equal_caps(epsilon, questions=self.sampled)
            plans = list(combinations(range(self.total), self.sampled))
        if len(plans) > _MOST_PLANS:
            generator = np.random.default_rng(simulation.seed)
            plan_indices = generator.permutation(len(plans))[:_MOST_PLANS]
            plans = [plans[index] for index in sorted(plan_indices.tolist())]
        states = _States(model, caps)
        tables = [states.after(plan) / len(plans) for plan in plans]
        answering = tuple(
            sum(question in plan for plan in plans) / len(plans) for question in range(self.total)
        )
        return ExactOutcomes.of(np.concatenate(tables), model.weights, answering, float(len(caps)))


class _States:
    """The states of subjects, as sets of likelier values, after each prefix of a plan."""

    def __init__(self, model: StudyModel, caps: Sequence[Fraction]) -> None:
        self._model = model
        self._caps = caps
        self._tables: TableCache = {}
        everything = np.ones(len(model.support), dtype=np.bool_)
        self._distributions: dict[tuple[int, ...], _Chances] = {
            (): {everything.tobytes(): np.ones(len(model.support))}
        }

    def after(self, plan: tuple[int, ...]) -> Floats:
        """Compute Pr(state | value) after these questions: a row for each state."""
        return np.array(list(self._states(plan).values()))

    def _states(self, plan: tuple[int, ...]) -> _Chances:
        if plan not in self._distributions:
            self._distributions[plan] = self._step(plan)
        return self._distributions[plan]

    def _step(self, plan: tuple[int, ...]) -> _Chances:
        question = self._model.questions[plan[-1]]
        assert isinstance(question, StatementQuestion)
        partition = AnswerPartition((), question.answers)
        position = len(plan) - 1
        ratio = ratio_at_cap(self._caps[position - 1]) if position else Fraction(1)
        next_states: _Chances = {}
        for key, chances in self._states(plan[:-1]).items():
            members = np.frombuffer(key, dtype=np.bool_)
            likelihoods = likelihoods_of_set(members, ratio)
            relative_likelihood = np.where(members, float(ratio), 1.0)
            for row in self._response_table(likelihoods, partition, self._caps[position]):
                # E inside of a set, and 1 outside of it, up to a factor.
                state_weights = relative_likelihood * row
                next_set = (
                    state_weights > np.sqrt(state_weights.max() * state_weights.min())
                ).tobytes()
                next_states[next_set] = next_states.get(next_set, 0.0) + chances * row
        return next_states

    def _response_table(
        self, likelihoods: ValueLikelihoods, partition: AnswerPartition, cap: Fraction
    ) -> Floats:
        """Compute Pr(response | value) of the query in a state: a row for each response."""
        query = saturating_query(
            self._model.support.domain, likelihoods, partition, cap, self._tables
        )
        assert isinstance(query, Channel), "caps rise, so that there is room"
        classes = np.array([[w / query.denominator for w in row] for row in query.weights.tolist()])
        return np.asarray(classes.T if query.of is None else classes.T[:, query.of])
