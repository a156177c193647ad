"""Beliefs over records and histories: exact, and never an enumeration of records.

A belief is a product of tables of integers, each over a few variables; what was answered is more
such tables. How likely something is are two sums of products, worked out variable by variable with
the plans of :mod:`expost.loss._elimination`. A history is a chain of states, each a value and how
often it has changed so far. Proof: docs/theory/knowledge.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
from expost._grouping import group_pairs
from expost._types import Indices
from expost.domains import Attribute, Attributes, Variable, join_names
from expost.errors import InvalidInput, at, expect
from expost.files.reading import read_integer, read_list, text
from expost.knowledge._belief import Belief, check_same_domain, likelihoods_on
from expost.knowledge._statement import Statement
from expost.loss._elimination import plan_elimination, rank
from expost.tally import Summand
from expost.transcript import Transcript

__all__ = ["RecordBelief", "allowed_histories"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RecordBelief:
    """A belief of an observer about the attributes of a subject.

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
    #: The prior of some attributes; all others are uniform.
    tables: Mapping[tuple[str, ...], Belief]
    #: The steps of histories, where changes are limited.
    steps: tuple[int, ...]
    #: Likelihoods over what was asked about, up to common factors.
    _answered: tuple[Factor, ...]

    def __init__(
        self,
        domain: Attributes,
        tables: Mapping[Any, Any] | None = None,
        *,
        steps: Iterable[int] = (),
    ) -> None:
        expect(domain, Attributes, "Attributes (Belief is for a FiniteSet)")
        with at("steps"):
            step_numbers = tuple(sorted(set(read_list(steps, read_integer))))
        with at("tables"):
            expect(tables, Mapping | None, "a mapping from names to probabilities")
            read = _read(domain, tables or {})
        vars(self).update(domain=domain, tables=read, steps=step_numbers, _answered=())

    def __repr__(self) -> str:
        return f"RecordBelief({join_names(self.domain.names)})"

    def in_words(self, about: Iterable[str]) -> str:
        """Return a sentence about the values that the prior assumes equally likely, if any."""
        names = [name for name in self.domain.names if name in set(about)]
        with_table = [name for table in self.tables for name in table]
        histories = [name for name in names if self._limited(name)]
        uniform = [name for name in names if name not in with_table and name not in histories]
        clauses = []
        if uniform:
            clauses.append(f"all values of {format_list(uniform)}")
        if histories:
            steps = f"step{'s' if len(self.steps) > 1 else ''} {format_list(self.steps)}"
            clauses.append(f"all allowed histories of {format_list(histories)} at {steps}")
        assumed = " and that ".join(f"{clause} are equally likely" for clause in clauses)
        return f"The prior assumes that {assumed}." if clauses else ""

    def _with(self, **fields: Any) -> RecordBelief:
        belief = copy(self)
        vars(belief).update(fields)
        return belief

    def _limited(self, name: str) -> bool:
        change = self.domain[name].change
        return change is not None and change.limited

    def over(self, steps: Iterable[int]) -> RecordBelief:
        """Return this prior with histories over these steps, before any response."""
        return self._with(steps=tuple(sorted(set(steps))), _answered=())

    def updated(self, transcript: Transcript) -> RecordBelief:
        """Return the belief after the responses of a transcript, by Bayes' rule, exactly."""
        check_same_domain(transcript, Transcript, "a transcript", self.domain, "belief")
        tally_by_variables = group_pairs(
            (summand.query.on(self.domain).variables, summand) for summand in transcript.tally
        )
        answered = itertools.starmap(self._factor, tally_by_variables.items())
        after = self._with(_answered=(*self._answered, *answered))
        if not after._sums(after._factors([]), ()):
            raise InvalidInput("no value that is held possible can have given these responses")
        return after

    def confidence(self, statement: Statement) -> Fraction:
        """Return the probability of a statement, exactly."""
        check_same_domain(statement, Statement, "a Statement", self.domain, "belief")
        weights = self._weights(statement.variables)
        pairs = zip(weights, statement.probabilities, strict=True)
        return sum((weight * p for weight, p in pairs), start=Fraction(0)) / sum(weights)

    def marginal(self, *names: str, at: int | None = None) -> Belief:
        """Return the belief about one attribute or several, at a step if one of them changes."""
        part = self.domain.part(names)
        return Belief.from_weights(part, self._weights(self.domain.variables(names, at)))

    def _weights(self, variables: Sequence[Variable]) -> list[int]:
        """Return the weight of each combination, up to a factor; the last variable is fastest."""
        self._check(variables)
        factors = connected_factors(self._factors(variables), variables)
        ordered = sorted(variables, key=rank)
        sums = sum_over_states(self._sums(factors, ordered), [self._copies(v) for v in ordered])
        axes = [ordered.index(variable) for variable in variables]
        return [int(weight) for weight in sums.transpose(axes).ravel()]

    def _sums(self, factors: Sequence[Factor], target: Sequence[Variable]) -> BigIntegers:
        variables = {*target, *(v for factor in factors for v in factor.variables)}
        sizes = {v: len(self.domain[v[0]].values) * self._copies(v) for v in variables}
        return sum_of_products(factors, sizes, target)

    def _copies(self, variable: Variable) -> int:
        return states_per_value(self.domain[variable[0]], self.steps)

    def _check(self, variables: Sequence[Variable]) -> None:
        """Refuse steps that the histories do not have."""
        for name, step in variables:
            if self._limited(name) and step not in self.steps:
                valid_steps = join_names(list(map(str, self.steps))) or "none"
                reason = f"the belief has no step {step} of {name}; its steps are {valid_steps}"
                raise InvalidInput(reason, "steps")

    def _factor(self, variables: tuple[Variable, ...], tally: Sequence[Summand]) -> Factor:
        """Return the likelihoods of the responses about some variables."""
        self._check(variables)
        part = self.domain.part(tuple(name for name, _ in variables))
        weights = integer_array(likelihoods_on(part, tally), part.sizes)
        copies = [self._copies(variable) for variable in variables]
        return Factor.of(variables, repeat_for_states(weights, copies))

    def _factors(self, targets: Sequence[Variable]) -> list[Factor]:
        """Return the likelihoods, and the prior of all that they and ``targets`` depend on."""
        factors = list(self._answered)
        variables = dict.fromkeys([*(v for factor in factors for v in factor.variables), *targets])
        for name, attribute in zip(self.domain.names, self.domain.kinds, strict=True):
            variables_of_name = [variable for variable in variables if variable[0] == name]
            if not variables_of_name:
                continue
            if self._limited(name):
                factors += history_factors(name, attribute, self.steps)
            elif attribute.change is not None and (name,) in self.tables:
                weights = self.tables[(name,)].weights
                table = integer_array(weights, (len(weights),))
                factors += [Factor((variable,), table) for variable in variables_of_name]
        constant = {name for name, step in variables if step is None}
        for names, belief in self.tables.items():
            if not constant.isdisjoint(names):
                joint = integer_array(belief.weights, self.domain.part(names).sizes)
                factors.append(Factor.of([(name, None) for name in names], joint))
        return factors


