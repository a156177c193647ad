"""A study before anybody is asked: whom it is about, what for, and within which budget."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expost._types import Floats, Indices
from expost.designs.accuracy import Target
from expost.designs.goals import Goal, read_goal
from expost.designs.populations import Population, read_population
from expost.designs.questions import Question, YesNo
from expost.designs.support import Support, numbered, support_of
from expost.domains import Domain, Variable
from expost.errors import InvalidInput, at, expect
from expost.files.reading import read_integer, read_list
from expost.numbers import ExactLike, positive
from expost.queries import LARGEST_EPSILON, read_delta

__all__ = ["LEAST_EPSILON", "Arrival", "Model", "Study"]

_MOST_GOALS = 100
LEAST_EPSILON = Fraction(1, 100)
"""Of a study: below it a step for each of many questions is too small for saturating queries."""
_MOST_SUBJECTS = 100_000_000
_MOST_ROUNDS = 1_000


class Arrival(Enum):
    """When the questions of a study are known; each is harder than the one before."""

    UP_FRONT = "up front"
    """All of them before the first answer."""
    SEQUENTIAL = "sequential"
    """One after the other; how many there will be is known."""
    OPEN_ENDED = "open-ended"
    """One after the other, and nobody knows how many there will be."""

    @property
    def late(self) -> int:
        return list(Arrival).index(self)


@dataclass(frozen=True, init=False, eq=False)
class Study:
    """What one knows of a study before anybody is asked.

    ``goals`` are statements (shares), queries about scores (means), or objects such as
    ``{"distribution": "region"}`` and ``{"mean": "age"}``. ``population`` is a prior (as
    :func:`expost.knowledge.load_prior` reads one), a pilot sample of values, ``{"shares": …}`` of
    attributes, or by default uniform. ``epsilon`` is the budget of each subject, with a ``delta``
    if there is one. ``arrival`` says when the questions are known: all ``"up front"``, one
    after the other (``"sequential"``) if only their number is known, or ``"open-ended"`` if not
    even that. ``rounds`` is how often all of them may be asked.

    >>> import expost as xp
    >>> from expost.designs import Study
    >>> Study(xp.FiniteSet(range(10)), subjects=2000, epsilon=2, goals=["value >= 7", "value == 3"])
    Study(2,000 subjects, 2 goals, sequential, budget 2)
    """

    domain: Domain
    subjects: int
    epsilon: Fraction
    goals: tuple[Goal, ...]
    population: Population = field(repr=False)
    delta: Fraction
    arrival: Arrival
    rounds: int

    def __init__(
        self,
        domain: Domain,
        *,
        subjects: int,
        epsilon: ExactLike,
        goals: Sequence[Any],
        population: Any = None,
        delta: ExactLike | None = None,
        arrival: str = "sequential",
        rounds: int = 1,
    ) -> None:
        with at("domain"):
            expect(domain, Domain, "a FiniteSet, Attributes or a Box")
        with at("subjects"):
            many = _within(subjects, 10, _MOST_SUBJECTS)
        with at("epsilon"):
            budget = _budget(epsilon)
        wanted = read_list(goals, read_goal, "goals")
        if not 1 <= len(wanted) <= _MOST_GOALS:
            raise InvalidInput(f"there must be 1 to {_MOST_GOALS} of them", "goals")
        with at("population"):
            people = read_population(population)
        with at("arrival"):
            known = [each.value for each in Arrival]
            if arrival not in known:
                raise InvalidInput(f"must be one of {', '.join(known)}")
        with at("rounds"):
            often = _within(rounds, 1, _MOST_ROUNDS)
        for name, value in {
            "domain": domain,
            "subjects": many,
            "epsilon": budget,
            "goals": tuple(wanted),
            "population": people,
            "delta": Fraction(0) if delta is None else read_delta(delta),
            "arrival": Arrival(arrival),
            "rounds": often,
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        goals = f"{len(self.goals)} goal{'s' if len(self.goals) > 1 else ''}"
        return (
            f"Study({self.subjects:,} subjects, {goals}, {self.arrival.value}, "
            f"budget {float(self.epsilon):g})"
        )

    def at(self, epsilon: ExactLike) -> Study:
        """The same study with another budget."""
        other = copy(self)
        with at("epsilon"):
            object.__setattr__(other, "epsilon", _budget(epsilon))
        return other

    @cached_property
    def model(self) -> Model:
        """The study in numbers."""
        variables: list[Variable] = []
        for number, goal in enumerate(self.goals):
            with at(f"goals[{number}]"):
                variables += goal.variables(self.domain)
        with at("population"):
            support = support_of(self.domain, self.population, variables, seed=0)
        targets, questions = [], []
        for number, goal in enumerate(self.goals):
            with at(f"goals[{number}]"):
                target, question = goal.on(self.domain, support)
            targets.append(target)
            questions.append(question)
        return Model(support, tuple(targets), tuple(questions), self.subjects)


def _budget(epsilon: ExactLike) -> Fraction:
    found = positive(epsilon, at_most=LARGEST_EPSILON)
    if found < LEAST_EPSILON:
        raise InvalidInput(f"of a study must be at least {float(LEAST_EPSILON):g}")
    return found


def _within(value: Any, least: int, most: int) -> int:
    found = read_integer(value, at_least=least)
    if found > most:
        raise InvalidInput(f"must be at most {most:,}")
    return found


@dataclass(frozen=True, eq=False)
class Model:
    """A study in arrays, as strategies take it; the budget is theirs."""

    support: Support
    targets: tuple[Target, ...]
    questions: tuple[Question, ...]
    subjects: int

    @property
    def weights(self) -> Floats:
        return self.support.weights

    @property
    def yes_or_no(self) -> bool:
        """Whether all questions are statements."""
        return all(question.answers is not None for question in self.questions)

    @cached_property
    def combinations(self) -> Indices:
        """Of statements: the combination of answers to all of them that each value has."""
        answers = np.array([question.answers for question in self.questions])
        return np.unique(answers.T, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def joined(self) -> Model:
        """Of statements: the same study of their combinations, which is all that they tell."""
        of = self.combinations
        _, first = np.unique(of, return_index=True)
        weights = np.bincount(of, self.weights).astype(np.float64)
        rows = [self.support.rows[place] for place in first.tolist()]
        targets = tuple(Target(each.rows[:, first], each.scale) for each in self.targets)
        says = [question.answers for question in self.questions]
        questions = tuple(YesNo(answers[first]) for answers in says if answers is not None)
        support = numbered(rows, weights, whole=self.support.whole)
        return Model(support, targets, questions, self.subjects)
