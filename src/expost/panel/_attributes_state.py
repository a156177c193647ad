"""ℓ of many subjects over records: a table for each part that was asked about, as arrays.

What a query sees of a record is eliminated from the tables that are tied to it, for a block of
subjects at a time. A table is zero for whoever was not asked about it, which changes no sum. The
differences of all other parts add up, so one number for each subject stands for them. Proofs:
docs/theory/attributes.md, docs/theory/panels.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Attributes, Variable
from expost.errors import InvalidInput
from expost.loss._components import link
from expost.loss._elimination import eliminate, plan_elimination, rank
from expost.loss._sweeps import StepState as Swept
from expost.numbers import Nats
from expost.panel._compiled_query import FiniteQuestion, Questions
from expost.panel._finite_state import FiniteState
from expost.panel._selection import Chosen
from expost.panel._ties import Compared

__all__ = ["AttributesState"]


Scope = tuple[Variable, ...]
"""What a question depends on, in the order of axes."""

_BLOCK = 1 << 15


class AttributesState(FiniteState):
    """ℓ over records, by the parts that were asked about."""

    domain: Attributes
    roundings = 4  # what a part adds to the whole is taken out and put in again

    def __init__(
        self, domain: Attributes, questions: Questions, count: int, *, track_peaks: bool = True
    ) -> None:
        super().__init__(domain, questions, count, track_peaks=track_peaks)
        self._tables: dict[Scope, Floats] = {}
        self._scopes: dict[int, _Scoped] = {}
        changes = [kind.change for kind in domain.kinds]
        # Where changes are limited by distance it matters which steps somebody was asked about.
        self._apart = any(change is not None and change.max_step is not None for change in changes)
        self._asked = np.zeros(count, dtype=np.int32)
        self._collections: list[frozenset[Scope]] = [frozenset()]
        self._numbers: dict[frozenset[Scope], int] = {frozenset(): 0}
        # All at the start, so that who else is here makes no difference, not in the last digit.
        for number in range(len(questions)):
            question = questions[number]
            assert isinstance(question, FiniteQuestion)
            self._open(self._scoped(question))

    def _scoped(self, question: FiniteQuestion) -> _Scoped:
        if question.number not in self._scopes:
            likelihood = question.query.on(self.domain)
            self._scopes[question.number] = _Scoped(self.domain, likelihood.variables)
        return self._scopes[question.number]

    def _open(self, scoped: _Scoped) -> None:
        """Have a table for what a question is about."""
        if scoped.scope not in self._tables:
            self._check(scoped)
            self._tables[scoped.scope] = np.zeros((scoped.size, self.count))

    def _check(self, scoped: _Scoped) -> None:
        """If all questions tie too much together, take subjects apart by what they were asked."""
        if self._apart:
            return
        try:
            self._tied(scoped).check()
        except InvalidInput:
            self._apart = True
            for asked, places, _ in self.log.turns:
                assert isinstance(asked, FiniteQuestion)
                self._ask_about(self._scoped(asked).scope, Chosen(self.count, places))

    def _add(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        scoped = self._prepared(question, chosen)
        change = -self._before(scoped, chosen)
        self._ask_about(scoped.scope, chosen)
        self._add_to_table(question, codes, chosen)
        for rows, highs, lows in self._seen(scoped, chosen):
            change[rows] += highs.max(axis=0) - lows.min(axis=0)
        spread = self.spread
        spread[chosen.index] = np.maximum(spread[chosen.index] + change, 0.0)

    def _add_unmeasured(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        scoped = self._prepared(question, chosen)
        self._ask_about(scoped.scope, chosen)
        self._add_to_table(question, codes, chosen)

    def _add_counts(self, question: FiniteQuestion, codes: Indices, counts: Floats) -> None:
        chosen = Chosen(self.count, np.flatnonzero(counts.any(axis=0)))
        scoped = self._prepared(question, chosen)
        self._ask_about(scoped.scope, chosen)
        logs = question.logs[np.ix_(scoped.written, codes)]
        self._tables[scoped.scope] += np.einsum("ij,jk->ik", logs, counts)

    def _prepared(self, question: FiniteQuestion, chosen: Chosen) -> _Scoped:
        """Have a table for a question, unless it ties too much together for one of the subjects."""
        scoped = self._scoped(question)
        self._open(scoped)
        if self._apart:
            for scopes, _ in self._by_scopes(chosen):
                self._tied(scoped, scopes).check()
        return scoped

    def _add_to_table(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        scoped = self._scoped(question)
        table, logs = self._tables[scoped.scope], question.logs[scoped.written]
        for rows, index in chosen.blocks(max(1, _BLOCK // scoped.size)):
            table[:, index] += logs[:, codes[rows]]

    def _measured(self) -> Floats:
        everyone, spread = Chosen(self.count), np.zeros(self.count)
        for scopes, rows in self._by_scopes(everyone):
            remaining = list(self._tables if scopes is None else scopes)
            self._add_spreads(remaining, scopes, rows, everyone, spread)
        return spread

    def _add_spreads(
        self,
        remaining: list[Scope],
        scopes: frozenset[Scope] | None,
        rows: Indices,
        chosen: Chosen,
        spread: Floats,
    ) -> None:
        """Add max - min over each component of some scopes."""
        while remaining:
            tied = self._tied(_Scoped(self.domain, remaining[0]), scopes)
            remaining = [scope for scope in remaining if scope not in tied.scopes]
            for block, highs, lows in self._blocks(tied, rows, chosen):
                spread[block] += highs.max(axis=0) - lows.min(axis=0)

    def worst(self, question: FiniteQuestion, chosen: Chosen) -> Floats:
        if question.infinite:
            return np.full(len(chosen), np.inf)
        scoped = self._scoped(question)
        self._check(scoped)
        spread, result = self.spread[chosen.index], np.empty(len(chosen))
        before = self._before(scoped, chosen) if self._apart else None
        for own, highs, lows in self._seen(scoped, chosen):
            inside = highs.max(axis=0) - lows.min(axis=0)
            rest = np.maximum(spread[own] - (inside if before is None else before[own]), 0.0)
            result[own] = question.differences.worst(highs, lows, inside) + rest
        return result

    def compare(
        self, question: FiniteQuestion | None, simply: bool, places: Indices, budget: Nats
    ) -> Compared:
        nobody = np.zeros(len(places), dtype=np.bool_)
        return Compared(nobody, nobody)

    def _before(self, scoped: _Scoped, chosen: Chosen) -> Floats:
        """max - min over all that a question is tied to, before it is asked."""
        result = np.zeros(len(chosen))
        if not self._apart:
            for own, highs, lows in self._seen(scoped, chosen):
                result[own] = highs.max(axis=0) - lows.min(axis=0)
            return result
        # A step that is asked about for the first time can make a difference by itself.
        for scopes, numbers in self._by_scopes(chosen):
            tied = list(self._tied(scoped, scopes).scopes)
            self._add_spreads(tied, scopes, numbers, chosen, result)
        return result

    def _seen(self, scoped: _Scoped, chosen: Chosen) -> Iterator[tuple[Indices, Floats, Floats]]:
        """ℓ as a question sees it, for some subjects at a time: the largest and the smallest."""
        for scopes, numbers in self._by_scopes(chosen):
            yield from self._blocks(self._tied(scoped, scopes), numbers, chosen)

    def _blocks(
        self, tied: _Tied, numbers: Indices, chosen: Chosen
    ) -> Iterator[tuple[Indices, Floats, Floats]]:
        size = max(1, _BLOCK // tied.width)
        for start in range(0, len(numbers), size):
            own = numbers[start : start + size]
            places = chosen.of(own) if len(numbers) < chosen.total else slice(start, start + size)
            yield own, *tied.extremes([self._tables[scope][:, places] for scope in tied.scopes])

    def _tied(self, scoped: _Scoped, asked: frozenset[Scope] | None = None) -> _Tied:
        """All scopes that are tied to one, perhaps by way of others; perhaps only some of them."""
        known = [scope for scope in self._tables if asked is None or scope in asked]
        links = {link(self.domain, variable) for variable in scoped.scope}
        tied: list[Scope] = []
        while True:
            more = [
                scope
                for scope in known
                if scope not in tied and links & {link(self.domain, each) for each in scope}
            ]
            if not more:
                break
            tied += more
            links |= {link(self.domain, each) for scope in more for each in scope}
        ordered = sorted(tied, key=lambda scope: [*map(rank, scope)])
        return _Tied(self.domain, tuple(ordered), scoped)

    def _by_scopes(self, chosen: Chosen) -> Iterator[tuple[frozenset[Scope] | None, Indices]]:
        """Some subjects by what they were asked about, if that matters."""
        if not self._apart:
            yield None, np.arange(len(chosen))
            return
        which = self._asked[chosen.index]
        for number in np.unique(which).tolist():
            yield self._collections[number], np.flatnonzero(which == number)

    def _ask_about(self, scope: Scope, chosen: Chosen) -> None:
        if not self._apart:
            return
        which = self._asked[chosen.index]
        after = which.copy()
        for number in np.unique(which).tolist():
            scopes = self._collections[number] | {scope}
            if scopes not in self._numbers:
                self._numbers[scopes] = len(self._collections)
                self._collections.append(scopes)
            after[which == number] = self._numbers[scopes]
        self._asked[chosen.index] = after


def _at(scope: Scope) -> int | None:
    """The step that a scope is about, if any of its attributes changes."""
    return next((step for _, step in scope if step is not None), None)


class _Scoped:
    """What a question depends on, and in which order it names it."""

    def __init__(self, domain: Attributes, variables: Scope) -> None:
        self.scope = tuple(sorted(variables, key=rank))
        sizes = [len(domain[name].values) for name, _ in variables]
        axes = [variables.index(variable) for variable in self.scope]
        self.size = math.prod(sizes)
        self.sizes = tuple(sizes[axis] for axis in axes)
        self.step = _at(self.scope)
        self.written = np.arange(self.size).reshape(sizes).transpose(axes).ravel()
        """Where each combination of the table is in the order in which the question names it."""
        self.sorted = np.argsort(self.written)


@dataclass(frozen=True, eq=False)
class _Tied:
    """Scopes that are tied together, and the one that a question is about."""

    domain: Attributes
    scopes: tuple[Scope, ...]
    asked: _Scoped

    def check(self) -> None:
        """Refuse what ties too much together."""
        tables = [np.zeros((math.prod(self._sizes(scope)), 1)) for scope in self.scopes]
        self.extremes(tables)

    @cached_property
    def width(self) -> int:
        """About how many doubles are looked at together, of one subject."""
        if self.alone:
            return self.asked.size
        own = max(math.prod(self._sizes(scope)) for scope in (*self.scopes, self.asked.scope))
        return 4 * max(own, math.prod(self._state.shape) if self._follows else own)

    @property
    def alone(self) -> bool:
        """Whether nothing else is tied to what the question is about."""
        return set(self.scopes) <= {self.asked.scope}

    @cached_property
    def _follows(self) -> bool:
        variables = {each for scope in (*self.scopes, self.asked.scope) for each in scope}
        return any(link(self.domain, each) != each for each in variables)

    def _sizes(self, scope: Scope) -> tuple[int, ...]:
        return tuple(len(self.domain[name].values) for name, _ in scope)

    def extremes(self, tables: Sequence[Floats]) -> tuple[Floats, Floats]:
        """The largest and the smallest sums for what the question sees, a column per subject."""
        if self.alone:
            (table,) = tables or [np.zeros((self.asked.size, 1))]
            seen = table[self.asked.sorted]
            return seen, seen
        both = [np.concatenate([table, -table], axis=1).T for table in tables]
        sums = self._swept(both) if self._follows else self._eliminated(both)
        highs, lows = np.split(sums.reshape(len(sums), -1).T[self.asked.sorted], 2, axis=1)
        return highs, -lows

    def _eliminated(self, tables: Sequence[Floats]) -> Floats:
        return _sums(self.domain, self.scopes, tables, self.asked.scope)

    @cached_property
    def _state(self) -> Swept:
        names = {name for scope in (*self.scopes, self.asked.scope) for name, _ in scope}
        changes = {name: self.domain[name].change for name in names}
        tying = (name for name, change in changes.items() if not change or change.limited)
        state = Swept(self.domain, tuple(sorted(tying)))
        state.check()
        return state

    def _swept(self, tables: Sequence[Floats]) -> Floats:
        """The same where steps say something about each other: from both sides to the step."""
        steps = sorted({step for step in map(_at, self.scopes) if step is not None})
        here = self.asked.step
        if here is None:
            here = steps[-1] if steps else 1
        before = self._side([step for step in steps if step < here], here, tables)
        after = self._side([step for step in steps if step > here][::-1], here, tables)
        state = self._state
        counters = tuple(range(1 + len(state.values), 1 + len(state.shape)))
        both = before + np.flip(after, counters)
        best = both.reshape(len(both), *state.values, -1).max(axis=-1)
        front = state.front(here)
        own = [number for number, scope in enumerate(self.scopes) if _at(scope) in (None, here)]
        return _sums(
            self.domain,
            [*(_plain(self.scopes[number]) for number in own), _plain(front)],
            [*(tables[number] for number in own), best],
            _plain(self.asked.scope),
        )

    def _side(self, steps: Sequence[int], here: int, tables: Sequence[Floats]) -> Floats:
        """All steps on one side, the farthest first, up to what reaches this one."""
        state, last = self._state, None
        sums = np.zeros((1, *state.shape))
        for step in [*steps, here]:
            if last is not None:
                for move in state.moves(abs(step - last)):
                    sums = move.apply(sums)
            if step == here:
                break
            own = [number for number, scope in enumerate(self.scopes) if _at(scope) == step]
            front = _plain(state.front(step))
            at = _sums(
                self.domain,
                [_plain(self.scopes[number]) for number in own],
                [tables[number] for number in own],
                front,
            )
            sums = sums + at.reshape(-1, *state.values, *(1 for _ in state.counters))
            last = step
        return sums


def _sums(
    domain: Attributes, scopes: Sequence[Scope], tables: Sequence[Floats], target: Scope
) -> Floats:
    """The largest sums of tables for every combination of a target."""
    variables = sorted({*target, *(each for scope in scopes for each in scope)}, key=rank)
    sizes = tuple((each, len(domain[each[0]].values)) for each in variables)
    flat = np.zeros((1, math.prod(len(domain[name].values) for name, _ in target)))
    planned = plan_elimination(sizes, (*scopes, target), target)
    return eliminate(planned, [*tables, flat]).sums[-1]


def _plain(scope: Sequence[Variable]) -> Scope:
    """All steps are alike, so plans leave them out."""
    return tuple((name, None) for name, _ in scope)
