"""Attributes that joint questions tie together: what there is to know about ℓ over them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np

from expost._format import format_list
from expost._types import Floats, Indices
from expost.domains import Attributes, Part, Variable
from expost.errors import InvalidInput
from expost.loss._elimination import (
    EliminationSums,
    ExactElimination,
    eliminate,
    plan_elimination,
    rank,
)
from expost.loss._exponents import Combination, DistinctLikelihoods, ExactTable
from expost.loss._sweeps import StepState, StepTable, Sweep, TwoSidedSweep
from expost.loss._tables import ResponseTable
from expost.numbers import UNIT, up
from expost.transcript import Exchange

__all__ = [
    "MOST_FOLLOWED",
    "Component",
    "Marginals",
    "StaticComponent",
    "TemporalComponent",
    "check_step_count",
    "link",
    "sum_error",
]


def link(domain: Attributes, variable: Variable) -> Variable:
    """What stands for a variable in its component: all steps of a limited change are one."""
    name, _ = variable
    change = domain[name].change
    return variable if change is None or not change.limited else (name, None)


@dataclass(frozen=True, eq=False)
class Component(ABC):
    """Tables that depend on common variables, perhaps by way of others."""

    follows_steps: ClassVar[bool]
    """Whether values at one step say something about those at another."""
    tables: tuple[ResponseTable, ...]
    """In their order."""

    @property
    @abstractmethod
    def error(self) -> float:
        """How far any sum of doubles can be from the exact one."""

    @abstractmethod
    def with_table(self, table: ResponseTable) -> Component:
        """The same with one more table, or with one in the place of an earlier one."""

    @abstractmethod
    def check(self) -> None:
        """Refuse what ties too much together."""

    @property
    def compared(self) -> int:
        """For how many more exchanges it counts in an exact comparison."""
        return 0

    @abstractmethod
    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        """The extremes of ℓ for each combination of some variables, as a query sees them."""

    def tables_with(self, table: ResponseTable) -> tuple[ResponseTable, ...]:
        """The tables with one more, or with one in the place of an earlier one, in their order."""
        place = bisect_left(self.tables, table.order, key=lambda known: known.order)
        there = self.tables[place : place + 1]
        replaced = bool(there) and there[0].variables == table.variables
        return (*self.tables[:place], table, *self.tables[place + replaced :])

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        """The variables in their order, and how many values each has."""
        found: dict[Variable, int] = {}
        for table in self.tables:
            found.update(table.sizes)
        return {variable: found[variable] for variable in sorted(found, key=rank)}

    def sizes_with(self, variables: Sequence[Variable], part: Part | None) -> dict[Variable, int]:
        """The same with those of a query."""
        more = zip(variables, part.sizes, strict=True) if part is not None else ()
        sizes = {**self.sizes, **dict(more)}
        return {variable: sizes[variable] for variable in sorted(sizes, key=rank)}

    @cached_property
    def _whole(self) -> Marginals:
        return self.marginals((), None)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The largest and the smallest ℓ, in doubles."""
        return float(self._whole.highs[0]), float(self._whole.lows[0])

    @cached_property
    def exact_spread(self) -> Counter[int]:
        """The powers whose product has the logarithm max ℓ - min ℓ, exactly."""
        everything = np.zeros(1, dtype=np.intp)
        (_, highest), (_, lowest) = self._whole.best(everything, everything)
        spread = highest.copy()
        spread.subtract(lowest)
        return spread

    def extreme(self, sign: int) -> Combination:
        """Where ℓ is largest (sign 1) or smallest (sign -1), exactly, as far as it was asked."""
        found = self._whole.traced(0, sign)
        return {variable: found[variable] for variable in self.sizes}


