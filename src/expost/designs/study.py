"""Studies: domain, subjects, budget, goals, and when the questions are known; and study files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expost._format import format_number, shorten
from expost._types import Floats, Indices
from expost.designs._accuracy import Target
from expost.designs._goals import Goal, StatementQuestion, StudyQuestion, read_goal
from expost.designs._model_support import (
    ModelSupport,
    Population,
    model_support,
    numbered_support,
    read_population,
)
from expost.domains import Domain, Variable, domain_from_json
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.kinds import STUDY, explain_wrong_kind
from expost.files.reading import array_at, members, parse, read_integer, read_list, text
from expost.files.regular import read_text
from expost.numbers import ExactLike, positive
from expost.queries import LARGEST_EPSILON, read_delta
from expost.transcript import check_version

__all__ = [
    "LEAST_EPSILON",
    "MOST_ROUNDS",
    "Arrival",
    "Study",
    "StudyModel",
    "load_study",
    "read_count",
    "study_from_json",
]


_MOST_GOALS = 100
#: The least budget of a study: below it, steps of many saturating queries are too small.
LEAST_EPSILON = Fraction(1, 100)
_MOST_SUBJECTS = 100_000_000
MOST_ROUNDS = 1_000


class Arrival(Enum):
    """When the questions of a study are known, from the easiest to the hardest case."""

    #: All questions are known before the first answer.
    UP_FRONT = "up front"
    #: They come one after the other, and their number is known.
    SEQUENTIAL = "sequential"
    #: They come one after the other, and their number is unknown.
    OPEN_ENDED = "open-ended"

    @property
    def rank(self) -> int:
        """The position in the order of difficulty."""
        return list(Arrival).index(self)


@dataclass(frozen=True, init=False, eq=False)
class Study:
    """A study before the first query: its subjects, its goals, and its budget.

    Args:
        domain: The domain of the values.
        subjects: The number of subjects.
        epsilon: The budget of each subject.
        goals: Statements (shares), queries about scores (means), or objects such as
            ``{"distribution": "region"}`` and ``{"mean": "age"}``.
        population: How likely values are: a prior (as :func:`expost.knowledge.load_prior` reads
            one), a pilot sample of values, or ``{"shares": …}`` of attributes; uniform by default.
        delta: The delta of the budget, if there is one.
        arrival: When the questions are known: all ``"up front"``; one after the other
            (``"sequential"``), if only their number is known; or ``"open-ended"``, if not even
            that is known.
        rounds: How often all questions may be asked.

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
        expect(domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
        subject_count = read_at("subjects", read_count, subjects, 10, _MOST_SUBJECTS)
        exact_epsilon = read_at("epsilon", _budget, epsilon)
        goal_list = read_list(goals, read_goal, "goals")
        if not 1 <= len(goal_list) <= _MOST_GOALS:
            raise InvalidInput(
                f"there must be 1 to {_MOST_GOALS} of them, not {len(goal_list):,}", "goals"
            )
        population_ = read_at("population", read_population, population)
        with at("arrival"):
            arrivals = [option.value for option in Arrival]
            if arrival not in arrivals:
                raise InvalidInput(
                    f"must be one of {', '.join(arrivals)}, not {shorten(repr(arrival))}"
                )
        round_count = read_at("rounds", read_count, rounds, 1, MOST_ROUNDS)
        vars(self).update(
            domain=domain,
            subjects=subject_count,
            epsilon=exact_epsilon,
            goals=tuple(goal_list),
            population=population_,
            delta=Fraction(0) if delta is None else read_delta(delta),
            arrival=Arrival(arrival),
            rounds=round_count,
        )

    def __repr__(self) -> str:
        goals = f"{len(self.goals)} goal{'s' if len(self.goals) > 1 else ''}"
        return (
            f"Study({self.subjects:,} subjects, {goals}, {self.arrival.value}, "
            f"budget {format_number(self.epsilon)})"
        )

    def at(self, epsilon: ExactLike) -> Study:
        """Return this study with another budget."""
        other = copy(self)
        vars(other).update(epsilon=read_at("epsilon", _budget, epsilon))
        return other

    @cached_property
    def model(self) -> StudyModel:
        """The study as arrays."""
        variables: list[Variable] = []
        for index, goal in enumerate(self.goals):
            with at(f"goals[{index}]"):
                variables += goal.variables(self.domain)
        with at("population"):
            support = model_support(self.domain, self.population, variables, seed=0)
        pairs = [
            read_at(f"goals[{index}]", goal.on, self.domain, support)
            for index, goal in enumerate(self.goals)
        ]
        targets, questions = zip(*pairs, strict=True)
        return StudyModel(support, targets, questions, self.subjects)


def _budget(epsilon: ExactLike) -> Fraction:
    budget = positive(epsilon, at_most=LARGEST_EPSILON)
    if budget < LEAST_EPSILON:
        raise InvalidInput(
            f"must be at least {format_number(LEAST_EPSILON)}, not {format_number(budget)}"
        )
    return budget


def read_count(value: Any, at_least: int, at_most: int) -> int:
    """Read an integer between two bounds."""
    count = read_integer(value, at_least=at_least)
    if count > at_most:
        raise InvalidInput(f"must be at most {at_most:,}, not {count:,}")
    return count


@dataclass(frozen=True, eq=False)
class StudyModel:
    """A study as arrays, without its budget, which strategies take separately."""

    support: ModelSupport
    targets: tuple[Target, ...]
    questions: tuple[StudyQuestion, ...]
    subjects: int

    @property
    def weights(self) -> Floats:
        return self.support.weights

    @property
    def all_statements(self) -> bool:
        """Whether all questions are statements."""
        return all(isinstance(question, StatementQuestion) for question in self.questions)

    @cached_property
    def cells(self) -> Indices:
        """The combination of answers of each value, from 0."""
        answers = np.array([question.answers for question in self.questions])
        return np.unique(answers.T, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def cell_count(self) -> int:
        """The number of combinations of answers."""
        return int(self.cells.max()) + 1

    @cached_property
    def combined(self) -> StudyModel:
        """The study of these combinations, which are all that statements depend on."""
        _, representatives = np.unique(self.cells, return_index=True)
        weights = np.bincount(self.cells, self.weights).astype(np.float64)
        rows = [self.support.rows[index] for index in representatives.tolist()]
        targets = tuple(
            Target(target.rows[:, representatives], target.scale) for target in self.targets
        )
        questions = tuple(
            StatementQuestion(question.answers[representatives]) for question in self.questions
        )
        support = numbered_support(rows, weights, reportable=self.support.reportable)
        return StudyModel(support, targets, questions, self.subjects)


_REQUIRED = ("version", "domain", "subjects", "epsilon", "goals")
_OPTIONAL = ("population", "delta", "arrival", "rounds")


def load_study(path: str | os.PathLike[str], *, population: Any = None) -> Study:
    """Read a study file; docs/reference/studies.md describes the format.

    Args:
        path: The file.
        population: A population that replaces the one in the file.

    Raises:
        InvalidInput: If the file is not a valid study.
    """
    with at(os.fspath(path), ": "):
        return study_from_json(read_text(path), population=population)


def study_from_json(document: str, *, population: Any = None) -> Study:
    """Read a study from the text of its file.

    >>> study_from_json(
    ...     '{"version": 1, "domain": {"values": [0, 1, 2]}, "subjects": 1000, "epsilon": "1",'
    ...     ' "goals": [{"share": "value >= 1"}, {"mean": "value"}]}'
    ... )
    Study(1,000 subjects, 2 goals, sequential, budget 1)
    """
    with explain_wrong_kind(STUDY, document):
        fields = members(parse(document), required=_REQUIRED, optional=_OPTIONAL).copy()
    check_version(fields.pop("version"))
    domain = read_at("domain", domain_from_json, fields.pop("domain"))
    array_at(fields, "goals")
    if "arrival" in fields:
        read_at("arrival", text, fields["arrival"])
    if population is not None:
        fields["population"] = population
    study = Study(domain, **fields)
    _ = study.model  # whatever is wrong with goals or population shows here
    return study
