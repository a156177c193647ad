"""The goals of a study (shares, distributions and means), and the questions that they lead to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

import numpy as np

from expost._types import Floats, Indices
from expost.designs._accuracy import ExactOutcomes, Outcomes, SubsetOutcomes, Target
from expost.designs._model_support import ModelSupport
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at, make_printable
from expost.files.reading import members, text
from expost.knowledge import Statement, parse_predicate
from expost.numbers import exact
from expost.queries import (
    LiftedLikelihood,
    Likelihood,
    Pairwise,
    Query,
    channel,
    hadamard_response,
    linear,
    perturbation,
    query_from_json,
    randomized_response,
    subset_selection,
    two_weights,
)
from expost.queries.noise.piecewise import Piecewise
from expost.queries.scores.linear import Linear

__all__ = [
    "Goal",
    "GroupQuestion",
    "ScoreQuestion",
    "StatementQuestion",
    "StudyQuestion",
    "one_shot_outcomes",
    "read_goal",
    "response_table",
    "response_table_on",
]


_MOST_SETS = 2_048
_FEWEST_STEPS, _MOST_STEPS = 64, 512


class StudyQuestion(ABC):
    """A question of a study."""

    @abstractmethod
    def query(self, epsilon: Fraction) -> Query:
        """With two responses, or one for each group: for subjects who are asked repeatedly."""

    def best(self, support: ModelSupport, epsilon: Fraction) -> tuple[str, Floats]:
        """What tells most in one answer at this epsilon: its name, and Pr(response | value)."""
        return "", response_table(support, self.query(epsilon))

    @property
    def answers(self) -> Indices | None:
        """Of a question of yes or no: 1 or 0 for each value."""
        return None


@dataclass(frozen=True, eq=False)
class StatementQuestion(StudyQuestion):
    """A statement, which is true or false of each value."""

    indicator: Indices

    def query(self, epsilon: Fraction) -> Query:
        return perturbation(self.indicator.tolist(), range=(0, 1), epsilon=epsilon)

    @property
    def answers(self) -> Indices:
        return self.indicator


@dataclass(frozen=True, eq=False)
class ScoreQuestion(StudyQuestion):
    """A score, of which one bit is told: a query at any other epsilon."""

    template: Query

    def query(self, epsilon: Fraction) -> Query:
        query = self.template.with_epsilon(epsilon)
        assert query is not None
        return query

    def best(self, support: ModelSupport, epsilon: Fraction) -> tuple[str, Floats]:
        """One bit, or the piecewise mechanism where that has the smaller variance."""
        one_bit = response_table(support, self.query(epsilon))
        piecewise = _piecewise(self.query(epsilon))
        if piecewise is None:
            return "one bit", one_bit
        table = response_table(support, piecewise)
        variances = [
            _mean_variance(query, rows, support)
            for query, rows in ((self.query(epsilon), one_bit), (piecewise, table))
        ]
        return ("piecewise", table) if variances[1] < variances[0] else ("one bit", one_bit)


@dataclass(frozen=True, eq=False)
class GroupQuestion(StudyQuestion):
    """To which of several groups the value belongs: its own, or the value of one attribute."""

    groups: Indices
    """The group of each value, from 0."""

    def query(self, epsilon: Fraction) -> Query:
        return _response_of_groups(epsilon, tuple(self.groups.tolist()))

    def best(self, support: ModelSupport, epsilon: Fraction) -> tuple[str, Floats]:
        tables = [
            (name, outcomes.table[:, outcomes.cells])
            for name, outcomes in one_shot_outcomes(self.groups, support.weights, epsilon)
            if isinstance(outcomes, ExactOutcomes)
        ]
        # The least sum of variances, in the limit of many subjects.
        costs = [_sum_of_variances(table, self.groups, support.weights) for _, table in tables]
        return tables[int(np.argmin(costs))]


def one_shot_outcomes(
    group_of_value: Indices, weights: Floats, epsilon: Fraction
) -> list[tuple[str, Outcomes]]:
    """List mechanisms that report the group of a value once, at this epsilon."""
    count, epsilon_ = int(group_of_value.max()) + 1, float(epsilon)
    group_domain = FiniteSet(range(count))
    size = min(count - 1, max(1, round(count / (math.exp(epsilon_) + 1))))
    mechanisms: list[tuple[str, Outcomes]] = []

    def add_exact(name: str, query: Query) -> None:
        table = response_table_on(group_domain, range(count), query)[:, group_of_value]
        mechanisms.append((name, ExactOutcomes.of(table, weights, (1.0,), 1.0)))

    if size == 1:
        add_exact("randomized response", randomized_response(epsilon=epsilon))
    elif math.comb(count, size) <= _MOST_SETS:
        add_exact(f"subsets of {size}", subset_selection(size=size, epsilon=epsilon))
    else:
        group_weights = np.bincount(group_of_value, weights, minlength=count).astype(np.float64)
        mechanisms.append(
            (
                f"subsets of {size}",
                SubsetOutcomes(group_of_value, group_weights, size, math.exp(epsilon_)),
            )
        )
    if count > 2:
        order = 1 << count.bit_length()
        add_exact("Hadamard response", hadamard_response(order=order, epsilon=epsilon))
    return mechanisms


def response_table(support: ModelSupport, query: Query) -> Floats:
    """Pr(response | value): a row for each response, a column for each value of the support."""
    return response_table_on(support.domain, support.values, query)


def response_table_on(domain: Domain, values: Iterable[Any], query: Query) -> Floats:
    """The same at some values of a domain."""
    likelihood = query.on(domain)
    if isinstance(likelihood, Pairwise):
        # All responses are alike, and there may be very many entries.
        log_ratio = likelihood.epsilon.nearest
        supported = [likelihood.supported_values(y) for y in range(len(likelihood.responses))]
        rows = np.exp(log_ratio * np.array(supported, dtype=np.float64))
        return np.asarray(rows / rows.sum(axis=0))
    indices = [domain.locate(value) for value in values]
    if isinstance(likelihood, LiftedLikelihood):
        # A row for each class of values is enough, of which there are few.
        classes = _listed_table(likelihood.seen, range(len(likelihood.seen.domain)))
        return np.asarray(classes.T[likelihood.where[np.array(indices, dtype=np.intp)]].T)
    return _listed_table(likelihood, indices)


def _listed_table(likelihood: Likelihood[Any], indices: Iterable[Any]) -> Floats:
    pmfs = [likelihood.pmf(index) for index in indices]
    positions = range(len(likelihood.responses))
    return np.array([[pmf.weight(y) / pmf.total for pmf in pmfs] for y in positions])


def _piecewise(query: Query) -> Query | None:
    """The piecewise mechanism about the same score, if its range has a grid of some hundred."""
    if not isinstance(query, Linear) or query.range is None:
        return None
    low, high = map(exact, query.range)
    common = Fraction(
        math.gcd(low.numerator * high.denominator, high.numerator * low.denominator),
        low.denominator * high.denominator,
    )
    steps = (high - low) / common
    if steps > _MOST_STEPS:
        return None
    grid = common / math.ceil(_FEWEST_STEPS / steps)
    narrow = Piecewise(query.score, query.range, grid, query.epsilon, 1)
    return replace(narrow, window=narrow.usual_window)


def _mean_variance(query: Query, table: Floats, support: ModelSupport) -> float:
    """The mean variance of the unbiased estimate from one response."""
    meaning, responses = query.meaning(support.domain), query.on(support.domain).responses
    estimates = np.array([float(meaning.estimate(response)) for response in responses])
    return float((estimates**2 @ table - (estimates @ table) ** 2) @ support.weights)


def _sum_of_variances(table: Floats, groups: Indices, weights: Floats) -> float:
    """The sum of the variances of the shares of all groups, in the limit, for one subject."""
    outcomes = ExactOutcomes.of(table, weights, (1.0,), 1.0)
    if len(outcomes.weights) <= int(groups.max()):
        return math.inf
    return float(np.trace(np.linalg.pinv(outcomes.information)))


@lru_cache(maxsize=64)
def _response_of_groups(epsilon: Fraction, groups: tuple[int, ...]) -> Query:
    """Randomized response about groups, as a channel of classes."""
    count = max(groups) + 1
    heavy, light = two_weights(epsilon)
    total = heavy + (count - 1) * light
    rows = [
        [Fraction(heavy if group == response else light, total) for response in range(count)]
        for group in range(count)
    ]
    return channel(rows, of=groups)


_ANY_EPSILON = Fraction(1)


@dataclass(frozen=True)
class Goal:
    """One figure, or several that belong together, which a study is to estimate.

    ``kind`` is ``"share"`` of a statement, ``"distribution"`` of the value or of an attribute, or
    ``"mean"`` of a coordinate or of a score, which a query is about.
    """

    kind: str
    of: str | tuple[Any, ...] | Query
    """A statement, some values, a name, or a query, whose epsilon does not matter."""

    @property
    def name(self) -> str:
        """What reports call it."""
        if isinstance(self.of, str):
            return make_printable(f"{self.kind} of {self.of}" if self.kind != "share" else self.of)
        if isinstance(self.of, tuple):
            return f"share of {len(self.of):,} value{'s' if len(self.of) > 1 else ''}"
        return make_printable(f"mean of {self.of.asks}")

    def variables(self, domain: Domain) -> tuple[Variable, ...]:
        """The attributes that it is about, and at which steps."""
        match domain:
            case FiniteSet() | Box():
                return ()
            case Attributes():
                return self._variables(domain)
            case _:
                assert_never(domain)

    def _variables(self, domain: Attributes) -> tuple[Variable, ...]:
        if isinstance(self.of, tuple):
            raise InvalidInput("the share of some values is for sets; give a statement")
        if not isinstance(self.of, str):
            raise InvalidInput("a mean of a score is for boxes and sets; name an attribute")
        if self.kind == "share":
            return Statement(domain, self.of).variables
        return (_variable(domain, self.of),)

    def on(self, domain: Domain, support: ModelSupport) -> tuple[Target, StudyQuestion]:
        """The goal in numbers, and what can be asked about it."""
        reader = _GoalReader(self, support)
        match domain:
            case FiniteSet():
                return reader.on_set(domain)
            case Attributes():
                return reader.on_attributes(domain)
            case Box():
                return reader.on_box()
            case _:
                assert_never(domain)

    def tree(self) -> dict[str, Any]:
        """The goal as it is in a study file."""
        if isinstance(self.of, str):
            return {self.kind: self.of}
        if isinstance(self.of, tuple):
            return {self.kind: list(self.of)}
        return {self.kind: {"kind": self.of.kind, **self.of.tree()}}


def read_goal(goal: Any) -> Goal:
    """A goal as a person gives it: a statement, or an object with a kind and what it is of."""
    if isinstance(goal, Goal):
        return goal
    if isinstance(goal, str):
        return Goal("share", text(goal))
    if isinstance(goal, Query):
        return Goal("mean", goal)
    if not isinstance(goal, Mapping):
        raise InvalidInput('must be a statement, a query, or such as {"mean": "age"}')
    fields = members(dict(goal), optional=("share", "distribution", "mean"))
    if len(fields) != 1:
        raise InvalidInput('must have one of "share", "distribution" and "mean"')
    kind, of = next(iter(fields.items()))
    with at(kind):
        if kind == "mean" and isinstance(of, Query):
            return Goal(kind, of)
        if kind == "mean" and isinstance(of, dict):
            return Goal(kind, query_from_json({"epsilon": "1", **of}))
        if kind == "share" and isinstance(of, (list, tuple)):
            return Goal(kind, tuple(of))
        return Goal(kind, text(of))


@dataclass(frozen=True)
class _GoalReader:
    """A goal on its support, by the kind of the domain."""

    goal: Goal
    support: ModelSupport

    def on_set(self, domain: FiniteSet) -> tuple[Target, StudyQuestion]:
        of = self.goal.of
        if isinstance(of, tuple):
            return self._members(domain, of)
        if not isinstance(of, str):
            ends, scores = _range_and_scores(of.with_epsilon(_ANY_EPSILON), domain, domain.values)
            return self._mean(perturbation(scores.tolist(), range=ends, epsilon=_ANY_EPSILON))
        if self.goal.kind == "share":
            return self._share(domain, of)
        names = domain.called("value")
        if of not in ("value", *names):
            known_names = ", ".join(dict.fromkeys(("value", *names)))
            raise InvalidInput(f"there is no {of!r}; known here: {known_names}")
        if of in names:
            return self._of_column([row[of] for row in self.support.rows])
        return self._of_column([tuple(row.values()) for row in self.support.rows])

    def on_attributes(self, domain: Attributes) -> tuple[Target, StudyQuestion]:
        of = self.goal.of
        assert isinstance(of, str), "as checked with its variables"
        if self.goal.kind == "share":
            return self._share(domain, of)
        name, step = _variable(domain, of)
        key = name if step is None else (name, step)
        return self._of_column([row[key] for row in self.support.rows])

    def on_box(self) -> tuple[Target, StudyQuestion]:
        of = self.goal.of
        if self.goal.kind != "mean":
            raise InvalidInput("on a box goals are means, also of coordinates that are 0 or 1")
        assert not isinstance(of, tuple)
        query = (
            linear({of: 1}, epsilon=_ANY_EPSILON)
            if isinstance(of, str)
            else of.with_epsilon(_ANY_EPSILON)
        )
        return self._mean(query)

    def _share(self, domain: Domain, statement: str) -> tuple[Target, StudyQuestion]:
        holds = parse_predicate(statement, domain)
        return self._statement(np.array([holds(row) for row in self.support.rows], dtype=np.intp))

    def _members(self, domain: FiniteSet, values: tuple[Any, ...]) -> tuple[Target, StudyQuestion]:
        indicator = np.zeros(len(domain), dtype=np.intp)
        for index, value in enumerate(values):
            position = domain.locate(value)
            if position is None:
                raise InvalidInput("is not a value of the domain", f"share[{index}]")
            indicator[position] = 1
        return self._statement(indicator)

    def _statement(self, indicator: Indices) -> tuple[Target, StudyQuestion]:
        if indicator.min() == indicator.max():
            raise InvalidInput("every value has the same answer, so there is nothing to ask")
        return Target(indicator[None].astype(np.float64), 1.0), StatementQuestion(indicator)

    def _of_column(self, values: Sequence[Any]) -> tuple[Target, StudyQuestion]:
        """The distribution or the mean of what is named."""
        value_ids = {value: index for index, value in enumerate(dict.fromkeys(values))}
        if len(value_ids) < 2:
            raise InvalidInput("there is one value only, so there is nothing to ask")
        if self.goal.kind == "distribution":
            groups = np.array([value_ids[value] for value in values], dtype=np.intp)
            return Target(np.eye(len(value_ids))[:, groups], 1.0), GroupQuestion(groups)
        if any(isinstance(value, (str, tuple)) for value in values):
            raise InvalidInput("a mean needs numbers")
        ends = (min(values), max(values))
        query = perturbation([float(x) for x in values], range=ends, epsilon=_ANY_EPSILON)
        return self._mean(query)

    def _mean(self, query: Query | None) -> tuple[Target, StudyQuestion]:
        (low, high), scores = _range_and_scores(query, self.support.domain, self.support.values)
        assert query is not None
        return Target(scores[None], high - low), ScoreQuestion(query)


def _range_and_scores(
    query: Query | None, domain: Domain, values: Iterable[Any]
) -> tuple[tuple[float, float], Floats]:
    """The range of what a query of one bit is about, and its scores, from those at epsilon 1."""
    if query is None or len(query.on(domain).responses) != 2:
        raise InvalidInput("a mean needs a query of one bit, such as linear or logistic")
    low, high = map(float, query.meaning(domain).range)
    # Pr(upper end) is 1/(E + 1) + share · (E - 1)/(E + 1) with E = e, a little rounded.
    upper_probability = response_table_on(domain, values, query)[1]
    share = np.clip((upper_probability * (np.e + 1) - 1) / (np.e - 1), 0, 1)
    return (low, high), np.asarray(low + (high - low) * share)


def _variable(domain: Attributes, name: str) -> Variable:
    """An attribute by its name, with a step where it changes: ``active at 3``."""
    head, sign, step = name.rpartition(" at ")
    if sign and head in domain.names and step.lstrip("-").isdigit():
        return domain.variables([head], int(step))[0]
    return domain.variables([name], None)[0]