def _read(
    domain: Attributes, probabilities_by_key: Mapping[Any, Any]
) -> dict[tuple[str, ...], Belief]:
    """Check the tables, by the names that they are about."""
    tables: dict[tuple[str, ...], Belief] = {}
    names_seen: set[str] = set()
    for key, probabilities in probabilities_by_key.items():
        names = (key,) if isinstance(key, str) else tuple(read_list(key, text))
        with at(f"[{join_names(names)}]"):
            part = domain.part(names)
            for name in names:
                if name in names_seen:
                    raise InvalidInput(f"{name} is in two tables, or twice in one")
                names_seen.add(name)
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
            f"got a table for {name}, whose changes are limited; leave it out. All histories that "
            "the limit allows are equally likely"
        )
    if not alone:
        raise InvalidInput(f"{name} changes, and a joint table is for attributes that do not")


def states_per_value(attribute: Attribute, steps: Sequence[int]) -> int:
    """Return how many states each value has: one for each number of changes so far."""
    change = attribute.change
    if change is None or change.times is None:
        return 1
    return 1 + min(change.times, max(0, len(steps) - 1))


def repeat_for_states(weights: BigIntegers, counts: Sequence[int]) -> BigIntegers:
    """Expand a table over values to one over states, in the order of changes."""
    for axis, count in enumerate(counts):
        weights = weights.repeat(count, axis)
    return weights


def sum_over_states(weights: BigIntegers, counts: Sequence[int]) -> BigIntegers:
    """Sum a table over all states of each value."""
    for axis, count in enumerate(counts):
        shape = weights.shape
        split = weights.reshape(*shape[:axis], -1, count, *shape[axis + 1 :])
        weights = np.asarray(split.sum(axis=axis + 1), dtype=object)
    return weights


def history_factors(name: str, attribute: Attribute, steps: Sequence[int]) -> list[Factor]:
    """Return 0/1 tables: which first states and which moves between steps are allowed."""
    count = states_per_value(attribute, steps)
    start = np.zeros((len(attribute.values), count), dtype=np.int64)
    start[:, 0] = 1
    factors = [Factor(((name, steps[0]),), start.ravel().astype(object))]
    for earlier, later in itertools.pairwise(steps):
        moves = _moves(attribute, later - earlier, count).astype(object)
        factors.append(Factor(((name, earlier), (name, later)), moves))
    return factors


