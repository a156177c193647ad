"""Filters that protect some pairs of records, in fractions. Imports nothing of expost.

All records are listed, with a value for every step where an attribute changes. A level is a set N
of pairs of records, and ``Study.protects`` defines it. A filter with a level bounds P(x) / P(x')
for the pairs in N alone. Everything else compares records by *parts*: a part is a set of cells in
which the two records of a pair may differ, and every pair of N differs inside of some part.

A cell is an attribute and a step, or an attribute and 0 where it does not change. Levels and
filters are the JSON of a transcript file, and None protects every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from operator import mul
from typing import Any, NamedTuple

import mpmath

Cell = tuple[str, int]
Part = frozenset[Cell]
Record = Mapping[Cell, int]
"""The position of the value in each cell."""
Level = Mapping[str, Any] | None
Ratio = Fraction | None
"""A quotient of likelihoods; None if the smaller one is zero."""


class Attribute(NamedTuple):
    """So many values 0, 1, …, and how they may change from one step to the next."""

    size: int
    changing: bool = False
    times: int | None = None
    max_step: Fraction | None = None

    @classmethod
    def read(cls, node: Any) -> Attribute:
        """Read an attribute of a domain; values with a largest step are consecutive integers."""
        if isinstance(node, list):
            return cls(len(node))
        if "integers" in node:
            low, high = node["integers"]
            return cls(high - low + 1)
        max_step = Fraction(node["max_step"]) if "max_step" in node else None
        return cls(cls.read(node["changing"]).size, True, node.get("times"), max_step)

    def allows(self, values: Sequence[int]) -> bool:
        moves = [abs(a - b) for a, b in pairwise(values)]
        often = self.times is not None and sum(map(bool, moves)) > self.times
        far = self.max_step is not None and any(move > self.max_step for move in moves)
        return not often and not far


class Question(NamedTuple):
    """A query: Pr(response | combination), a column for each response.

    The last attribute of ``about`` changes fastest. ``epsilon`` is what basic composition charges,
    None for the largest logarithm of a quotient in a column.
    """

    about: tuple[str, ...]
    at: int | None
    columns: tuple[tuple[Fraction, ...], ...]
    epsilon: Fraction | None = None


class Charge(NamedTuple):
    """epsilon + log(ratio), in nats."""

    epsilon: Fraction
    ratio: Ratio

    def fits(self, guard: Mapping[str, Any]) -> bool:
        """Return whether it is within the budget of a filter."""
        if self.ratio is None:
            return False
        limit = Fraction(guard.get("epsilon", 0)) - self.epsilon
        return log_at_most(self.ratio / Fraction(guard.get("ratio", 1)), limit)


def log_at_most(ratio: Fraction, limit: Fraction) -> bool:
    """Return whether log(ratio) <= limit."""
    if not limit:
        return ratio <= 1
    for digits in (60, 400, 3000):
        with mpmath.workdps(digits):
            logarithm = mpmath.log(ratio.numerator) - mpmath.log(ratio.denominator)
            difference = logarithm - mpmath.mpf(limit.numerator) / limit.denominator
            if abs(difference) > mpmath.mpf(10) ** (10 - digits):
                return bool(difference < 0)
    raise AssertionError("a logarithm of a rational is rational only at 1")


def larger(a: Ratio, b: Ratio) -> Ratio:
    return None if a is None or b is None else max(a, b)


class Study:
    """Attributes and the steps from 1 to the last one, with all records that they allow."""

    def __init__(self, attributes: Mapping[str, Attribute], steps: int) -> None:
        self.attributes, self.steps = dict(attributes), steps
        self.cells: list[Cell] = [
            (name, step)
            for name, attribute in self.attributes.items()
            for step in (range(1, steps + 1) if attribute.changing else [0])
        ]
        self._read: dict[tuple[Cell, ...], list[int]] = {}
        self._groups_of: dict[Part, list[list[int]]] = {}

    @classmethod
    def read(cls, attributes: Mapping[str, Any], steps: int) -> Study:
        """Read the attributes of a domain as a transcript file has them."""
        return cls({name: Attribute.read(node) for name, node in attributes.items()}, steps)

    @cached_property
    def records(self) -> list[Record]:
        ranges = [range(self.attributes[name].size) for name, _ in self.cells]
        every = (dict(zip(self.cells, values, strict=True)) for values in product(*ranges))
        return [record for record in every if self._allows(record)]

    def _allows(self, record: Record) -> bool:
        return all(
            attribute.allows([value for (name, _), value in record.items() if name == wanted])
            for wanted, attribute in self.attributes.items()
        )

    # -- levels

    def protects(self, level: Level, one: Record, other: Record) -> bool:
        """Return whether a level has a pair of records: its definition."""
        cells = [cell for cell in self.cells if one[cell] != other[cell]]
        names, steps = {name for name, _ in cells}, [step for _, step in cells]
        if not cells:
            return False
        match level:
            case None:
                return True
            case {"attributes": 1}:
                return len(names) == 1
            case {"groups": groups}:
                return any(names <= set(group) for group in groups)
            case {"steps": width}:
                # All constants together are one more step, which no window contains.
                return not any(steps) or (all(steps) and max(steps) - min(steps) < width)
        raise AssertionError(level)

    def parts(self, level: Level) -> list[Part]:
        """Return the largest sets of cells in which the two records of a pair may differ."""
        match level:
            case None:
                return [frozenset(self.cells)]
            case {"attributes": 1}:
                return self._groups([name] for name in self.attributes)
            case {"groups": groups}:
                return self._groups(groups)
            case {"steps": width}:
                constants = frozenset(cell for cell in self.cells if not cell[1])
                starts = range(1, max(1, self.steps - width + 1) + 1)
                return [constants, *(self._window(start, width) for start in starts)]
        raise AssertionError(level)

    def _groups(self, groups: Iterable[Iterable[str]]) -> list[Part]:
        every = [set(group) for group in groups]
        assert set().union(*every) == self.attributes.keys(), "the groups must cover all attributes"
        return [frozenset(cell for cell in self.cells if cell[0] in group) for group in every]

    def _window(self, start: int, width: int) -> Part:
        return frozenset(cell for cell in self.cells if start <= cell[1] < start + width)

    def pairs(self, level: Level) -> Iterator[tuple[int, int]]:
        """Yield the positions of the two records of every protected pair, in both orders."""
        for j, one in enumerate(self.records):
            for k, other in enumerate(self.records):
                if self.protects(level, one, other):
                    yield j, k

    # -- likelihoods

    def column(self, question: Question, response: int) -> list[int]:
        """Return Pr(response | record) for every record, up to a common factor."""
        weights = integers(question.columns[response])
        return [weights[position] for position in self._combinations(question)]

    def _combinations(self, question: Question) -> list[int]:
        """Return the combination that a query reads, for every record."""
        scope = self.scope(question)
        if (key := tuple(scope)) not in self._read:
            sizes = [self.attributes[name].size for name in question.about]
            positions = [0] * len(self.records)
            for size, cell in zip(sizes, scope, strict=True):
                pairs = zip(positions, self.records, strict=True)
                positions = [position * size + record[cell] for position, record in pairs]
            self._read[key] = positions
        return self._read[key]

    def scope(self, question: Question) -> list[Cell]:
        """Return the cells that a query reads."""
        changing = [self.attributes[name].changing for name in question.about]
        assert any(changing) == (question.at is not None)
        steps = [question.at if changes else 0 for changes in changing]
        return [(name, step or 0) for name, step in zip(question.about, steps, strict=True)]

    def likelihoods(self, exchanges: Iterable[tuple[Question, int]]) -> list[int]:
        """Return the likelihood of responses for every record, up to a common factor."""
        result = [1] * len(self.records)
        for question, response in exchanges:
            result = list(map(mul, result, self.column(question, response)))
        return result

    def spread(self, part: Part, weights: Sequence[int]) -> Ratio:
        """Return the largest quotient over pairs that differ inside of a part; 1 without a pair."""
        top, bottom = 1, 1
        for positions in self._alike(part):
            group = [weights[position] for position in positions]
            high, low = max(group), min(group)
            if high * bottom > top * low:
                top, bottom = high, low
        return Fraction(top, bottom) if bottom else None

    def _alike(self, part: Part) -> list[list[int]]:
        """Return the positions of records that are equal outside of a part, together."""
        if part not in self._groups_of:
            outside = [cell for cell in self.cells if cell not in part]
            groups: dict[tuple[int, ...], list[int]] = {}
            for position, record in enumerate(self.records):
                groups.setdefault(tuple([record[cell] for cell in outside]), []).append(position)
            self._groups_of[part] = list(groups.values())
        return self._groups_of[part]

    def ratio(self, level: Level, weights: Sequence[int]) -> Ratio:
        """Return e^loss at a level; None for an infinite loss."""
        largest: Ratio = Fraction(1)
        for part in self.parts(level):
            largest = larger(largest, self.spread(part, weights))
        return largest

    def ratio_by_pairs(self, level: Level, weights: Sequence[int]) -> Ratio:
        """Return e^loss at a level from its definition: all pairs, one after the other."""
        largest: Ratio = Fraction(1)
        for j, k in self.pairs(level):
            if weights[j]:
                largest = larger(largest, Fraction(weights[j], weights[k]) if weights[k] else None)
        return largest

    # -- filters

    def worst(
        self, guard: Mapping[str, Any], asked: Sequence[tuple[Question, int]], query: Question
    ) -> list[Charge]:
        """Return what a pure filter holds against its budget, for each part that it protects."""
        parts = self.parts(guard.get("protects"))
        weights = self.likelihoods(asked)
        columns = [self.column(query, y) for y in range(len(query.columns))]
        match guard["kind"]:
            case "bayesian":
                after = [list(map(mul, weights, column)) for column in columns]
                possible = [column for column in after if any(column)]
                return [Charge(Fraction(0), self._widest(part, possible)) for part in parts]
            case "simplified":
                every = []
                for part in parts:
                    loss = self.spread(part, weights)
                    one = self._widest(part, [column for column in columns if any(column)])
                    both = None if loss is None or one is None else loss * one
                    every.append(Charge(Fraction(0), both))
                return every
            case "basic":
                questions = [question for question, _ in asked] + [query]
                return [self._sum(part, questions) for part in parts]
        raise AssertionError(guard)

    def _widest(self, part: Part, columns: Iterable[Sequence[int]]) -> Ratio:
        largest: Ratio = Fraction(1)
        for column in columns:
            largest = larger(largest, self.spread(part, column))
        return largest

    def _sum(self, part: Part, questions: Iterable[Question]) -> Charge:
        """Return the charges of all queries that read a cell of the part."""
        epsilon, ratio = Fraction(0), Fraction(1)
        for question in questions:
            if part.isdisjoint(self.scope(question)):
                continue
            if question.epsilon is not None:
                epsilon += question.epsilon
                continue
            widest = whole_ratio(question)
            if widest is None:
                return Charge(epsilon, None)
            ratio *= widest
        return Charge(epsilon, ratio)

    def refusing(
        self, guard: Mapping[str, Any], asked: Sequence[tuple[Question, int]], query: Question
    ) -> list[int]:
        """Return the positions of the filters that refuse; a pure filter alone is at 0."""
        guards = guard["filters"] if guard["kind"] == "all" else [guard]
        return [
            position
            for position, one in enumerate(guards)
            if not all(charge.fits(one) for charge in self.worst(one, asked, query))
        ]

    def accepts(
        self, guard: Mapping[str, Any], asked: Sequence[tuple[Question, int]], query: Question
    ) -> bool:
        return not self.refusing(guard, asked, query)


def whole_ratio(question: Question) -> Ratio:
    """Return e^epsilon of a query, over all combinations that it can read."""
    largest: Ratio = Fraction(1)
    for column in question.columns:
        if any(column):
            largest = larger(largest, max(column) / min(column) if min(column) else None)
    return largest


# -- whole games -----------------------------------------------------------------------------------

History = tuple[tuple[int, int], ...]
"""The position of each query with its response."""
Accepts = Callable[[History, int], bool]


class Findings(NamedTuple):
    """What an enumerated game showed."""

    transcripts: int
    decisions: int
    broken: list[History]
    """Reachable transcripts with a promised pair beyond the budget."""
    needless: list[tuple[History, int]]
    """Refused queries after which no response would have broken a promise."""


def play(
    study: Study,
    guard: Mapping[str, Any],
    menu: Sequence[Question],
    times: Sequence[int],
    accepts: Accepts,
) -> Findings:
    """Play every adaptive analyst: every choice of accepted queries, and every response.

    An analyst chooses by the history, so the transcripts of all analysts are the branches of one
    tree. What holds of a branch depends on the multiset of its exchanges, so each is visited once;
    a filter is told every order that leads there.
    """
    guards = guard["filters"] if guard["kind"] == "all" else [guard]
    promised = [(one, list(study.pairs(one.get("protects")))) for one in guards]
    columns = [[study.column(q, y) for y in range(len(q.columns))] for q in menu]
    broken: list[History] = []
    needless: list[tuple[History, int]] = []
    seen: dict[History, bool] = {}
    decided: dict[tuple[History, int], bool] = {}

    def holds(weights: Sequence[int]) -> bool:
        for one, pairs in promised:
            top, bottom = 1, 1
            for j, k in pairs:
                if weights[j] * bottom > top * weights[k]:
                    top, bottom = weights[j], weights[k]
            if not Charge(Fraction(0), Fraction(top, bottom) if bottom else None).fits(one):
                return False
        return True

    def visit(history: History, weights: list[int]) -> None:
        multiset = tuple(sorted(history))
        new = multiset not in seen
        if new:
            seen[multiset] = holds(weights)
            if not seen[multiset]:
                broken.append(history)
        for position, possible in enumerate(columns):
            if sum(q == position for q, _ in history) >= times[position]:
                continue
            accepted = accepts(history, position)
            assert decided.setdefault((multiset, position), accepted) == accepted, "order matters"
            if not new:
                continue
            after = [(y, list(map(mul, weights, column))) for y, column in enumerate(possible)]
            possible_after = [(y, next_weights) for y, next_weights in after if any(next_weights)]
            if accepted:
                for y, next_weights in possible_after:
                    visit((*history, (position, y)), next_weights)
            elif all(holds(next_weights) for _, next_weights in possible_after):
                needless.append((history, position))

    visit((), [1] * len(study.records))
    return Findings(len(seen), len(decided), broken, needless)


def integers(column: Sequence[Fraction]) -> list[int]:
    """Return a column times its common denominator."""
    common = math.lcm(*(chance.denominator for chance in column))
    return [int(chance * common) for chance in column]


def channel(
    about: Sequence[str], at: int | None, rows: Sequence[Sequence[int | str | Fraction]]
) -> Question:
    """Return a query from weights: a row of equal sum for each combination."""
    weights = [[Fraction(weight) for weight in row] for row in rows]
    total = sum(weights[0])
    assert all(sum(row) == total for row in weights)
    columns = [tuple(row[y] / total for row in weights) for y in range(len(weights[0]))]
    return Question(tuple(about), at, tuple(columns))


def coin(name: str, at: int | None, odds: int | str | Fraction) -> Question:
    """Return randomized response about one attribute of two values."""
    return channel([name], at, [[odds, 1], [1, odds]])