@dataclass(frozen=True, eq=False)
class Marginals:
    """The largest and the smallest ℓ for each combination of what a query is about."""

    sums: EliminationSums
    sources: Sequence[ExactTable | None]
    """What was summed up, exactly; None for what is zero everywhere."""
    error: float
    written: Indices
    """Where each combination is, in the order in which the query sees them."""

    @classmethod
    def of(
        cls,
        sums: EliminationSums,
        sources: Sequence[ExactTable | None],
        error: float,
        variables: Sequence[Variable],
    ) -> Marginals:
        """Those of an elimination whose target has these variables."""
        shape = sums.plan.steps[-1].sizes
        target = sorted(variables, key=rank)
        places = np.arange(int(np.prod(shape))).reshape(shape)
        axes = [target.index(variable) for variable in variables]
        return cls(sums, sources, error, places.transpose(axes).ravel())

    @cached_property
    def highs(self) -> Floats:
        return self.sums.highs[self.written]

    @cached_property
    def lows(self) -> Floats:
        return self.sums.lows[self.written]

    def best(
        self, high: Indices, low: Indices, extra: ExactTable | None = None
    ) -> list[tuple[int, Counter[int]]]:
        """Where ℓ is largest among some combinations, and smallest among others, and how large.

        ExactTable, and perhaps with some more that is about these combinations.
        """
        exactly = self._exactly((high, low), extra)
        found = [exactly.best(side) for side in (0, 1)]
        return [(int(self._read[place]), powers) for place, powers in found]

    def powers(self, places: Indices, sign: int) -> DistinctLikelihoods:
        """The extremes at some combinations, which are sorted, exactly."""
        return self._one_side(places, sign).powers(0 if sign > 0 else 1)

    def traced(self, place: int, sign: int) -> Combination:
        """Values of all variables that attain the extreme at one combination."""
        target = int(self.written[place])
        return self._one_side(np.array([place]), sign).traced(0 if sign > 0 else 1, target)

    @cached_property
    def _read(self) -> Indices:
        """Where the query sees each combination."""
        return np.argsort(self.written)

    def _one_side(self, places: Indices, sign: int) -> ExactElimination:
        nothing = places[:0]
        return self._exactly((places, nothing) if sign > 0 else (nothing, places), None)

    def _exactly(self, sides: Sequence[Indices], extra: ExactTable | None) -> ExactElimination:
        wanted = np.zeros((2, len(self.written)), dtype=np.bool_)
        for marks, places in zip(wanted, sides, strict=True):
            marks[self.written[places]] = True
        *tables, target = self.sources
        assert target is None, "the last table is the target's own, and zero"
        wanted = wanted.reshape(2, *self.sums.plan.steps[-1].sizes)
        return ExactElimination(self.sums, [*tables, extra], self.error, wanted)


def sum_error(tables: Sequence[ResponseTable], more: int) -> float:
    """How far sums of all these tables can be from the exact ones, with some more additions.

    Each table has an error of its own; every addition rounds a number that is at most the sum of
    the largest absolute values. All of that is doubled, which is more than what it is rounded by.
    """
    error = up(math.fsum([table.on_part.error for table in tables]))
    magnitude = math.fsum([table.magnitude for table in tables])
    return up(error + 2 * (len(tables) + more + 2) * UNIT * magnitude)


@dataclass(frozen=True, eq=False)
class StaticComponent(Component):
    """Tables over attributes that have one value each, or one at a certain step."""

    follows_steps: ClassVar[bool] = False

    def with_table(self, table: ResponseTable) -> StaticComponent:
        return StaticComponent(self.tables_with(table))

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 2 * len(self.sizes))

    def check(self) -> None:
        plan_elimination(
            tuple(self.sizes.items()), (*(table.sorted for table in self.tables), ()), ()
        )

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        sizes, target = self.sizes_with(variables, part), tuple(sorted(variables, key=rank))
        scopes = (*(table.sorted for table in self.tables), target)
        flat = np.zeros((2, *(sizes[variable] for variable in target)))
        sums = eliminate(
            plan_elimination(tuple(sizes.items()), scopes, target),
            [*(table.signed for table in self.tables), flat],
        )
        return Marginals.of(
            sums, [*(table.exactly for table in self.tables), None], self.error, variables
        )


MOST_FOLLOWED = 300_000_000
"""Exchanges × steps × (combinations of a state + 1,000): a few seconds, and 200 MB of sweeps."""

_ANY = 1_000

