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
from expost.designs._accuracy import Target
from expost.designs._model_support import ModelSupport
from expost.designs._reports import Mechanism, Report, response_table_on
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at, make_printable
from expost.files.reading import members, text
from expost.knowledge import Statement, locate_all, parse_predicate
from expost.numbers import exact
from expost.queries import (
    Query,
    channel,
    linear,
    perturbation,
    query_from_json,
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
    "read_goal",
    "response_table",
]


_FEWEST_STEPS, _MOST_STEPS = 64, 512


@dataclass(frozen=True, eq=False)
class StudyQuestion(ABC):
    """A question of a study."""

    #: The answer of each value, from 0: 1 or 0 for a statement, else the number of its group.
    answers: Indices

    @abstractmethod
    def query(self, epsilon: Fraction) -> Query:
        """Return a query with two responses, or one for each group, to be asked repeatedly."""

    def best_query(self, support: ModelSupport, epsilon: Fraction) -> Query:
        """Return the most accurate single query at this epsilon."""
        return self.query(epsilon)

    def best_table(self, support: ModelSupport, epsilon: Fraction) -> Floats:
        """Compute Pr(response | value) of the most accurate single query at this epsilon."""
        return response_table(support, self.best_query(support, epsilon))


@dataclass(frozen=True, eq=False)
class StatementQuestion(StudyQuestion):
    """A statement, which is true or false of each value."""

    def query(self, epsilon: Fraction) -> Query:
        return perturbation(self.answers.tolist(), range=(0, 1), epsilon=epsilon)


@dataclass(frozen=True, eq=False)
class ScoreQuestion(StudyQuestion):
    """A question about a score, as a one-bit query at any epsilon."""

    template: Query

    def query(self, epsilon: Fraction) -> Query:
        query = self.template.with_epsilon(epsilon)
        assert query is not None
        return query

    def best_query(self, support: ModelSupport, epsilon: Fraction) -> Query:
        """Choose one bit, or the piecewise mechanism if its variance is smaller."""
        one_bit = self.query(epsilon)
        queries = [query for query in (one_bit, _piecewise(one_bit)) if query is not None]
        return min(queries, key=lambda query: _mean_variance(query, support))


@dataclass(frozen=True, eq=False)
class GroupQuestion(StudyQuestion):
    """A question about the group of a value: the value itself, or that of one attribute."""

    def query(self, epsilon: Fraction) -> Query:
        return _response_of_groups(epsilon, tuple(self.answers.tolist()))

    def best_query(self, support: ModelSupport, epsilon: Fraction) -> Query:
        """Return the best query about the number of the group."""
        return self._best_report(support, epsilon).query

    def best_table(self, support: ModelSupport, epsilon: Fraction) -> Floats:
        return self._best_report(support, epsilon).table[:, self.answers]

    def _best_report(self, support: ModelSupport, epsilon: Fraction) -> Report:
        count = int(self.answers.max()) + 1
        weights = np.bincount(self.answers, support.weights).astype(np.float64)
        reports = (Report.of(mechanism, count, epsilon) for mechanism in Mechanism)
        listed = [report for report in reports if report.is_listed]
        # The least sum of the variances of unbiased frequencies.
        return min(listed, key=lambda report: report.sum_of_variances(weights))


def response_table(support: ModelSupport, query: Query) -> Floats:
    """Compute Pr(response | value): a row per response, a column per value of the support."""
    return response_table_on(support.domain, support.values, query)


def _piecewise(query: Query) -> Query | None:
    """Return the piecewise mechanism about a query's score, if a coarse grid fits its range."""
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
    base = Piecewise(query.score, query.range, grid, query.epsilon, 1)
    return replace(base, window=base.usual_window)


def _mean_variance(query: Query, support: ModelSupport) -> float:
    """Compute the mean variance of the unbiased estimate from one response."""
    table = response_table(support, query)
    meaning, responses = query.meaning(support.domain), query.on(support.domain).responses
    estimates = np.array([float(meaning.estimate(response)) for response in responses])
    return float((estimates**2 @ table - (estimates @ table) ** 2) @ support.weights)


