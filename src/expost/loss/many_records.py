"""The spreads of many subjects over records, all at once.

What a subject answered about one part of a record is a sum of rows of a table, as on a finite set.
Subjects whom questions tie the same attributes together for are a batch: their sums are eliminated
together, and the extremes of all components of a subject add up. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Attributes, Variable
from expost.loss._components import link
from expost.loss._elimination import Plan, eliminate, plan, rank
from expost.loss._sweeps import State
from expost.loss.many_sets import Bounds, row_sums, table_of
from expost.queries import PartLikelihood

__all__ = ["record_spreads"]

# The sums of a block of subjects stay in the second-level cache.
_BLOCK = 1 << 15

Scope = tuple[Variable, ...]
"""What a question depends on, in the order of axes."""


def record_spreads(
    domain: Attributes,
    given: Sequence[tuple[PartLikelihood, int]],
    codes: Indices,
    starts: Indices,
    progress: Callable[[int], None],
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of max ℓ - min ℓ of each subject.

    ``given`` are responses by their positions, and ``codes`` those of the subjects, at least one
    each: those of a subject go from its start to the next. ``progress`` is called with the number
    of subjects done.
    """
    scopes, bounds = _by_scope(given, codes, starts)
    spreads, done = np.zeros(len(starts) - 1), 0
    total = sum(len(asked.subjects) for asked in scopes.values())
    for batch, subjects in _batches(domain, scopes).items():
        tables = [scopes[scope] for scope in batch]
        shape = _Shape(domain, batch)
        size = max(1, _BLOCK // shape.width)
        for start in range(0, len(subjects), size):
            block = subjects[start : start + size]
            spreads[block] += shape.spreads([table.sums(block) for table in tables])
            done += len(batch) * len(block)
            progress(len(spreads) * done // total)
    return bounds.around(spreads, codes, starts)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was answered about one scope: a row of doubles per response, and who gave which."""

    logs: Floats
    codes: Indices
    subjects: Indices
    """In their order."""
    starts: Indices

    def sums(self, subjects: Indices) -> Floats:
        """What some of the subjects answered in all."""
        places = np.searchsorted(self.subjects, subjects)
        first, counts = self.starts[places], (self.starts[places + 1] - self.starts[places])
        longest_first = np.argsort(-counts, kind="stable")
        sums = np.empty((len(subjects), self.logs.shape[1]))
        sums[longest_first] = row_sums(
            self.logs, self.codes, first[longest_first], counts[longest_first]
        )
        return sums


def _by_scope(
    given: Sequence[tuple[PartLikelihood, int]], codes: Indices, starts: Indices
) -> tuple[dict[Scope, _Asked], Bounds]:
    own: dict[Scope, list[int]] = {}
    for code, (likelihood, _) in enumerate(given):
        own.setdefault(tuple(sorted(likelihood.variables, key=rank)), []).append(code)
    scope_of, place_of = np.empty((2, len(given)), dtype=np.intp)
    sizes, errors, impossible = np.empty((3, len(given)))
    logs = []
    for number, (scope, members) in enumerate(own.items()):
        scope_of[members], place_of[members] = number, np.arange(len(members))
        parts = [(given[code][0], given[code][1]) for code in members]
        table, bounds = table_of([part.on_part.term(position) for part, position in parts])
        sizes[members], errors[members] = bounds.sizes, bounds.errors
        impossible[members] = bounds.impossible
        for row, (part, _) in zip(table, parts, strict=True):
            if part.variables != scope:
                axes = [part.variables.index(variable) for variable in scope]
                row[:] = row.reshape(part.part.sizes).transpose(axes).ravel()
        logs.append(table)
    subject_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    scope_of_row = scope_of[codes]
    by_scope = np.argsort(scope_of_row, kind="stable")
    ends = np.searchsorted(scope_of_row[by_scope], np.arange(len(own) + 1))
    scopes = {}
    for scope, table, (start, stop) in zip(own, logs, pairwise(ends.tolist()), strict=True):
        rows = by_scope[start:stop]
        subjects, first = np.unique(subject_of[rows], return_index=True)
        scopes[scope] = _Asked(
            table, place_of[codes[rows]], subjects, np.append(first, len(rows)).astype(np.intp)
        )
    return scopes, Bounds(sizes, errors, impossible.astype(np.bool_))


def _batches(domain: Attributes, scopes: dict[Scope, _Asked]) -> dict[tuple[Scope, ...], Indices]:
    """The subjects for each set of scopes that are a component of what they were asked."""
    result: dict[tuple[Scope, ...], list[Indices]] = {}
    for tied in _components(domain, scopes):
        if len(tied) == 1:
            result[tuple(tied)] = [scopes[tied[0]].subjects]
            continue
        # Not everybody was asked about all of these, so they may fall apart.
        for together, subjects in _by_scopes([scopes[scope].subjects for scope in tied]):
            for part in _components(domain, [tied[number] for number in together]):
                result.setdefault(tuple(part), []).append(subjects)
    return {batch: np.sort(np.concatenate(parts)) for batch, parts in result.items()}


def _components(domain: Attributes, scopes: Iterable[Scope]) -> list[list[Scope]]:
    """Scopes that depend on common variables, perhaps by way of others."""
    found: list[tuple[set[Variable], list[Scope]]] = []
    for scope in scopes:
        links, tied, others = {link(domain, variable) for variable in scope}, [scope], []
        for known, members in found:
            if links.isdisjoint(known):
                others.append((known, members))
            else:
                links, tied = links | known, members + tied
        found = [*others, (links, tied)]
    return [sorted(members, key=lambda scope: [*map(rank, scope)]) for _, members in found]


def _by_scopes(subjects: Sequence[Indices]) -> Iterable[tuple[list[int], Indices]]:
    """From the subjects of each scope, the sets of scopes that occur and who has each of them."""
    number = np.repeat(np.arange(len(subjects)), [len(each) for each in subjects])
    whose = np.concatenate(subjects)
    order = np.argsort(whose, kind="stable")
    number, whose = number[order], whose[order]
    starts = np.flatnonzero(np.diff(whose, prepend=-1))
    found: dict[bytes, list[int]] = {}
    for start, stop in pairwise([*starts.tolist(), len(whose)]):
        found.setdefault(number[start:stop].tobytes(), []).append(start)
    for key, places in found.items():
        yield np.frombuffer(key, dtype=number.dtype).tolist(), whose[places]


@dataclass(frozen=True, eq=False)
class _Shape:
    """How to find the largest sum of tables over the scopes of a component."""

    domain: Attributes
    scopes: tuple[Scope, ...]

    @cached_property
    def _follows_steps(self) -> bool:
        variables = {variable for scope in self.scopes for variable in scope}
        return any(link(self.domain, variable) != variable for variable in variables)

    @cached_property
    def width(self) -> int:
        """The most doubles that are looked at together, of one subject."""
        if len(self.scopes) == 1:
            return math.prod(len(self.domain[name].values) for name, _ in self.scopes[0])
        plans = list(self._at.values()) if self._follows_steps else [self._whole]
        most = max(math.prod(step.sizes) for each in plans for step in each.steps)
        return 2 * (max(most, math.prod(self._state.shape)) if self._follows_steps else most)

    def spreads(self, tables: Sequence[Floats]) -> Floats:
        """max - min of the sums of tables, which have a row for each subject."""
        if len(tables) == 1:
            by_value = np.ascontiguousarray(tables[0].T)
            return np.asarray(by_value.max(axis=0) - by_value.min(axis=0))
        largest = self._largest([np.concatenate([table, -table]) for table in tables])
        return np.asarray(np.add(*np.split(largest, 2)))

    def _largest(self, tables: Sequence[Floats]) -> Floats:
        """The largest sums, from tables with a row for each subject and each sign."""
        if not self._follows_steps:
            return eliminate(self._whole, tables).sums[-1]
        state, last = self._state, self._steps[-1]
        # All tables about one step, over the values at that step; steps are swept in their order.
        sums = np.zeros((1, *state.shape))
        for before, step in zip([None, *self._steps], self._steps, strict=False):
            flat = np.zeros((1, *state.values))
            own = [tables[number] for number in self._tables_at(step, last)]
            at = eliminate(self._at[step], [*own, flat]).sums[-1]
            if before is not None:
                for move in state.moves(step - before):
                    sums = move.apply(sums)
            sums = sums + at.reshape(-1, *state.values, *(1 for _ in state.counters))
        return np.asarray(sums.reshape(len(sums), -1).max(axis=1))

    @cached_property
    def _whole(self) -> Plan:
        return self._planned(self.scopes, ())

    @cached_property
    def _state(self) -> State:
        names = {name for scope in self.scopes for name, _ in scope}
        changes = {name: self.domain[name].change for name in names}
        tying = (name for name, change in changes.items() if change is None or change.limited)
        state = State(self.domain, tuple(sorted(tying)))
        state.check()
        return state

    @cached_property
    def _steps(self) -> list[int]:
        steps = {step for scope in self.scopes for _, step in scope}
        return sorted(step for step in steps if step is not None)

    @cached_property
    def _at(self) -> dict[int, Plan]:
        plans = {}
        for step in self._steps:
            # All steps are alike, so the plan leaves them out.
            own = [_plain(self.scopes[number]) for number in self._tables_at(step, self._steps[-1])]
            front = _plain(self._state.front(step))
            plans[step] = self._planned([*own, front], front)
        return plans

    def _tables_at(self, step: int, last: int) -> list[int]:
        """The tables about a step; those about no step go with the last one."""
        steps = [next((s for _, s in scope if s is not None), last) for scope in self.scopes]
        return [number for number, own in enumerate(steps) if own == step]

    def _planned(self, scopes: Sequence[Scope], target: Scope) -> Plan:
        variables = sorted({variable for scope in scopes for variable in scope}, key=rank)
        sizes = tuple((variable, len(self.domain[variable[0]].values)) for variable in variables)
        return plan(sizes, tuple(scopes), target)


def _plain(scope: Scope) -> Scope:
    return tuple((name, None) for name, _ in scope)
