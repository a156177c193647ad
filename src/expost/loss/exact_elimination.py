"""The same elimination with exact sums, where doubles are too coarse.

Exact numbers are totally ordered, so an elimination keeps one winner for each combination, as it
does with doubles. A sum is the logarithm of a product of powers of integers, and is kept as the
vector of their exponents: equal vectors are ties, others are compared exactly. Doubles say before
which combinations can win at all; only those are looked at. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expost.domains import Variable
from expost.loss.elimination import Sums
from expost.numbers.exact_sum import ExactSum

__all__ = ["Bases", "ExactElimination", "Exactly", "Found", "Places", "Rows", "winners"]

Places = NDArray[np.intp]
Rows = NDArray[np.int64]
"""Exponents: a row for each combination, a column for each base."""

Found = dict[Variable, int]
"""A combination of some variables, by the places of their values."""


@dataclass(eq=False)
class Bases:
    """The integers whose powers are multiplied, each with its column; it grows as they are met."""

    columns: dict[int, int] = field(default_factory=dict)
    _signs: dict[bytes, int] = field(default_factory=dict)

    def matrix(self, powers: Sequence[Counter[int]]) -> Rows:
        """These products of powers as rows."""
        for counter in powers:
            for base in counter:
                self.columns.setdefault(base, len(self.columns))
        rows = np.zeros((len(powers), len(self.columns)), dtype=np.int64)
        for row, counter in zip(rows, powers, strict=True):
            for base, power in counter.items():
                row[self.columns[base]] = power
        return rows

    def total(self, parts: Sequence[Rows], count: int) -> Rows:
        """The sum of rows that may lack columns that were met later."""
        result = np.zeros((count, len(self.columns)), dtype=np.int64)
        for part in parts:
            result[:, : part.shape[1]] += part
        return result

    def powers(self, row: Rows) -> Counter[int]:
        """A row as powers by their bases."""
        bases = zip(self.columns, row.tolist(), strict=False)
        return Counter({base: power for base, power in bases if power})

    def sign(self, difference: Rows) -> int:
        """Whether a product is above one, one, or below."""
        key = difference.tobytes()
        if key not in self._signs:
            self._signs[key] = ExactSum.product(self.powers(difference)).sign
        return self._signs[key]


class Exactly(Protocol):
    """What is known exactly at every combination of some variables."""

    def rows(self, axes: Sequence[Places], sign: int, bases: Bases) -> Rows:
        """The exponents at some combinations, which are given by their places on all axes.

        Where a number is itself an extreme, the sign says which.
        """
        ...

    def traced(self, places: Sequence[int], sign: int, bases: Bases) -> Found:
        """One combination, and if a number is itself an extreme, a combination of all variables
        that attains it."""
        ...


def winners(rows: Rows, groups: Places, sign: int, bases: Bases) -> Places:
    """For each group of rows, numbered from zero, one with the largest (or smallest) product."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    best = order[starts]
    different = np.flatnonzero((rows != rows[best[groups]]).any(axis=1))
    for row in different.tolist():
        group = groups[row]
        if bases.sign(rows[row] - rows[best[group]]) == sign:
            best[group] = row
    return best


