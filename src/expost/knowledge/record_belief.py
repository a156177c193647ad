"""Beliefs over records and histories: exact, and never an enumeration of records.

A belief is a product of tables of integers, each over a few variables; what was answered is more
such tables. How likely something is are two sums of products, worked out variable by variable with
the plans of :mod:`expost.loss._elimination`. A history is a chain of states, each a value and how
often it has changed so far. Proof: docs/theory/knowledge.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost.domains import Attributes, Variable, some
from expost.errors import InvalidInput, at, expect
from expost.files.reading import each, text, whole
from expost.knowledge.belief import Belief, likelihoods_on
from expost.knowledge.factors import Factor, Integers, connected, integers, sum_of_products
from expost.knowledge.histories import allowed, copies, over_states, over_values
from expost.knowledge.statement import Statement
from expost.loss._elimination import rank
from expost.queries import About
from expost.queries.words import listed
from expost.transcript import Summand, Transcript

__all__ = ["RecordBelief"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RecordBelief:
    """What an observer believes about the attributes of a subject.

    ``tables`` gives probabilities of single attributes, or of several jointly: by a name, or by
    a tuple of names, probabilities as for a :class:`Belief`. Attributes without a table are
    uniform, and all tables are independent.

    An attribute that changes without a limit is independent from step to step, with the same
    probabilities at each. One that changes a limited number of times, or by limited steps, has no
    table: all histories that its limit allows at the ``steps`` are equally likely. Only these steps
    can then be asked about.

    >>> import expost as xp
    >>> person = xp.Attributes(region=["north", "south"], smokes=["no", "yes"])
    >>> before = RecordBelief(person, {"smokes": {"no": "3/4", "yes": "1/4"}})
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]).about("smokes")
    >>> after = before.updated(xp.Transcript(person).add(query, 1))
    >>> statement = Statement(person, 'smokes == "yes" and region == "north"')
    >>> before.confidence(statement), after.confidence(statement)
    (Fraction(1, 8), Fraction(1, 4))
    >>> after.marginal("smokes").probability("yes")
    Fraction(1, 2)
    """

    domain: Attributes
    tables: Mapping[tuple[str, ...], Belief]
    """The prior of some attributes; all others are uniform."""
    steps: tuple[int, ...]
    """The steps of histories, where changes are limited."""
    _answered: tuple[Factor, ...]
    """Likelihoods over what was asked about, up to common factors."""

    def __init__(
        self,
        domain: Attributes,
        tables: Mapping[Any, Any] | None = None,
        *,
        steps: Iterable[int] = (),
    ) -> None:
        expect(domain, Attributes, "Attributes (Belief is for a FiniteSet)")
        with at("steps"):
            known = tuple(sorted(set(each(steps, whole))))
        with at("tables"):
            expect(tables, Mapping | None, "a mapping from names to probabilities")
            read = _read(domain, tables or {})
        _set(self, domain, read, known, ())

    def __repr__(self) -> str:
        return f"RecordBelief({some(self.domain.names)})"

    def in_words(self, about: Iterable[str]) -> str:
        """What it takes as equally likely of some attributes, as a sentence; or nothing."""
        names = [name for name in self.domain.names if name in set(about)]
        given = [name for table in self.tables for name in table]
        histories = [name for name in names if self._limited(name)]
        others = [name for name in names if name not in given and name not in histories]
        told = []
        if others:
            told.append(f"all values of {listed(others)}")
        if histories:
            steps = f"step{'s' if len(self.steps) > 1 else ''} {listed(self.steps)}"
            told.append(f"at {steps} all histories of {listed(histories)} that are allowed")
        return f"The prior takes as equally likely {', and '.join(told)}." if told else ""

    def _limited(self, name: str) -> bool:
        change = self.domain[name].change
        return change is not None and change.limited

    def over(self, steps: Iterable[int]) -> RecordBelief:
        """The same prior with histories over these steps, before any response."""
        return _made(self.domain, self.tables, tuple(sorted(set(steps))), ())

    def updated(self, transcript: Transcript) -> RecordBelief:
        """The belief after the responses of a transcript, by Bayes' rule, exactly."""
        expect(transcript, Transcript, "a transcript")
        if transcript.domain != self.domain:
            raise InvalidInput("the transcript and the belief have different domains")
        asked: dict[tuple[Variable, ...], list[Summand]] = {}
        for part in transcript.tally:
            assert isinstance(part.query, About), "records are asked about their attributes"
            variables = part.query.on(self.domain).variables
            summand = Summand(part.query.query, part.position, part.times)
            asked.setdefault(variables, []).append(summand)
        answered = [self._factor(variables, given) for variables, given in asked.items()]
        after = _made(self.domain, self.tables, self.steps, (*self._answered, *answered))
        if not after._sums(after._factors([]), ()):
            raise InvalidInput("no value that is held possible can have given these responses")
        return after

    def confidence(self, statement: Statement) -> Fraction:
        """The probability of a statement, exactly."""
        expect(statement, Statement, "a Statement")
        if statement.domain != self.domain:
            raise InvalidInput("the statement and the belief have different domains")
        weights = self._weights(statement.variables)
        sure = sum(
            (int(weight) * p for weight, p in zip(weights, statement.probabilities, strict=True)),
            start=Fraction(0),
        )
        return sure / sum(weights)

    def marginal(self, *names: str, at: int | None = None) -> Belief:
        """The belief about one attribute or several, at a step if one of them changes."""
        part = self.domain.part(names)
        weights = self._weights(self.domain.variables(names, at))
        return Belief.from_weights(part, weights)

    def _weights(self, variables: Sequence[Variable]) -> list[int]:
        """How likely each combination is, up to a common factor; the last variable is fastest."""
        self._check(variables)
        factors = connected(self._factors(variables), variables)
        ordered = sorted(variables, key=rank)
        sums = over_values(self._sums(factors, ordered), [self._copies(v) for v in ordered])
        axes = [ordered.index(variable) for variable in variables]
        return [int(weight) for weight in sums.transpose(axes).ravel()]

    def _sums(self, factors: Sequence[Factor], target: Sequence[Variable]) -> Integers:
        variables = {*target, *(v for factor in factors for v in factor.variables)}
        sizes = {v: len(self.domain[v[0]].values) * self._copies(v) for v in variables}
        return sum_of_products(factors, sizes, target)

    def _copies(self, variable: Variable) -> int:
        return copies(self.domain[variable[0]], self.steps)

    def _check(self, variables: Sequence[Variable]) -> None:
        """Refuse steps that the histories do not have."""
        for name, step in variables:
            if self._limited(name) and step not in self.steps:
                known = some(list(map(str, self.steps))) or "none"
                raise InvalidInput(
                    f"the belief has no step {step} of {name}; its steps are {known}", "steps"
                )

    def _factor(self, variables: tuple[Variable, ...], given: Sequence[Summand]) -> Factor:
        """What was answered about some variables."""
        self._check(variables)
        part = self.domain.part(tuple(name for name, _ in variables))
        weights = integers(likelihoods_on(part, given), part.sizes)
        return Factor.of(variables, over_states(weights, [self._copies(v) for v in variables]))

    def _factors(self, more: Sequence[Variable]) -> list[Factor]:
        """What was answered, and the prior of all that it and some more variables depend on."""
        found = list(self._answered)
        variables = dict.fromkeys([*(v for factor in found for v in factor.variables), *more])
        for name, attribute in zip(self.domain.names, self.domain.kinds, strict=True):
            own = [variable for variable in variables if variable[0] == name]
            if not own:
                continue
            if self._limited(name):
                found += allowed(name, attribute, self.steps)
            elif attribute.change is not None and (name,) in self.tables:
                weights = self.tables[(name,)].weights
                found += [Factor((v,), integers(weights, (len(weights),))) for v in own]
        constant = {name for name, step in variables if step is None}
        for names, belief in self.tables.items():
            if not constant.isdisjoint(names):
                joint = integers(belief.weights, self.domain.part(names).sizes)
                found.append(Factor.of([(name, None) for name in names], joint))
        return found


