"""ℓ over attributes that are tied together and of which some change a limited number of times.

What was answered about one step is a table over the values at that step. The extremes for the
values at one step are those of this step's tables, of all that came before and of all that comes
after. Steps that nobody asked about need not be there. Proof: docs/theory/changing.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from expost.domains import Attributes, Part, Variable
from expost.errors import InvalidInput
from expost.loss.component import Component, Marginals, sum_error
from expost.loss.elimination import eliminate, plan
from expost.loss.exact_elimination import Bases, Exactly, Found, Places, Rows
from expost.loss.sweeps import Around, At, Floats, State, Sweep
from expost.loss.tables import Table, rank

__all__ = ["Chained"]

# Numbers in the sweeps that are kept, one for each step and side: 160 MB.
_MOST_KEPT = 5_000_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was worked out about each step: its tables, and the sweeps that end there."""

    at: dict[int, At] = field(default_factory=dict)
    before: dict[int, Sweep] = field(default_factory=dict)
    after: dict[int, Sweep] = field(default_factory=dict)

    def without(self, step: int | None) -> _Kept:
        """What is still right when there is more about a step."""
        if step is None:
            return self
        return _Kept(
            {other: at for other, at in self.at.items() if other != step},
            {other: sweep for other, sweep in self.before.items() if other < step},
            {other: sweep for other, sweep in self.after.items() if other > step},
        )


@dataclass(frozen=True, eq=False)
class Chained(Component):
    """Tables about the steps of some attributes, and about others that are tied to these."""

    follows_steps: ClassVar[bool] = True
    domain: Attributes
    kept: _Kept = field(default_factory=_Kept, repr=False)

    def with_table(self, table: Table) -> Chained:
        tables = self.tables_with(table)
        same = Chained(tables, self.domain)._names == self._names
        kept = self.kept.without(table.step) if same else _Kept()
        return Chained(tables, self.domain, kept)

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 4 * len(self._steps) + 2 * len(self.sizes))

    @cached_property
    def _steps(self) -> list[int]:
        """The steps that were asked about."""
        return sorted({step for _, step in self.sizes if step is not None})

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return self._tying(self.sizes)

    def _tying(self, variables: Sequence[Variable] | dict[Variable, int]) -> tuple[str, ...]:
        """What ties steps together: all that has one value, or a limit to its changes."""
        changes = {name: self.domain[name].change for name, _ in variables}
        return tuple(sorted(n for n, change in changes.items() if not change or change.limited))

    def check(self) -> None:
        state = State(self.domain, self._names)
        state.check()
        if (size := math.prod(state.shape) * len(self._steps)) > _MOST_KEPT:
            raise InvalidInput(
                f"{len(self._steps):,} steps with {math.prod(state.shape):,} combinations each are "
                f"{size:,} in all; at most {_MOST_KEPT:,} can be followed"
            )
        for step in self._steps:
            self._at(state, step)

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        names = self._tying([*self.sizes, *variables])
        known = self if names == self._names else Chained(self.tables, self.domain)
        return known._marginals(State(self.domain, names), variables)

    def _marginals(self, state: State, variables: tuple[Variable, ...]) -> Marginals:
        state.check()
        # Where no step is asked about, any of them will do.
        here = next((step for _, step in variables if step is not None), None)
        here = self._steps[-1] if here is None else here
        before, after = None, None
        for step in self._steps:
            if step < here:
                before = self._swept(self.kept.before, before, step, state)
        for step in reversed(self._steps):
            if step > here:
                after = self._swept(self.kept.after, after, step, state)
        around = Around(before, after, state, here, self.error)
        # Tables about no step are taken here, and nowhere else.
        tables = [table for table in self.tables if table.step in (None, here)]
        return self._eliminated(tables, state.front(here), around.best, around, variables)

    def _swept(
        self, kept: dict[int, Sweep], farther: Sweep | None, step: int, state: State
    ) -> Sweep:
        if step not in kept:
            kept[step] = Sweep.onto(farther, self._at(state, step), state)
        return kept[step]

    def _at(self, state: State, step: int) -> At:
        """What was answered about a step, over its values."""
        if step not in self.kept.at:
            self.kept.at[step] = self._worked_out(state, step)
        return self.kept.at[step]

    def _worked_out(self, state: State, step: int) -> At:
        tables, front = self._by_step[step], state.front(step)
        if len(tables) == 1 and tables[0].sorted == front:
            return At(step, tables[0].signed, tables[0])
        flat = np.zeros((2, *state.values))
        marginals = self._eliminated(tables, front, flat, None, front)
        return At(step, marginals.sums.sums[-1], _Exactly(marginals, front, state.values))

    @cached_property
    def _by_step(self) -> dict[int | None, list[Table]]:
        found: dict[int | None, list[Table]] = {}
        for table in self.tables:
            found.setdefault(table.step, []).append(table)
        return found

    def _eliminated(
        self,
        tables: Sequence[Table],
        front: tuple[Variable, ...],
        sums: Floats,
        exactly: Exactly | None,
        target: tuple[Variable, ...],
    ) -> Marginals:
        """What tables, and sums for the values at their step, say about a target at that step."""
        ordered = tuple(sorted(target, key=rank))
        variables = {*front, *target, *(v for table in tables for v in table.variables)}
        sizes = {v: len(self.domain[v[0]].values) for v in sorted(variables, key=rank)}
        flat = np.zeros((2, *(sizes[variable] for variable in ordered)))
        # All steps are alike, so the plan leaves them out.
        scopes = [*(table.sorted for table in tables), front, ordered]
        planned = plan(
            tuple((_plain([v])[0], size) for v, size in sizes.items()),
            tuple(_plain(scope) for scope in scopes),
            _plain(ordered),
        )
        result = eliminate(planned, [*(table.signed for table in tables), sums, flat])
        return Marginals.of(result, [*tables, exactly, None], self.error, target)


@dataclass(frozen=True, slots=True)
class _Exactly:
    """The exact extremes of what was answered about a step."""

    marginals: Marginals
    front: tuple[Variable, ...]
    sizes: tuple[int, ...]

    def rows(self, axes: Sequence[Places], sign: int, bases: Bases) -> Rows:
        places = np.ravel_multi_index(tuple(axes), self.sizes)
        return self.marginals.rows(sign, np.asarray(places), bases)

    def traced(self, places: Sequence[int], sign: int, bases: Bases) -> Found:
        place = int(np.ravel_multi_index(tuple(places), self.sizes))
        own = dict(zip(self.front, places, strict=True))
        return own | self.marginals.traced(sign, place, bases)


def _plain(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple((name, None) for name, _ in variables)