class ExactElimination:
    """Exact winners of an elimination that was done with doubles.

    Every sum of doubles is within ``error`` of the exact one. The ``sign`` is 1 for largest and -1
    for smallest sums. What is zero everywhere has None in the place of its table.
    """

    def __init__(
        self, sums: Sums, tables: Sequence[Exactly | None], error: float, sign: int, bases: Bases
    ) -> None:
        self._sums = sums
        self._tables = tables
        self._error = error
        self._sign = sign
        self._bases = bases

    def rows(self, targets: Places) -> Rows:
        """The exponents of the winners for some combinations of the target."""
        return self._followed(self._kept(targets))[0]

    def traced(self, target: int) -> Found:
        """A winner for one combination of the target."""
        plan, kept = self._sums.plan, self._kept(np.array([target]))
        _, best = self._followed(kept)
        found: Found = {}
        entry = {len(plan.steps) - 1: 0}
        # From the last step to the first: which entry of each has won.
        for number in reversed(range(len(plan.steps))):
            step, entries, own = plan.steps[number], kept[number], entry[number]
            for operand in step.operands:
                before = operand.number - plan.tables
                if before >= 0:
                    sizes = tuple(step.sizes[k] for k in operand.axes)
                    place = entries.flat(operand.axes, sizes)[own]
                    entry[before] = int(best[before][kept[before].wanted.searchsorted(place)])
                elif (table := self._tables[operand.number]) is not None:
                    places = [int(entries.axes[k][own]) for k in operand.axes]
                    found.update(table.traced(places, self._sign, self._bases))
        return found

    def _followed(self, kept: Sequence[_Kept]) -> tuple[Rows, list[Places]]:
        """The rows of the target, and for every earlier step which entries have won."""
        *before, last = range(len(kept))
        results: dict[int, tuple[Places, Rows]] = {}
        won = []
        for number in before:
            rows = self._added(number, kept[number], results)
            best = winners(rows, kept[number].groups, self._sign, self._bases)
            results[self._sums.plan.tables + number] = kept[number].wanted, rows[best]
            won.append(best)
        return self._added(last, kept[last], results), won

    def _kept(self, targets: Places) -> list[_Kept]:
        """From the last step to the first: what can be part of a winner, by the doubles."""
        plan, side = self._sums.plan, 0 if self._sign > 0 else 1
        wanted: dict[int, Places] = {}
        kept: list[_Kept] = []
        for number in reversed(range(len(plan.steps))):
            step = plan.steps[number]
            if step.axis is None:
                axes = np.unravel_index(targets, step.sizes) if step.sizes else ()
                entries = _Kept(targets, targets, axes, len(targets))
            else:
                own = wanted[plan.tables + number]
                sums = np.moveaxis(self._sums.sums[number][side], step.axis, -1)
                sums = sums.reshape(-1, step.sizes[step.axis])[own]
                near = sums >= (sums.max(axis=1) - 2 * self._error)[:, None]
                groups, along = np.nonzero(near)
                sizes = tuple(step.sizes[k] for k in step.kept)
                others = list(np.unravel_index(own[groups], sizes)) if sizes else []
                others.insert(step.axis, along)
                entries = _Kept(own, groups, tuple(others), len(groups))
            kept.append(entries)
            for operand in step.operands:
                if operand.number >= plan.tables:
                    sizes = tuple(step.sizes[k] for k in operand.axes)
                    wanted[operand.number] = np.unique(entries.flat(operand.axes, sizes))
        return kept[::-1]

    def _added(self, number: int, entries: _Kept, results: dict[int, tuple[Places, Rows]]) -> Rows:
        step, parts = self._sums.plan.steps[number], []
        for operand in step.operands:
            if operand.number in results:
                sizes = tuple(step.sizes[k] for k in operand.axes)
                wanted, rows = results[operand.number]
                found = np.searchsorted(wanted, entries.flat(operand.axes, sizes))
                parts.append(rows[found])
            elif (table := self._tables[operand.number]) is not None:
                axes = [entries.axes[k] for k in operand.axes]
                parts.append(table.rows(axes, self._sign, self._bases))
        return self._bases.total(parts, entries.count)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Combinations at one step, by their places on all axes, grouped by the result they are for."""

    wanted: Places
    groups: Places
    axes: tuple[Places, ...]
    count: int

    def flat(self, axes: Sequence[int], sizes: tuple[int, ...]) -> Places:
        """Where they are in an operand that has some of the axes."""
        if not axes:
            return np.zeros(self.count, dtype=np.intp)
        return np.asarray(np.ravel_multi_index([self.axes[k] for k in axes], sizes), dtype=np.intp)