def _made(
    domain: Attributes,
    tables: Mapping[tuple[str, ...], Belief],
    steps: tuple[int, ...],
    answered: tuple[Factor, ...],
) -> RecordBelief:
    belief = RecordBelief.__new__(RecordBelief)
    _set(belief, domain, tables, steps, answered)
    return belief


def _set(
    belief: RecordBelief,
    domain: Attributes,
    tables: Mapping[tuple[str, ...], Belief],
    steps: tuple[int, ...],
    answered: tuple[Factor, ...],
) -> None:
    object.__setattr__(belief, "domain", domain)
    object.__setattr__(belief, "tables", tables)
    object.__setattr__(belief, "steps", steps)
    object.__setattr__(belief, "_answered", answered)


def _read(domain: Attributes, given: Mapping[Any, Any]) -> dict[tuple[str, ...], Belief]:
    """Tables by the names that they are about, checked."""
    tables: dict[tuple[str, ...], Belief] = {}
    seen: set[str] = set()
    for key, probabilities in given.items():
        names = (key,) if isinstance(key, str) else tuple(each(key, text))
        with at(f"[{some(names)}]"):
            part = domain.part(names)
            for name in names:
                if name in seen:
                    raise InvalidInput(f"{name} is in two tables, or twice in one")
                seen.add(name)
                _check_change(domain, name, alone=len(names) == 1)
            tables[names] = Belief(part, probabilities)
    return tables


def _check_change(domain: Attributes, name: str, *, alone: bool) -> None:
    """Refuse tables that would not say what a history is."""
    change = domain[name].change
    if change is None:
        return
    if change.limited:
        raise InvalidInput(
            f"the changes of {name} are limited, and all histories that the limit allows are "
            "equally likely; it takes no table"
        )
    if not alone:
        raise InvalidInput(f"{name} changes, and a joint table is for attributes that do not")
