"""Whom a study is about: how likely each value is, as far as one knows beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from expost._types import Floats
from expost.domains import Attributes, Box, Categories, FiniteSet, Integers, Scalar
from expost.errors import InvalidInput, at
from expost.files.reading import as_list, members
from expost.knowledge import Belief, RecordBelief, Samples, Statement, read_probability

__all__ = ["Pilot", "Population", "Prior", "Uniform", "read_population"]

_POINTS = 256
"""Of a box."""

Row = Mapping[Any, Scalar]


class Population(Protocol):
    """How likely values are."""

    def on_set(self, domain: FiniteSet) -> Floats:
        """Of each value of a finite set."""

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        """Of records, which name the values of some attributes, and at some steps."""

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        """Points of a box, and how likely each of them is."""


@dataclass(frozen=True)
class Uniform:
    """All values, records and histories are equally likely."""

    def on_set(self, domain: FiniteSet) -> Floats:
        return _shares([1] * len(domain))

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        return _shares([1] * len(rows))

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        generator = np.random.default_rng(seed)
        columns: list[list[Any]] = []
        for side in domain.sides:
            if isinstance(side, Categories):
                chosen = generator.integers(len(side.labels), size=_POINTS)
                columns.append([side.labels[i] for i in chosen])
            elif isinstance(side, Integers):
                whole = generator.integers(side.lower, side.upper + 1, size=_POINTS)
                columns.append(whole.tolist())
            else:
                columns.append(generator.uniform(side.lower, side.upper, size=_POINTS).tolist())
        return _points(zip(*columns, strict=True))


@dataclass(frozen=True)
class Prior:
    """A belief, as :func:`expost.knowledge.load_prior` reads one; of a box a sample."""

    belief: Belief | RecordBelief | Samples

    def on_set(self, domain: FiniteSet) -> Floats:
        if not isinstance(self.belief, Belief) or self.belief.domain != domain:
            raise _other_domain()
        return np.array(self.belief.probabilities)

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        belief = self.belief
        if not isinstance(belief, RecordBelief) or belief.domain != domain:
            raise _other_domain()
        steps = {key[1] for row in rows for key in row if isinstance(key, tuple)}
        over = belief.over(steps) if steps else belief
        return _shares([float(over.confidence(_statement(domain, row))) for row in rows])

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        belief = self.belief
        if not isinstance(belief, Samples) or belief.box != domain:
            raise _other_domain()
        points = belief.points
        if len(points) > _POINTS:
            chosen = np.random.default_rng(seed).choice(len(points), _POINTS, replace=False)
            points = tuple(points[i] for i in sorted(chosen.tolist()))
        return _points(points)


@dataclass(frozen=True)
class Pilot:
    """A sample of values from an earlier study; each counts once.

    Half an observation is added to each value of a set and each record, because a small sample
    misses rare ones. Records of attributes that change are not taken: give shares.
    """

    values: tuple[Any, ...] = field(repr=False)

    def on_set(self, domain: FiniteSet) -> Floats:
        return _shares(0.5 + np.bincount(self._places(domain), minlength=len(domain)))

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        names = [key for key in rows[0] if isinstance(key, str)]
        if len(names) < len(rows[0]):
            raise InvalidInput("a sample has no steps; give shares of attributes that change")
        numbers = {tuple(row[name] for name in names): i for i, row in enumerate(rows)}
        counts = np.full(len(rows), 0.5)
        for place in self._places(domain):
            record = dict(zip(domain.names, domain.value(place), strict=True))
            counts[numbers[tuple(record[name] for name in names)]] += 1
        return _shares(counts)

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        return Prior(Samples(domain, list(self.values))).on_box(domain, seed)

    def _places(self, domain: FiniteSet | Attributes) -> list[Any]:
        places: list[Any] = [domain.locate(value) for value in self.values]
        if None in places:
            raise InvalidInput("is not a value of the domain", f"sample[{places.index(None)}]")
        return places


@dataclass(frozen=True)
class Shares:
    """Shares of each attribute's values, independent of each other.

    The value of an attribute that changes is drawn anew from the same shares between two steps
    with the probability ``changes``, as far as its limit allows.
    """

    by_name: Mapping[str, Mapping[Any, Fraction] | Sequence[Fraction]]
    changes: Fraction = Fraction(1)

    def on_set(self, domain: FiniteSet) -> Floats:
        raise InvalidInput("shares of attributes need attributes; give probabilities")

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        raise InvalidInput("shares of attributes need attributes; give a sample of points")

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        for name in self.by_name:
            if name not in domain.names:
                known_here = ", ".join(domain.names)
                raise InvalidInput(
                    f"there is no attribute {name!r}; there are {known_here}", "shares"
                )
        known = {
            name: dict(zip(domain[name].values.values, self._of(domain, name), strict=True))
            for name in domain.names
        }
        return _shares([self._chance(known, row) for row in rows])

    def _of(self, domain: Attributes, name: str) -> Floats:
        values = domain[name].values
        if name not in self.by_name:
            return _shares([1] * len(values))
        with at(name):
            return np.array(Belief(values, self.by_name[name]).probabilities)

    def _chance(self, known: Mapping[str, Mapping[Any, float]], row: Row) -> float:
        chance, histories = 1.0, dict[str, list[tuple[int, Scalar]]]()
        for key, value in row.items():
            if isinstance(key, tuple):
                histories.setdefault(key[0], []).append((key[1], value))
            else:
                chance *= known[key][value]
        for name, history in histories.items():
            shares, rate = known[name], float(self.changes)
            chance *= shares[history[0][1]]
            for (before, old), (now, new) in pairwise(history):
                drawn = 1 - (1 - rate) ** (now - before)
                chance *= drawn * shares[new] + (1 - drawn) * (old == new)
        return chance


def read_population(given: Any) -> Population:
    """A population as a person gives it, or as it is in a study file."""
    if given is None or (isinstance(given, str) and given == "uniform"):
        return Uniform()
    if isinstance(given, Belief | RecordBelief | Samples):
        return Prior(given)
    if isinstance(given, str):
        raise InvalidInput('must be "uniform", or have probabilities, shares or a sample')
    if not isinstance(given, Mapping):
        return _pilot(as_list(given, "a prior, or a sample of values"))
    fields = members(dict(given), optional=("probabilities", "shares", "changes", "sample"))
    kinds = [kind for kind in ("probabilities", "shares", "sample") if kind in fields]
    if len(kinds) != 1 or ("changes" in fields and kinds != ["shares"]):
        raise InvalidInput('give one of "probabilities", "shares" (with "changes") and "sample"')
    if kinds == ["sample"]:
        with at("sample"):
            return _pilot(as_list(fields["sample"]))
    if kinds == ["probabilities"]:
        return Listed(fields["probabilities"])
    with at("shares"):
        shares = members(fields["shares"], optional=None)
    with at("changes"):
        rate = read_probability(fields.get("changes", 1))
    return Shares(shares, rate)


def _pilot(values: list[Any]) -> Pilot:
    if not values:
        raise InvalidInput("there are no values in it; leave it out for a uniform population")
    return Pilot(tuple(values))


@dataclass(frozen=True)
class Listed:
    """Probabilities of the values of a finite set: a list in its order, or by value."""

    probabilities: Any = field(repr=False)

    def on_set(self, domain: FiniteSet) -> Floats:
        return np.array(Belief(domain, self.probabilities).probabilities)

    def on_rows(self, domain: Attributes, rows: Sequence[Row]) -> Floats:
        raise InvalidInput("of attributes give shares, not probabilities")

    def on_box(self, domain: Box, seed: int) -> tuple[Sequence[Any], Floats]:
        raise InvalidInput("of a box give a sample of points, not probabilities")


def _shares(counts: Any) -> Floats:
    numbers = np.asarray(counts, dtype=np.float64)
    total = numbers.sum()
    if not total > 0:
        raise InvalidInput("gives no value that the domain allows any probability")
    return np.asarray(numbers / total)


def _points(rows: Any) -> tuple[Sequence[Any], Floats]:
    counted: dict[Any, int] = {}
    for row in rows:
        counted[row] = counted.get(row, 0) + 1
    return list(counted), _shares(list(counted.values()))


def _statement(domain: Attributes, row: Row) -> Statement:
    parts = []
    for key, value in row.items():
        name = f"`{key[0]}` at {key[1]}" if isinstance(key, tuple) else f"`{key}`"
        shown = repr(value) if not isinstance(value, str) else _quoted(value)
        parts.append(f"{name} == {shown}")
    return Statement(domain, " and ".join(parts))


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _other_domain() -> InvalidInput:
    return InvalidInput("the population is of another domain than the study")