def allowed_histories(attribute: Attribute, steps: Sequence[int]) -> Iterator[Indices]:
    """Yield, after each step, all histories so far that the limits of changes allow.

    A history is a row of indices of values. The last step is fastest.
    """
    count = states_per_value(attribute, steps)
    states = np.arange(len(attribute.values), dtype=np.intp)[:, None] * count
    yield states // count
    for earlier, later in itertools.pairwise(steps):
        moves = _moves(attribute, later - earlier, count)
        history_index, next_states = np.nonzero(moves[states[:, -1]])
        states = np.column_stack([states[history_index], next_states])
        yield states // count


def _moves(attribute: Attribute, gap: int, count: int) -> NDArray[np.int64]:
    """Return a 0/1 table of the moves between states at two steps that are ``gap`` apart."""
    size, change = len(attribute.values), attribute.change
    assert change is not None, "only what changes has histories"
    if not change.limited:
        return np.ones((size, size), dtype=np.int64)
    same = np.eye(size, dtype=np.int64)
    if change.times is not None:
        stay, go = np.eye(count, dtype=np.int64), np.eye(count, k=1, dtype=np.int64)
        return np.kron(same, stay) + np.kron(1 - same, go)
    assert change.max_step is not None, "without a limit there is nothing between steps"
    values, most = attribute.fractions, change.max_step * gap
    return np.array([[int(abs(a - b) <= most) for b in values] for a in values], dtype=np.int64)


#: Python integers of any size.
BigIntegers = NDArray[np.object_]

#: In bits, for the largest intermediate table: a gigabyte.
_MOST_MEMORY = 1 << 33


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Non-negative integers for all combinations of some variables, with an axis for each."""

    variables: tuple[Variable, ...]
    weights: BigIntegers

    @classmethod
    def of(cls, variables: Sequence[Variable], weights: BigIntegers) -> Factor:
        """Return a factor whose axes follow the order of its variables."""
        axes = sorted(range(len(variables)), key=lambda k: rank(variables[k]))
        return cls(tuple(variables[k] for k in axes), weights.transpose(axes))

    @property
    def bits(self) -> int:
        """The largest number of bits of a weight."""
        return int(max(self.weights.ravel().tolist())).bit_length()


def integer_array(weights: Any, shape: tuple[int, ...]) -> BigIntegers:
    """Return an array of Python integers; the integers of NumPy would overflow."""
    result = np.empty(prod(shape), dtype=object)
    result[:] = [int(weight) for weight in weights]
    return result.reshape(shape)


def sum_of_products(
    factors: Sequence[Factor], sizes: Mapping[Variable, int], target: Sequence[Variable]
) -> BigIntegers:
    """Sum the product of all factors over all variables except the target."""
    targets = tuple(sorted(target, key=rank))
    shape = tuple(sizes[variable] for variable in targets)
    tables = [*factors, Factor(targets, integer_array([1] * prod(shape), shape))]
    variables = {variable for factor in tables for variable in factor.variables}
    planned = plan_elimination(
        tuple((variable, sizes[variable]) for variable in sorted(variables, key=rank)),
        tuple(factor.variables for factor in tables),
        targets,
    )
    widest = max(prod(step.sizes) for step in planned.steps)
    if widest * sum(factor.bits for factor in factors) > _MOST_MEMORY:
        raise InvalidInput(f"too many responses for exact numbers on {widest:,} combinations")
    operands = [factor.weights for factor in tables]
    for step in planned.steps:
        first, *other_operands = step.operands
        total = operands[first.index].reshape(first.shape)
        for other in other_operands:
            total = total * operands[other.index].reshape(other.shape)
        if step.axis is None:
            break
        operands.append(np.asarray(total.sum(axis=step.axis), dtype=object))
    return np.asarray(total, dtype=object)


def connected_factors(factors: Iterable[Factor], targets: Iterable[Variable]) -> list[Factor]:
    """Return the factors that some variables depend on, directly or through others."""
    waiting, reached, reached_factors = list(factors), set(targets), list[Factor]()
    while True:
        near = [factor for factor in waiting if not reached.isdisjoint(factor.variables)]
        if not near:
            return reached_factors
        reached_factors += near
        waiting = [factor for factor in waiting if reached.isdisjoint(factor.variables)]
        reached.update(variable for factor in near for variable in factor.variables)
