"""Sweeps: sums of all responses before a step, or after it, for the values at that step.

A sweep goes from the farthest step towards this one, and is cached step by step: a response about
one step does not change the sweeps up to there. Its state are the values at a step, and bounds on
the numbers of changes. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from expost._format import format_list
from expost._types import Floats, Indices
from expost.domains import Attributes, Variable
from expost.errors import InvalidInput
from expost.loss._exponents import (
    Bases,
    Combination,
    DistinctLikelihoods,
    ExactTable,
    Rows,
    winners,
)

__all__ = [
    "MOST_STATES",
    "BoundedChange",
    "CountedChanges",
    "Move",
    "StepState",
    "StepTable",
    "Sweep",
    "TwoSidedSweep",
]


class Move(ABC):
    """A possible change of one attribute between two steps that queries are about."""

    @abstractmethod
    def apply(self, sums: Floats) -> Floats:
        """Return for every state the largest sum of a source; the first axis is for signs."""

    @abstractmethod
    def sources(self, indices: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        """Return all sources of some states: the target of each source, and its indices.

        States are passed as their indices on all axes.
        """


@dataclass(frozen=True)
class CountedChanges(Move):
    """A limited number of changes in all, counted on a separate axis."""

    value: int
    counter: int
    #: The number of values.
    size: int

    def apply(self, sums: Floats) -> Floats:
        moved = np.swapaxes(sums, self.counter + 1, -1).copy()
        source = np.swapaxes(sums, self.counter + 1, -1)
        # Any other value, with one change less.
        changed = source[..., :-1].max(axis=self.value + 1, keepdims=True)
        np.maximum(source[..., 1:], changed, out=moved[..., 1:])
        return np.swapaxes(moved, self.counter + 1, -1)

    def sources(self, indices: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        count = len(indices[0])
        may = np.flatnonzero(indices[self.counter] > 0)
        target_index = np.concatenate([np.arange(count), np.repeat(may, self.size)])
        source_indices = [axis[target_index] for axis in indices]
        source_indices[self.value][count:] = np.tile(np.arange(self.size), len(may))
        source_indices[self.counter][count:] -= 1
        return target_index, source_indices


@dataclass(frozen=True)
class BoundedChange(Move):
    """A change by at most some distance, along an axis of numbers."""

    value: int
    positions: tuple[Fraction, ...]
    distance: Fraction

    @cached_property
    def _windows(self) -> tuple[Indices, Indices, Indices]:
        """The order of the numbers, and for each of them the first and last in that order."""
        order = np.array(sorted(range(len(self.positions)), key=self.positions.__getitem__))
        ordered = [self.positions[k] for k in order]
        first, last = np.empty(len(order), np.intp), np.empty(len(order), np.intp)
        low = high = 0
        for k, value in enumerate(ordered):
            while value - ordered[low] > self.distance:
                low += 1
            while high + 1 < len(ordered) and ordered[high + 1] - value <= self.distance:
                high += 1
            first[order[k]], last[order[k]] = low, high
        return order, first, last

    def apply(self, sums: Floats) -> Floats:
        order, first, last = self._windows
        # The largest of any 2^k neighbors; two of these cover a window.
        levels = [np.moveaxis(sums, self.value + 1, -1)[..., order]]
        longest = int((last - first).max()) + 1
        while 1 << len(levels) <= longest:
            before, half = levels[-1], 1 << (len(levels) - 1)
            levels.append(np.maximum(before[..., :-half], before[..., half:]))
        result = np.empty_like(levels[0])
        level = np.frexp((last - first + 1).astype(np.float64))[1] - 1
        for k, row in enumerate(levels):
            columns = np.flatnonzero(level == k)
            result[..., columns] = np.maximum(
                row[..., first[columns]], row[..., last[columns] + 1 - (1 << k)]
            )
        return np.moveaxis(result, -1, self.value + 1)

    def sources(self, indices: Sequence[Indices]) -> tuple[Indices, list[Indices]]:
        order, first, last = self._windows
        values = indices[self.value]
        lengths = (last - first + 1)[values]
        target_index = np.repeat(np.arange(len(values)), lengths)
        within = np.arange(len(target_index)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        source_indices = [axis[target_index] for axis in indices]
        source_indices[self.value] = order[first[values][target_index] + within]
        return target_index, source_indices


#: Combinations of values at one step and of counted changes.
MOST_STATES = 100_000


@dataclass(frozen=True, eq=False)
class StepState:
    """The state of a sweep at a step: attributes in the order of their names, and counters."""

    domain: Attributes
    names: tuple[str, ...]

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(len(self.domain[name].values) for name in self.names)

    @cached_property
    def _changing(self) -> list[str]:
        return [name for name in self.names if self.domain[name].change is not None]

    @cached_property
    def counters(self) -> tuple[int, ...]:
        """The size of the counter of each attribute with a limited number of changes."""
        limits = [self.domain[name].change for name in self._changing]
        return tuple(c.times + 1 for c in limits if c is not None and c.times is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of a state: values, then counters."""
        return self.values + self.counters

    def check(self) -> None:
        """Refuse a state that is too large."""
        if (size := math.prod(self.shape)) > MOST_STATES:
            raise InvalidInput(
                f"got queries that connect {format_list(self.names)}, with {size:,} combinations "
                f"of values and changes; expected at most {MOST_STATES:,}"
            )

    def front(self, step: int) -> tuple[Variable, ...]:
        """Return the variables of the values at a step."""
        return tuple((name, step if name in self._changing else None) for name in self.names)

    def moves(self, gap: int) -> list[Move]:
        """Return the moves between two steps with this gap."""
        gap = gap if self._distances else 1
        if gap not in self._moves:
            self._moves[gap] = self._moves_between(gap)
        return self._moves[gap]

    @cached_property
    def _moves(self) -> dict[int, list[Move]]:
        return {}

    @cached_property
    def _distances(self) -> bool:
        """Whether moves depend on the gap between steps."""
        return len(self.counters) < len(self._changing)

    def _moves_between(self, gap: int) -> list[Move]:
        result: list[Move] = []
        counter = len(self.names)
        for name in self._changing:
            attribute, axis = self.domain[name], self.names.index(name)
            assert attribute.change is not None
            if attribute.change.times is not None:
                result.append(CountedChanges(axis, counter, len(attribute.values)))
                counter += 1
            elif attribute.change.max_step is not None:
                result.append(
                    BoundedChange(axis, attribute.fractions, attribute.change.max_step * gap)
                )
        return result


