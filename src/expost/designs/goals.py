"""What a study is for: shares, distributions and means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from expost._types import Floats, Indices
from expost.designs.accuracy import Target
from expost.designs.questions import Group, Question, Score, YesNo, table_on
from expost.designs.support import Support
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at, make_printable
from expost.files.reading import members, text
from expost.knowledge import Statement, parse_predicate
from expost.queries import Query, linear, perturbation, query_from_json

__all__ = ["Goal", "read_goal"]

_ANY = Fraction(1)


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

    def on(self, domain: Domain, support: Support) -> tuple[Target, Question]:
        """The goal in numbers, and what can be asked about it."""
        in_numbers = _InNumbers(self, support)
        match domain:
            case FiniteSet():
                return in_numbers.on_set(domain)
            case Attributes():
                return in_numbers.on_attributes(domain)
            case Box():
                return in_numbers.on_box()
            case _:
                assert_never(domain)

    def tree(self) -> dict[str, Any]:
        """The goal as it is in a study file."""
        if isinstance(self.of, str):
            return {self.kind: self.of}
        if isinstance(self.of, tuple):
            return {self.kind: list(self.of)}
        return {self.kind: {"kind": self.of.kind, **self.of.tree()}}


def read_goal(given: Any) -> Goal:
    """A goal as a person gives it: a statement, or an object with a kind and what it is of."""
    if isinstance(given, Goal):
        return given
    if isinstance(given, str):
        return Goal("share", text(given))
    if isinstance(given, Query):
        return Goal("mean", given)
    if not isinstance(given, Mapping):
        raise InvalidInput('must be a statement, a query, or such as {"mean": "age"}')
    fields = members(dict(given), optional=("share", "distribution", "mean"))
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
class _InNumbers:
    """A goal on its support, by the kind of the domain."""

    goal: Goal
    support: Support

    def on_set(self, domain: FiniteSet) -> tuple[Target, Question]:
        of = self.goal.of
        if isinstance(of, tuple):
            return self._members(domain, of)
        if not isinstance(of, str):
            ends, scores = _scores(of.with_epsilon(_ANY), domain, domain.values)
            return self._mean(perturbation(scores.tolist(), range=ends, epsilon=_ANY))
        if self.goal.kind == "share":
            return self._share(domain, of)
        names = domain.called("value")
        if of not in ("value", *names):
            known = ", ".join(dict.fromkeys(("value", *names)))
            raise InvalidInput(f"there is no {of!r}; known here: {known}")
        if of in names:
            return self._of_column([row[of] for row in self.support.rows])
        return self._of_column([tuple(row.values()) for row in self.support.rows])

    def on_attributes(self, domain: Attributes) -> tuple[Target, Question]:
        of = self.goal.of
        assert isinstance(of, str), "as checked with its variables"
        if self.goal.kind == "share":
            return self._share(domain, of)
        name, step = _variable(domain, of)
        key = name if step is None else (name, step)
        return self._of_column([row[key] for row in self.support.rows])

    def on_box(self) -> tuple[Target, Question]:
        of = self.goal.of
        if self.goal.kind != "mean":
            raise InvalidInput("on a box goals are means, also of coordinates that are 0 or 1")
        assert not isinstance(of, tuple)
        query = linear({of: 1}, epsilon=_ANY) if isinstance(of, str) else of.with_epsilon(_ANY)
        return self._mean(query)

    def _share(self, domain: Domain, statement: str) -> tuple[Target, Question]:
        holds = parse_predicate(statement, domain)
        return self._yes_or_no(np.array([holds(row) for row in self.support.rows], dtype=np.intp))

    def _members(self, domain: FiniteSet, values: tuple[Any, ...]) -> tuple[Target, Question]:
        says = np.zeros(len(domain), dtype=np.intp)
        for index, value in enumerate(values):
            place = domain.locate(value)
            if place is None:
                raise InvalidInput("is not a value of the domain", f"share[{index}]")
            says[place] = 1
        return self._yes_or_no(says)

    def _yes_or_no(self, says: Indices) -> tuple[Target, Question]:
        if says.min() == says.max():
            raise InvalidInput("every value has the same answer, so there is nothing to ask")
        return Target(says[None].astype(np.float64), 1.0), YesNo(says)

    def _of_column(self, values: Sequence[Any]) -> tuple[Target, Question]:
        """The distribution or the mean of what is named."""
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        if len(numbers) < 2:
            raise InvalidInput("there is one value only, so there is nothing to ask")
        if self.goal.kind == "distribution":
            of = np.array([numbers[value] for value in values], dtype=np.intp)
            return Target(np.eye(len(numbers))[:, of], 1.0), Group(of)
        if any(isinstance(value, (str, tuple)) for value in values):
            raise InvalidInput("a mean needs numbers")
        ends = (min(values), max(values))
        query = perturbation([float(x) for x in values], range=ends, epsilon=_ANY)
        return self._mean(query)

    def _mean(self, query: Query | None) -> tuple[Target, Question]:
        (low, high), scores = _scores(query, self.support.domain, self.support.values)
        assert query is not None
        return Target(scores[None], high - low), Score(query)


def _scores(
    query: Query | None, domain: Domain, values: Iterable[Any]
) -> tuple[tuple[float, float], Floats]:
    """The range of what a query of one bit is about, and its scores, from those at epsilon 1."""
    if query is None or len(query.on(domain).responses) != 2:
        raise InvalidInput("a mean needs a query of one bit, such as linear or logistic")
    low, high = map(float, query.meaning(domain).range)
    # Pr(upper end) is 1/(E + 1) + share · (E - 1)/(E + 1) with E = e, a little rounded.
    top = table_on(domain, values, query)[1]
    share = np.clip((top * (np.e + 1) - 1) / (np.e - 1), 0, 1)
    return (low, high), np.asarray(low + (high - low) * share)


def _variable(domain: Attributes, name: str) -> Variable:
    """An attribute by its name, with a step where it changes: ``active at 3``."""
    head, sign, step = name.rpartition(" at ")
    if sign and head in domain.names and step.lstrip("-").isdigit():
        return domain.variables([head], int(step))[0]
    return domain.variables([name], None)[0]
