"""Everything that was answered before a step, or after it, summed up for the values at that step.

A sweep goes from the farthest step towards this one. Its state are the values at a step, and how
many changes there were at most. Proof: docs/theory/changing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attributes, Variable
from expost.errors import InvalidInput
from expost.loss.component import Marginals
from expost.loss.exact_elimination import Bases, Places, Rows, winners
from expost.loss.moves import Counted, Move, Within
from expost.numbers import exact
from expost.queries.words import listed

__all__ = ["MOST_STATES", "Around", "At", "State", "Sweep"]

MOST_STATES = 100_000
"""Combinations of values at one step and of counted changes."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """What is carried from step to step: attributes in the order of their names, and counters."""

    domain: Attributes
    names: tuple[str, ...]

    @cached_property
    def values(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(len(self.domain[name].values) for name in self.names)

    @cached_property
    def _changing(self) -> list[str]:
        return [name for name in self.names if self.domain[name].change is not None]

    @cached_property
    def counters(self) -> tuple[int, ...]:
        """How many numbers of changes there are, for each attribute whose changes are counted."""
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
                f"questions tie {listed(self.names)} together, which have {size:,} combinations "
                f"with their changes; at most {MOST_STATES:,} can be followed from step to step"
            )

    def front(self, step: int) -> tuple[Variable, ...]:
        """The variables of the values at a step."""
        return tuple((name, step if name in self._changing else None) for name in self.names)

    def moves(self, gap: int) -> list[Move]:
        """What may happen between two steps that are so far apart."""
        result: list[Move] = []
        counter = len(self.names)
        for name in self._changing:
            attribute, axis = self.domain[name], self.names.index(name)
            assert attribute.change is not None
            if attribute.change.times is not None:
                result.append(Counted(axis, counter, len(attribute.values)))
                counter += 1
            elif attribute.change.step is not None:
                numbers = tuple(exact(value) for value in attribute.values.values)
                result.append(Within(axis, numbers, attribute.change.step * gap))
        return result


@dataclass(frozen=True, slots=True)
class At:
    """What was answered about a step, for every combination of values at that step."""

    step: int
    extremes: Marginals


@dataclass(frozen=True, slots=True)
class _Layer:
    """One stage of a sweep: a move, or what was answered about a step is added."""

    before: Floats
    after: Floats
    move: Move | None
    added: Marginals | None


@dataclass(frozen=True, eq=False)
class Sweep:
    """The largest sums over all steps on one side, for every state at a step.

    ``steps`` are in the order in which they are swept up, the farthest one first.
    """

    state: State
    steps: Sequence[At]
    here: int
    error: float

    @cached_property
    def sums(self) -> Floats:
        """The sums, and those of the negatives, for every state."""
        sums = np.zeros((2, *self.state.shape))
        for layer in self._layers():
            sums = layer.after
        return sums

    def _layers(self) -> Iterator[_Layer]:
        sums = np.zeros((2, *self.state.shape))
        following = [*(at.step for at in self.steps), self.here][1:]
        for at, step in zip(self.steps, following, strict=True):
            own = at.extremes.sums.sums[-1]
            added = sums + own.reshape(own.shape + (1,) * len(self.state.counters))
            yield _Layer(sums, added, None, at.extremes)
            sums = added
            for move in self.state.moves(abs(step - at.step)):
                moved = move.apply(sums)
                yield _Layer(sums, moved, move, None)
                sums = moved

    def rows(self, states: Places, sign: int, bases: Bases) -> Rows:
        """The exponents of the exact winners for some states."""
        layers, wanted, links = list(self._layers()), states, []
        for layer in reversed(layers):
            links.append((wanted, *self._sources(layer, wanted, sign)))
            wanted = links[-1][-1]
        rows = np.zeros((len(wanted), 0), dtype=np.int64)
        for layer, (own, whose, where, _) in zip(layers, reversed(links), strict=True):
            if layer.added is not None:
                front = own // math.prod(self.state.counters)
                places, which = np.unique(front, return_inverse=True)
                rows = bases.total([rows, layer.added.rows(sign, places, bases)[which]], len(own))
            else:
                rows = rows[where]
                rows = rows[winners(rows, whose, sign, bases)]
        return rows

    def _sources(self, layer: _Layer, wanted: Places, sign: int) -> tuple[Places, Places, Places]:
        """Which states can lead to winners, by the doubles: for whom, where, and all of them."""
        if layer.move is None:
            return wanted, wanted, wanted
        side, shape = 0 if sign > 0 else 1, self.state.shape
        whose, found = layer.move.sources(np.unravel_index(wanted, shape))
        flat = np.ravel_multi_index(found, shape)
        least = layer.after[side].ravel()[wanted] - 2 * self.error
        near = layer.before[side].ravel()[flat] >= least[whose]
        states, where = np.unique(flat[near], return_inverse=True)
        return whose[near], where, states


@dataclass(frozen=True, eq=False)
class Around:
    """All that was answered before and after a step, over the values at that step."""

    before: Sweep
    after: Sweep
    state: State
    error: float

    @cached_property
    def _both(self) -> Floats:
        """Whatever number of changes came before, so many are left for after."""
        counters = tuple(range(1 + len(self.state.values), 1 + len(self.state.shape)))
        both = self.before.sums + np.flip(self.after.sums, counters)
        return both.reshape(2, *self.state.values, math.prod(self.state.counters))

    @cached_property
    def best(self) -> Floats:
        """The largest sums for every combination of values."""
        return self._both.max(axis=-1)

    def rows(self, axes: Sequence[Places], sign: int, bases: Bases) -> Rows:
        """The exponents of the exact winners for some combinations of values."""
        splits = math.prod(self.state.counters)
        values = np.ravel_multi_index(tuple(axes), self.state.values)
        both = self._both[0 if sign > 0 else 1].reshape(-1, splits)[values]
        whose, split = np.nonzero(both >= (both.max(axis=1) - 2 * self.error)[:, None])
        start = values[whose] * splits
        # A flat index that is flipped along all counters counts from the other end.
        rows = [
            self.before.rows(start + split, sign, bases),
            self.after.rows(start + splits - 1 - split, sign, bases),
        ]
        total = bases.total(rows, len(whose))
        return total[winners(total, whose, sign, bases)]
