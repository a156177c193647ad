"""The states of subjects who answer saturating queries about statements.

The likelihood of a subject is F on a set of values, the *state*, and 1 elsewhere. So a value has
one of four classes, by its answer and by whether the state has it, and the query is in closed form:
the information has its maximum at one of six levels A. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.designs._accuracy import ExactOutcomes, Outcomes, SimulatedOutcomes
from expost.designs.strategies._fixed_plan import simulated_subject_count
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import StudyModel

__all__ = ["SaturatingStates", "binary_channels"]

#: With more states, subjects are simulated.
_MOST_STATES = 2_000
_LEAST_CHANCE = 1e-12

# The classes: yes inside of the set, no inside, yes outside, no outside.
_IS_YES = np.array([True, False, True, False])
_OPPOSITE = [(0, 1), (0, 3), (2, 1), (2, 3)]

#: A row for each state, a column for each value.
_States = NDArray[np.bool_]


class _TooManyStates(Exception):
    """The states of subjects are too many to list."""


@dataclass(frozen=True, eq=False)
class SaturatingStates:
    """Subjects who answer some questions each, and whose losses end at these caps."""

    #: Values with the same answers to all questions are combined.
    model: StudyModel
    #: The number of values of the study that each one stands for.
    masses: Floats
    caps: Sequence[float]
    #: The questions of a subject; all plans are equally likely.
    plans: Sequence[tuple[int, ...]]
    answering: tuple[float, ...]
    _listed: dict[tuple[int, ...], tuple[_States, Floats]] = field(default_factory=dict)

    def outcomes(self, simulation: Simulation) -> Outcomes:
        """Return the exact outcomes where states are few; otherwise simulate subjects."""
        if len(self.plans) > _MOST_STATES:
            return self._simulate(simulation)
        try:
            tables = [self._after(plan)[1] / len(self.plans) for plan in self.plans]
        except _TooManyStates:
            return self._simulate(simulation)
        table = np.concatenate(tables)
        return ExactOutcomes.of(table, self.model.weights, self.answering, float(len(self.caps)))

    @cached_property
    def _answers(self) -> _States:
        return np.array([question.answers == 1 for question in self.model.questions])

    def _after(self, plan: tuple[int, ...]) -> tuple[_States, Floats]:
        """List the states after these questions, and Pr(state | value): a row for each state."""
        if not plan:
            count = len(self.masses)
            return np.ones((1, count), dtype=np.bool_), np.ones((1, count))
        if plan not in self._listed:
            states, chances = self._after(plan[:-1])
            questions = np.full(len(states), plan[-1])
            channels, members, classes = self._ask(states, questions, len(plan) - 1)
            columns = classes[:, None, :]
            rows = np.take_along_axis(channels, columns, axis=2) * chances[:, None]
            possible = rows.max(axis=2) > _LEAST_CHANCE
            next_states = np.take_along_axis(members, columns, axis=2)[possible]
            distinct, indices = np.unique(next_states, axis=0, return_inverse=True)
            next_chances = np.zeros(distinct.shape)
            np.add.at(next_chances, indices.reshape(-1), rows[possible])
            self._listed[plan] = distinct, next_chances
            if sum(len(states) for states, _ in self._listed.values()) > _MOST_STATES:
                raise _TooManyStates
        return self._listed[plan]

    def _simulate(self, simulation: Simulation) -> SimulatedOutcomes:
        count, steps = len(self.masses), len(self.caps)
        size = simulated_subject_count(self.model, steps, simulation)
        generator = np.random.default_rng(simulation.seed)
        values = generator.choice(count, size=size, p=self.model.weights)
        plans = np.array(self.plans)[generator.integers(len(self.plans), size=size)]
        states = np.ones((size, count), dtype=np.bool_)
        for step in range(steps):
            channels, members, classes = self._ask(states, plans[:, step], step)
            subjects = np.arange(size)
            ends = np.cumsum(channels[subjects, :, classes[subjects, values]], axis=1)
            pieces = (generator.random(size)[:, None] > ends[:, :-1]).sum(axis=1)
            states = np.take_along_axis(members[subjects, pieces], classes, axis=1)
        distinct, kinds = np.unique(states, axis=0, return_inverse=True)
        logs = self.caps[-1] * distinct.astype(np.float64)
        kinds = kinds.reshape(-1)
        return SimulatedOutcomes.of(logs, kinds, self.model.weights, self.answering, float(steps))

    def _ask(
        self, states: _States, questions: NDArray[np.intp], step: int
    ) -> tuple[Floats, _States, NDArray[np.int8]]:
        """Return the channel in each state, its sets of classes, and the class of each value."""
        is_yes, masses = self._answers[questions], self.masses
        classes = 3 - 2 * states.astype(np.int8) - is_yes
        held, held_yes, total = states @ masses, (states & is_yes) @ masses, masses.sum()
        codes = (held * (total + 1) + held_yes) * len(self._answers) + questions
        _, first, kinds = np.unique(codes, return_index=True, return_inverse=True)
        held, held_yes = held[first], held_yes[first]
        yes = (self._answers @ masses)[questions[first]]
        outside_no = total - held - yes + held_yes
        sizes = np.column_stack([held_yes, held - held_yes, yes - held_yes, outside_no])
        last_cap = self.caps[step - 1] if step else 0.0
        channels, members = binary_channels(sizes, last_cap, self.caps[step])
        return channels[kinds], members[kinds], classes


def binary_channels(sizes: Floats, last_cap: float, cap: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return Pr(response | class), and the classes in the set of each response.

    Both have an axis of kinds, one of five responses and one of four classes.

    Args:
        sizes: The sizes of the four classes, a row for each kind.
        last_cap: The loss so far.
        cap: The loss after the answer.
    """
    ratio = math.exp(cap)
    likelihoods = np.exp(np.array([last_cap, last_cap, 0.0, 0.0]))
    present = sizes > 0
    highest = np.where(present, likelihoods, -math.inf).max(axis=1)
    lowest = np.where(present, likelihoods, math.inf).min(axis=1)
    kinks = np.array([likelihoods[i] + likelihoods[j] for i, j in _OPPOSITE]) / (ratio + 1)
    is_kink = np.array([present[:, i] & present[:, j] for i, j in _OPPOSITE]).T
    low = np.maximum(highest / ratio, np.where(is_kink, kinks, math.inf).min(axis=1))
    high = np.minimum(lowest, np.where(is_kink, kinks, -math.inf).max(axis=1))
    levels = np.column_stack([low, high, np.clip(kinks, low[:, None], high[:, None])])
    # An axis of kinds, one of levels A, and one of classes; then one of pieces of the circle.
    shares = (likelihoods - levels[..., None]) / ((ratio - 1) * levels[..., None])
    shares = np.clip(shares, 0.0, 1.0)
    ends = np.where(_IS_YES, shares, 1 - shares)
    edges = [np.zeros_like(ends[..., :1]), ends, np.ones_like(ends[..., :1])]
    cuts = np.sort(np.concatenate(edges, axis=-1), axis=-1)
    lengths, middles = np.diff(cuts), (cuts[..., 1:] + cuts[..., :-1]) / 2
    members = (middles[..., None] < ends[..., None, :]) == _IS_YES
    gains = np.where(members, (ratio - 1) * sizes[:, None, None, :], 0.0)
    information = np.zeros_like(lengths)
    all_gains, all_masses = gains.sum(axis=-1), sizes.sum(axis=1)[:, None, None]
    for answer in (_IS_YES, ~_IS_YES):
        mass = sizes[:, answer].sum(axis=1)[:, None, None]
        gain = gains[..., answer].sum(axis=-1)
        information += (mass + gain) * (np.log1p(gain / mass) - np.log1p(all_gains / all_masses))
    best = np.argmax(levels * (information * lengths).sum(axis=-1), axis=1)
    kinds = np.arange(len(sizes))
    lengths, members, levels = lengths[kinds, best], members[kinds, best], levels[kinds, best]
    factors = np.where(members, ratio, 1.0) / likelihoods
    return lengths[..., None] * levels[:, None, None] * factors, members