@lru_cache(maxsize=64)
def _response_of_groups(epsilon: Fraction, groups: tuple[int, ...]) -> Query:
    """Return randomized response about groups, as a channel of classes."""
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
    """One number, or several that belong together, that a study should estimate.

    ``kind`` is ``"share"`` of a statement, ``"distribution"`` of the value or of an attribute, or
    ``"mean"`` of a coordinate or of a score, which a query is about.
    """

    kind: str
    #: A statement, some values, a name, or a query, whose epsilon does not matter.
    of: str | tuple[Any, ...] | Query

    @property
    def name(self) -> str:
        """The name in reports."""
        if isinstance(self.of, str):
            return make_printable(f"{self.kind} of {self.of}" if self.kind != "share" else self.of)
        if isinstance(self.of, tuple):
            return f"share of {len(self.of):,} value{'s' if len(self.of) > 1 else ''}"
        return make_printable(f"mean of {self.of.asks}")

    def variables(self, domain: Domain) -> tuple[Variable, ...]:
        """List the attributes that it is about, with their steps."""
        if not isinstance(domain, Attributes):
            return ()
        if isinstance(self.of, tuple):
            raise InvalidInput("the share of some values is for sets; give a statement")
        if not isinstance(self.of, str):
            raise InvalidInput("a mean of a score is for boxes and sets; name an attribute")
        if self.kind == "share":
            return Statement(domain, self.of).variables
        return (_variable(domain, self.of),)

    def on(self, domain: Domain, support: ModelSupport) -> tuple[Target, StudyQuestion]:
        """Return the goal as a linear function of the distribution, and the question about it."""
        match domain:
            case FiniteSet():
                return self._on_set(domain, support)
            case Attributes():
                return self._on_attributes(domain, support)
            case Box():
                return self._on_box(support)
            case _:
                assert_never(domain)

    def _on_set(self, domain: FiniteSet, support: ModelSupport) -> tuple[Target, StudyQuestion]:
        of = self.of
        if isinstance(of, tuple):
            return _members_target(domain, of)
        if not isinstance(of, str):
            ends, scores = _range_and_scores(of.with_epsilon(_ANY_EPSILON), domain, domain.values)
            query = perturbation(scores.tolist(), range=ends, epsilon=_ANY_EPSILON)
            return _mean_target(query, support)
        if self.kind == "share":
            return _share_target(domain, of, support)
        names = domain.called("value")
        if of not in ("value", *names):
            known_names = ", ".join(dict.fromkeys(("value", *names)))
            raise InvalidInput(f"unknown name {of!r}; known: {known_names}")
        if of in names:
            return self._of_column([row[of] for row in support.rows], support)
        return self._of_column([tuple(row.values()) for row in support.rows], support)

    def _on_attributes(
        self, domain: Attributes, support: ModelSupport
    ) -> tuple[Target, StudyQuestion]:
        assert isinstance(self.of, str), "as checked with its variables"
        if self.kind == "share":
            return _share_target(domain, self.of, support)
        name, step = _variable(domain, self.of)
        key = name if step is None else (name, step)
        return self._of_column([row[key] for row in support.rows], support)

    def _on_box(self, support: ModelSupport) -> tuple[Target, StudyQuestion]:
        of = self.of
        if self.kind != "mean":
            raise InvalidInput("on a box goals are means, also of coordinates that are 0 or 1")
        assert not isinstance(of, tuple)
        if isinstance(of, str):
            return _mean_target(linear({of: 1}, epsilon=_ANY_EPSILON), support)
        return _mean_target(of.with_epsilon(_ANY_EPSILON), support)

    def _of_column(
        self, values: Sequence[Any], support: ModelSupport
    ) -> tuple[Target, StudyQuestion]:
        """Read a distribution or a mean, from the value of each row."""
        value_ids = {value: index for index, value in enumerate(dict.fromkeys(values))}
        if len(value_ids) < 2:
            raise InvalidInput("there is one value only, so there is nothing to ask")
        if self.kind == "distribution":
            groups = np.array([value_ids[value] for value in values], dtype=np.intp)
            return Target(np.eye(len(value_ids))[:, groups], 1.0), GroupQuestion(groups)
        if any(isinstance(value, (str, tuple)) for value in values):
            raise InvalidInput("a mean needs numbers")
        ends = (min(values), max(values))
        query = perturbation([float(x) for x in values], range=ends, epsilon=_ANY_EPSILON)
        return _mean_target(query, support)

    def tree(self) -> dict[str, Any]:
        """Return the goal as in a study file."""
        if isinstance(self.of, str):
            return {self.kind: self.of}
        if isinstance(self.of, tuple):
            return {self.kind: list(self.of)}
        return {self.kind: self.of.tagged_tree()}


def read_goal(goal: Any) -> Goal:
    """Read a goal: a statement, a query, or an object such as ``{"mean": "age"}``."""
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


def _members_target(domain: FiniteSet, values: tuple[Any, ...]) -> tuple[Target, StudyQuestion]:
    answers = np.zeros(len(domain), dtype=np.intp)
    with at("share"):
        answers[list(locate_all(domain, values))] = 1
    return _statement_target(answers)


def _share_target(
    domain: Domain, statement: str, support: ModelSupport
) -> tuple[Target, StudyQuestion]:
    holds = parse_predicate(statement, domain)
    return _statement_target(np.array([holds(row) for row in support.rows], dtype=np.intp))


def _statement_target(answers: Indices) -> tuple[Target, StudyQuestion]:
    if answers.min() == answers.max():
        raise InvalidInput("every value has the same answer, so there is nothing to ask")
    return Target(answers[None].astype(np.float64), 1.0), StatementQuestion(answers)


def _mean_target(query: Query | None, support: ModelSupport) -> tuple[Target, StudyQuestion]:
    (low, high), scores = _range_and_scores(query, support.domain, support.values)
    assert query is not None
    _, groups = np.unique(scores, return_inverse=True)
    return Target(scores[None], high - low), ScoreQuestion(groups.reshape(-1), query)


def _range_and_scores(
    query: Query | None, domain: Domain, values: Iterable[Any]
) -> tuple[tuple[float, float], Floats]:
    """Compute the range and the scores that a one-bit query at epsilon 1 is about."""
    if query is None or len(query.on(domain).responses) != 2:
        raise InvalidInput("a mean needs a query of one bit, such as linear or logistic")
    low, high = map(float, query.meaning(domain).range)
    # Pr(upper end) is 1/(E + 1) + share · (E - 1)/(E + 1) with E = e, a little rounded.
    upper_probability = response_table_on(domain, values, query)[1]
    share = np.clip((upper_probability * (np.e + 1) - 1) / (np.e - 1), 0, 1)
    return (low, high), np.asarray(low + (high - low) * share)


def _variable(domain: Attributes, name: str) -> Variable:
    """Return an attribute by its name, with a step if it changes: ``active at 3``."""
    head, sign, step = name.rpartition(" at ")
    if sign and head in domain.names and step.lstrip("-").isdigit():
        return domain.variables([head], int(step))[0]
    return domain.variables([name], None)[0]