@dataclass(frozen=True, slots=True)
class StepTable:
    """The responses about a step, for every combination of values at that step."""

    step: int
    sums: Floats
    exactly: ExactTable


@dataclass(frozen=True, slots=True)
class _Stage:
    """One move, with the sums before and after it."""

    move: Move
    before: Floats
    after: Floats


#: A step with its states, twice; or None for a move, with the targets and indices of sources.
_Leg = tuple[StepTable | None, Indices, Indices]


@dataclass(frozen=True, eq=False)
class Sweep:
    """The largest sums over all steps on one side up to some step, for every state at that step."""

    state: StepState
    at: StepTable
    farther: Sweep | None
    sums: Floats

    @classmethod
    def onto(cls, farther: Sweep | None, at: StepTable, state: StepState) -> Sweep:
        """Return the sweep continued to one more step."""
        step_sums = at.sums.reshape(2, *state.values, *(1 for _ in state.counters))
        start = np.zeros((2, *state.shape)) if farther is None else farther.reaching(at.step)
        return cls(state, at, farther, start + step_sums)

    def reaching(self, step: int) -> Floats:
        """Return the sums for every state at another step, without responses about that step."""
        sums = self.sums
        for move in self.state.moves(abs(step - self.at.step)):
            sums = move.apply(sums)
        return sums

    def _stages(self, step: int) -> list[_Stage]:
        stages, sums = [], self.sums
        for move in self.state.moves(abs(step - self.at.step)):
            stages.append(_Stage(move, sums, move.apply(sums)))
            sums = stages[-1].after
        return stages

    def rows(self, step: int, states: Indices, sign: int, bases: Bases, error: float) -> Rows:
        """Return the exponents of the exact winners for some states at another step."""
        return self._follow_way(self._find_way(step, states, sign, error), sign, bases)[0]

    def trace(self, step: int, state: int, sign: int, error: float) -> Combination:
        """Return a winner for one state at another step: the values at all steps of the sweep."""
        way = self._find_way(step, np.array([state]), sign, error)
        _, won = self._follow_way(way, sign, Bases())
        combination: Combination = {}
        state_index = 0
        for (at, states, where), best in zip(way, won, strict=True):
            if at is None:
                state_index = int(where[best[state_index]])
            else:
                value = int(states[state_index]) // math.prod(self.state.counters)
                combination |= at.exactly.trace(value, sign)
        return combination

    def _find_way(self, step: int, states: Indices, sign: int, error: float) -> list[_Leg]:
        """Find the states that can lead to a winner, by doubles, from this step to the farthest."""
        way: list[_Leg] = []
        sweep: Sweep | None = self
        while sweep is not None:
            for stage in reversed(sweep._stages(step)):
                target_index, where, states = _sources(stage, states, sign, error)
                way.append((None, target_index, where))
            way.append((sweep.at, states, states))
            step, sweep = sweep.at.step, sweep.farther
        return way

    def _follow_way(
        self, way: Sequence[_Leg], sign: int, bases: Bases
    ) -> tuple[Rows, list[Indices]]:
        """Return along the legs with exact sums: the rows at this step, and the winning sources."""
        rows = np.zeros((len(way[-1][1]), 0), dtype=np.int64)
        won: list[Indices] = []
        for at, targets, where in reversed(way):
            if at is None:
                rows = rows[where]
                won.append(winners(rows, targets, sign, bases))
                rows = rows[won[-1]]
            else:
                won.append(targets)
                values, value_index = np.unique(
                    targets // math.prod(self.state.counters), return_inverse=True
                )
                different, kinds = at.exactly.powers(values, sign)
                step_rows = bases.matrix(different)[kinds[value_index]]
                rows = bases.total([rows, step_rows], len(targets))
        return rows, won[::-1]