_EXACTLY = 50
"""How many different exchanges a step counts for in an exact comparison."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was worked out about each step: its tables, and the sweeps that end there."""

    at: dict[int, StepTable] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked about, all of it in order: one more table does not go through it again."""

    sizes: dict[Variable, int]
    names: frozenset[str]
    steps: list[int]
    exchanges: int

    @classmethod
    def of(cls, tables: Sequence[ResponseTable]) -> _Asked:
        sizes = {v: size for table in tables for v, size in table.sizes.items()}
        steps = sorted({step for _, step in sizes if step is not None})
        exchanges = sum(part.times for table in tables for part in table.on_part.tally)
        return cls(_ordered(sizes), frozenset(name for name, _ in sizes), steps, exchanges)

    def and_about(self, table: ResponseTable) -> _Asked:
        new, step, steps = table.sizes, table.step, self.steps
        if new.keys() <= self.sizes.keys():
            return replace(self, exchanges=self.exchanges + 1)
        place = len(steps) if step is None else bisect_left(steps, step)
        if step is not None and steps[place : place + 1] != [step]:
            steps = [*steps[:place], step, *steps[place:]]
        sizes, last = self.sizes | new, list(islice(reversed(self.sizes), 1))
        if len(new) > 1 or any(rank(known) > rank(other) for known in last for other in new):
            sizes = _ordered(sizes)
        names = self.names | {name for name, _ in new}
        return _Asked(sizes, names, steps, self.exchanges + 1)


def check_step_count(domain: Attributes, exchanges: Iterable[Exchange]) -> None:
    """Refuse, before anything is worked out, what would be followed over too many steps."""
    asked: dict[str, list[int]] = {}
    for exchange in exchanges:
        for name, step in exchange.query.on(domain).variables:
            change = domain[name].change
            if step is not None and change is not None and change.limited:
                asked.setdefault(name, []).append(step)
    for name, steps in asked.items():
        _check_followed(len(steps), len(set(steps)), StepState(domain, (name,)))


def _check_followed(exchanges: int, steps: int, state: StepState) -> None:
    combinations = math.prod(state.shape)
    if exchanges * steps * (combinations + _ANY) > MOST_FOLLOWED:
        most = MOST_FOLLOWED // (combinations + _ANY)
        raise InvalidInput(
            f"{exchanges:,} exchanges are about {steps:,} steps of {format_list(state.names)}, "
            f"with {combinations:,} combinations each; exchanges times steps can be "
            f"at most {most:,}"
        )


def _ordered(sizes: dict[Variable, int]) -> dict[Variable, int]:
    return {variable: sizes[variable] for variable in sorted(sizes, key=rank)}


@dataclass(frozen=True, eq=False)
class TemporalComponent(Component):
    """Tables about the steps of some attributes, and about others that are tied to these."""

    follows_steps: ClassVar[bool] = True
    domain: Attributes
    kept: _Kept = field(default_factory=_Kept, repr=False)
    asked: _Asked | None = field(default=None, repr=False)
    """If it is known from the exchange before."""

    def with_table(self, table: ResponseTable) -> TemporalComponent:
        tables, asked = self.tables_with(table), self._asked.and_about(table)
        same = {*self._tying(table.variables)} <= {*self._names}
        return TemporalComponent(
            tables, self.domain, self.kept.without(table.step) if same else _Kept(), asked
        )

    @cached_property
    def _asked(self) -> _Asked:
        return self.asked or _Asked.of(self.tables)

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        return self._asked.sizes

    @property
    def _steps(self) -> list[int]:
        return self._asked.steps

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 4 * len(self._steps) + 2 * len(self.sizes))

    @property
    def _names(self) -> tuple[str, ...]:
        return self._tying([(name, None) for name in self._asked.names])

    def _tying(self, variables: Iterable[Variable]) -> tuple[str, ...]:
        """What ties steps together: all that has one value, or a limit to its changes."""
        changes = {name: self.domain[name].change for name, _ in variables}
        return tuple(sorted(n for n, change in changes.items() if not change or change.limited))

    def check(self) -> None:
        state = StepState(self.domain, self._names)
        state.check()
        _check_followed(self._asked.exchanges, len(self._steps), state)
        for step in self._steps:
            if step not in self.kept.at:
                self._at(state, step)

    @property
    def compared(self) -> int:
        return _EXACTLY * len(self._steps)

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        names = self._tying([*self.sizes, *variables])
        known = self if names == self._names else TemporalComponent(self.tables, self.domain)
        return known._marginals(StepState(self.domain, names), variables)

    def _marginals(self, state: StepState, variables: tuple[Variable, ...]) -> Marginals:
        state.check()
        if variables:
            # One more exchange would be refused when it is recorded, so it is refused before.
            steps = {*self._steps, *(step for _, step in variables if step is not None)}
            _check_followed(self._asked.exchanges + 1, len(steps), state)
        # Where no step is asked about, any of them will do.
        here = next((step for _, step in variables if step is not None), None)
        here = self._steps[-1] if here is None else here
        place = bisect_left(self._steps, here)
        earlier, later = self._steps[:place], self._steps[place:][::-1]
        before = self._swept(self.kept.before, earlier, state)
        after = self._swept(self.kept.after, later[:-1] if later[-1:] == [here] else later, state)
        around = TwoSidedSweep(before, after, state, here, self.error)
        # Tables about no step are taken here, and nowhere else.
        tables = [table for table in self.tables if table.step in (None, here)]
        return self._eliminated(tables, state.front(here), around.best, around, variables)

    def _swept(self, kept: dict[int, Sweep], steps: list[int], state: StepState) -> Sweep | None:
        """The sweep over some steps, from the last one that is kept onwards."""
        start = len(steps)
        while start and steps[start - 1] not in kept:
            start -= 1
        sweep = kept[steps[start - 1]] if start else None
        for step in steps[start:]:
            sweep = kept[step] = Sweep.onto(sweep, self._at(state, step), state)
        return sweep

    def _at(self, state: StepState, step: int) -> StepTable:
        """What was answered about a step, over its values."""
        if step not in self.kept.at:
            self.kept.at[step] = self._worked_out(state, step)
        return self.kept.at[step]

    def _worked_out(self, state: StepState, step: int) -> StepTable:
        tables, front = self._by_step[step], state.front(step)
        if len(tables) == 1 and tables[0].sorted == front:
            return StepTable(step, tables[0].signed, tables[0].exactly)
        flat = np.zeros((2, *state.values))
        marginals = self._eliminated(tables, front, flat, None, front)
        return StepTable(
            step, marginals.sums.sums[-1], _ExactStepExtremes(marginals, front, state.values)
        )

    @cached_property
    def _by_step(self) -> dict[int | None, list[ResponseTable]]:
        found: dict[int | None, list[ResponseTable]] = {}
        for table in self.tables:
            found.setdefault(table.step, []).append(table)
        return found

    def _eliminated(
        self,
        tables: Sequence[ResponseTable],
        front: tuple[Variable, ...],
        sums: Floats,
        exactly: ExactTable | None,
        target: tuple[Variable, ...],
    ) -> Marginals:
        """What tables, and sums for the values at their step, say about a target at that step."""
        ordered = tuple(sorted(target, key=rank))
        variables = {*front, *target, *(v for table in tables for v in table.variables)}
        sizes = {v: len(self.domain[v[0]].values) for v in sorted(variables, key=rank)}
        flat = np.zeros((2, *(sizes[variable] for variable in ordered)))
        # All steps are alike, so the plan leaves them out.
        scopes = [*(table.sorted for table in tables), front, ordered]
        planned = plan_elimination(
            tuple((_plain([v])[0], size) for v, size in sizes.items()),
            tuple(_plain(scope) for scope in scopes),
            _plain(ordered),
        )
        result = eliminate(planned, [*(table.signed for table in tables), sums, flat])
        known = [table.exactly for table in tables]
        return Marginals.of(result, [*known, exactly, None], self.error, target)


@dataclass(frozen=True, slots=True)
class _ExactStepExtremes:
    """The exact extremes of what was answered about a step."""

    marginals: Marginals
    front: tuple[Variable, ...]
    sizes: tuple[int, ...]

    def powers(self, places: Indices, sign: int) -> DistinctLikelihoods:
        return self.marginals.powers(places, sign)

    def traced(self, place: int, sign: int) -> Combination:
        own = map(int, np.unravel_index(place, self.sizes))
        return dict(zip(self.front, own, strict=True)) | self.marginals.traced(place, sign)


def _plain(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple((name, None) for name, _ in variables)
