"""The values that a design computes with, and their probabilities in a population.

On a finite set these are all values, on records the combinations that goals are about, and on a box
a sample of points."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Protocol, assert_never

import numpy as np

from expost._grouping import group_pairs
from expost._types import Floats, Indices
from expost.domains import (
    Attributes,
    Box,
    Domain,
    FiniteSet,
    Scalar,
    Variable,
    join_names,
)
from expost.errors import InvalidInput, at, read_at, unknown_name
from expost.files.reading import as_list, members
from expost.knowledge import (
    Belief,
    RecordBelief,
    Samples,
    Statement,
    allowed_histories,
    locate_all,
    named_rows,
    read_probability,
)

__all__ = [
    "MOST_VALUES",
    "ModelSupport",
    "PilotSample",
    "Population",
    "PriorPopulation",
    "Row",
    "UniformPopulation",
    "model_support",
    "numbered_support",
    "read_population",
]


#: The largest number of points of a box.
_POINTS = 256

Row = Mapping[Any, Scalar]


class Population(Protocol):
    """The probabilities of values."""

    def set_weights(self, domain: FiniteSet) -> Floats:
        """Return the probability of each value of a finite set."""

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        """Return the probabilities of records of some attributes, at some steps."""

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        """Return points of a box, and their probabilities."""


@dataclass(frozen=True)
class UniformPopulation:
    """A population in which all values, records and histories are equally likely."""

    def set_weights(self, domain: FiniteSet) -> Floats:
        return _shares([1] * len(domain))

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        return _shares([1] * len(rows))

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        return _points(Samples.uniform(domain, _POINTS, seed=seed).points)


@dataclass(frozen=True)
class PriorPopulation:
    """A belief, as :func:`expost.knowledge.load_prior` reads one; on a box a sample."""

    belief: Belief | RecordBelief | Samples

    def set_weights(self, domain: FiniteSet) -> Floats:
        if not isinstance(self.belief, Belief) or self.belief.domain != domain:
            raise _other_domain()
        return np.array(self.belief.probabilities)

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        belief = self.belief
        if not isinstance(belief, RecordBelief) or belief.domain != domain:
            raise _other_domain()
        steps = {key[1] for row in rows for key in row if isinstance(key, tuple)}
        over = belief.over(steps) if steps else belief
        return _shares([float(over.confidence(_statement(domain, row))) for row in rows])

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        belief = self.belief
        if not isinstance(belief, Samples) or belief.box != domain:
            raise _other_domain()
        points = belief.points
        if len(points) > _POINTS:
            chosen = np.random.default_rng(seed).choice(len(points), _POINTS, replace=False)
            points = tuple(points[i] for i in sorted(chosen.tolist()))
        return _points(points)


@dataclass(frozen=True)
class PilotSample:
    """A sample of values from an earlier study; each counts once.

    Half an observation is added to each value of a set and each record, because a small sample
    misses rare ones. Records of attributes that change are not taken: give shares.
    """

    values: tuple[Any, ...] = field(repr=False)

    def set_weights(self, domain: FiniteSet) -> Floats:
        return _shares(0.5 + np.bincount(self._value_indices(domain), minlength=len(domain)))

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        names = [key for key in rows[0] if isinstance(key, str)]
        if len(names) < len(rows[0]):
            raise InvalidInput("a sample has no steps; give shares of attributes that change")
        row_indices = {tuple(row[name] for name in names): i for i, row in enumerate(rows)}
        counts = np.full(len(rows), 0.5)
        for value_index in self._value_indices(domain):
            record = dict(zip(domain.names, domain.value(value_index), strict=True))
            counts[row_indices[tuple(record[name] for name in names)]] += 1
        return _shares(counts)

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        return PriorPopulation(Samples(domain, list(self.values))).box_points(domain, seed)

    def _value_indices(self, domain: FiniteSet | Attributes) -> list[Any]:
        with at("sample"):
            return list(locate_all(domain, self.values))


@dataclass(frozen=True)
class IndependentShares:
    """Shares of each attribute's values, independent of each other.

    The value of an attribute that changes is redrawn from the same shares between two steps
    with the probability ``changes``, as far as its limit allows.
    """

    by_name: Mapping[str, Mapping[Any, Fraction] | Sequence[Fraction]]
    changes: Fraction = Fraction(1)

    def set_weights(self, domain: FiniteSet) -> Floats:
        raise InvalidInput("shares of attributes need attributes; give probabilities")

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        raise InvalidInput("shares of attributes need attributes; give a sample of points")

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        for name in self.by_name:
            if name not in domain.names:
                raise InvalidInput(unknown_name("attribute", name, domain.names), "shares")
        shares_by_name = {
            name: dict(zip(domain[name].values.values, self._of(domain, name), strict=True))
            for name in domain.names
        }
        return _shares([self._chance(shares_by_name, row) for row in rows])

    def _of(self, domain: Attributes, name: str) -> Floats:
        values = domain[name].values
        if name not in self.by_name:
            return _shares([1] * len(values))
        with at(name):
            return np.array(Belief(values, self.by_name[name]).probabilities)

    def _chance(self, shares_by_name: Mapping[str, Mapping[Any, float]], row: Row) -> float:
        probability, histories = 1.0, dict[str, list[tuple[int, Scalar]]]()
        for key, value in row.items():
            if isinstance(key, tuple):
                histories.setdefault(key[0], []).append((key[1], value))
            else:
                probability *= shares_by_name[key][value]
        for name, history in histories.items():
            shares, rate = shares_by_name[name], float(self.changes)
            probability *= shares[history[0][1]]
            for (earlier_step, old), (step, new) in pairwise(history):
                redrawn = 1 - (1 - rate) ** (step - earlier_step)
                probability *= redrawn * shares[new] + (1 - redrawn) * (old == new)
        return probability


def read_population(population: Any) -> Population:
    """Read a population, from Python or from a study file."""
    if population is None or (isinstance(population, str) and population == "uniform"):
        return UniformPopulation()
    if isinstance(population, Belief | RecordBelief | Samples):
        return PriorPopulation(population)
    if isinstance(population, str):
        raise InvalidInput('must be "uniform", or have probabilities, shares or a sample')
    if not isinstance(population, Mapping):
        return _pilot(as_list(population, "a prior, or a sample of values"))
    fields = members(dict(population), optional=("probabilities", "shares", "changes", "sample"))
    kinds = [kind for kind in ("probabilities", "shares", "sample") if kind in fields]
    if len(kinds) != 1 or ("changes" in fields and kinds != ["shares"]):
        raise InvalidInput('give one of "probabilities", "shares" (with "changes") and "sample"')
    if kinds == ["sample"]:
        with at("sample"):
            return _pilot(as_list(fields["sample"]))
    if kinds == ["probabilities"]:
        return ListedProbabilities(fields["probabilities"])
    shares = read_at("shares", members, fields["shares"], optional=None)
    return IndependentShares(shares, read_at("changes", read_probability, fields.get("changes", 1)))


def _pilot(values: list[Any]) -> PilotSample:
    if not values:
        raise InvalidInput("must not be empty; leave it out for a uniform population")
    return PilotSample(tuple(values))


@dataclass(frozen=True)
class ListedProbabilities:
    """Probabilities of the values of a finite set: a list in its order, or by value."""

    probabilities: Any = field(repr=False)

    def set_weights(self, domain: FiniteSet) -> Floats:
        return np.array(Belief(domain, self.probabilities).probabilities)

    def row_weights(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        raise InvalidInput("of attributes give shares, not probabilities")

    def box_points(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        raise InvalidInput("of a box give a sample of points, not probabilities")


def _shares(counts: Any) -> Floats:
    positive_counts = np.asarray(counts, dtype=np.float64)
    total = positive_counts.sum()
    if not total > 0:
        raise InvalidInput("gives every value of the domain probability 0")
    return np.asarray(positive_counts / total)


def _points(rows: Any) -> tuple[Sequence[Any], Floats]:
    counted = Counter(rows)
    return list(counted), _shares(list(counted.values()))


def _statement(domain: Attributes, row: Row) -> Statement:
    parts = []
    for key, value in row.items():
        name = f"`{key[0]}` at {key[1]}" if isinstance(key, tuple) else f"`{key}`"
        shown = repr(value) if not isinstance(value, str) else _quote_label(value)
        parts.append(f"{name} == {shown}")
    return Statement(domain, " and ".join(parts))


def _quote_label(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _other_domain() -> InvalidInput:
    return InvalidInput("its domain differs from the study's")


#: The largest number of values.
MOST_VALUES = 2_000


@dataclass(frozen=True, eq=False)
class ModelSupport:
    """Values with their probabilities, on the domain on which a panel simulates them."""

    #: For a finite support, the set of indices of the values.
    domain: Domain
    #: The values in the form that a panel takes.
    values: Sequence[Any]
    #: The values in the form that statements read.
    rows: Sequence[Row]
    weights: Floats
    #: Whether one query can report the full value: not on a box, nor at several steps.
    reportable: bool

    def __len__(self) -> int:
        return len(self.weights)

    def panel_values(self, indices: Indices) -> Any:
        """Return the values at some indices, in the form that a panel takes."""
        if isinstance(self.values, range):
            return indices
        return [self.values[index] for index in indices.tolist()]


def model_support(
    domain: Domain, population: Population, variables: Iterable[Variable], seed: int
) -> ModelSupport:
    """Build the support of a study whose goals are about these variables."""
    match domain:
        case FiniteSet():
            _check(len(domain), "values")
            rows = list(named_rows(domain, domain.values))
            return numbered_support(rows, population.set_weights(domain), reportable=True)
        case Attributes():
            return _record_support(domain, population, tuple(dict.fromkeys(variables)))
        case Box():
            points, weights = population.box_points(domain, seed)
            return ModelSupport(
                domain, points, list(named_rows(domain, points)), weights, reportable=False
            )
        case _:
            assert_never(domain)


def _record_support(
    domain: Attributes, population: Population, variables: tuple[Variable, ...]
) -> ModelSupport:
    by_name = group_pairs(variables)
    steps = {
        name: tuple(sorted(s for s in variable_steps if s is not None))
        for name, variable_steps in by_name.items()
    }
    histories = [_histories(domain, name, steps[name]) for name in by_name]
    _check(math.prod(map(len, histories)), f"combinations of {join_names(list(by_name))}")
    rows = []
    for combination in product(*histories):
        row: dict[Any, Scalar] = {}
        for name, history in zip(by_name, combination, strict=True):
            row |= (
                {(name, step): x for step, x in zip(steps[name], history, strict=True)}
                if steps[name]
                else {name: history[0]}
            )
        rows.append(row)
    reportable = len({step for variable_steps in steps.values() for step in variable_steps}) <= 1
    return numbered_support(rows, population.row_weights(domain, rows), reportable=reportable)


def numbered_support(rows: Sequence[Row], weights: Floats, *, reportable: bool) -> ModelSupport:
    """Build a finite support, with indices as values."""
    indices = range(len(rows))
    return ModelSupport(FiniteSet(indices), indices, rows, weights, reportable)


def _check(size: int, noun: str) -> None:
    if size > MOST_VALUES:
        raise InvalidInput(f"there are {size:,} {noun}; a design takes at most {MOST_VALUES:,}")


def _histories(domain: Attributes, name: str, steps: Sequence[int]) -> list[tuple[Scalar, ...]]:
    """List all histories of an attribute over some steps that its limits allow."""
    values: Sequence[Any] = domain[name].values.values
    if not steps:
        return [(x,) for x in values]
    if len(values) ** min(len(steps), 24) > 1 << 24:
        _check(len(values) ** len(steps), f"histories of {name}")
    for rows in allowed_histories(domain[name], steps):
        _check(len(rows), f"histories of {name}")
    return [tuple(values[index] for index in row) for row in rows.tolist()]