def _sources(
    stage: _Stage, states: Indices, sign: int, error: float
) -> tuple[Indices, Indices, Indices]:
    """Find the states before a move that can lead to winners.

    Return the target of each, its index among these states, and the states.
    """
    side, shape = 0 if sign > 0 else 1, stage.before.shape[1:]
    target_index, source_indices = stage.move.sources(np.unravel_index(states, shape))
    flat = np.ravel_multi_index(tuple(source_indices), shape)
    least = stage.after[side].ravel()[states] - 2 * error
    near = stage.before[side].ravel()[flat] >= least[target_index]
    sources, where = np.unique(flat[near], return_inverse=True)
    return target_index[near], where, sources


@dataclass(frozen=True, eq=False)
class TwoSidedSweep:
    """The sums of all responses before and after a step, over the values at that step."""

    before: Sweep | None
    after: Sweep | None
    state: StepState
    step: int
    error: float

    @cached_property
    def _both(self) -> Floats:
        """Sums of both sides; changes before a step reduce the number that remains after it."""
        nothing = np.zeros((2, *self.state.shape))
        before = nothing if self.before is None else self.before.reaching(self.step)
        after = nothing if self.after is None else self.after.reaching(self.step)
        counters = tuple(range(1 + len(self.state.values), 1 + len(self.state.shape)))
        both = before + np.flip(after, counters)
        return both.reshape(2, *self.state.values, math.prod(self.state.counters))

    @cached_property
    def best(self) -> Floats:
        """The largest sums for every combination of values."""
        return np.asarray(self._both.max(axis=-1))

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        """Return the exact winners for some combinations of values."""
        bases = Bases()
        total, best, _ = self._split(indices, sign, bases)
        return bases.kinds(total[best])

    def trace(self, index: int, sign: int) -> Combination:
        """Return one combination of values, and a winner for it at all other steps."""
        _, (best,), sides = self._split(np.array([index]), sign, Bases())
        values = map(int, np.unravel_index(index, self.state.values))
        combination = dict(zip(self.state.front(self.step), values, strict=True))
        for sweep, states in sides:
            combination |= sweep.trace(self.step, int(states[best]), sign, self.error)
        return combination

    def _split(
        self, values: Indices, sign: int, bases: Bases
    ) -> tuple[Rows, Indices, list[tuple[Sweep, Indices]]]:
        """Return candidates, the winner for each of the values, and the states on both sides."""
        splits = math.prod(self.state.counters)
        both = self._both[0 if sign > 0 else 1].reshape(-1, splits)[values]
        target_index, split = np.nonzero(both >= (both.max(axis=1) - 2 * self.error)[:, None])
        start = values[target_index] * splits
        # A flat index that is flipped along all counters counts from the other end.
        both_sides = [(self.before, start + split), (self.after, start + splits - 1 - split)]
        sides = [(sweep, states) for sweep, states in both_sides if sweep is not None]
        total = bases.total(
            [sweep.rows(self.step, states, sign, bases, self.error) for sweep, states in sides],
            len(target_index),
        )
        return total, winners(total, target_index, sign, bases), sides
