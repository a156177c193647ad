"""Components: attributes that queries tie together, and the extremes of ℓ over them.

A component is static if each attribute has one value, and temporal if some attributes change a
limited number of times. Then the responses about one step are a table over the values at that step,
and the extremes for these values are those of this step's tables, of all steps before and of all
steps after. Steps without a query do not matter. Proofs: docs/theory/attributes.md.
"""

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
from expost.domains import Attributes, Variable
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
    """Return the variable that stands for this one: all steps of a limited change are one."""
    name, _ = variable
    change = domain[name].change
    return variable if change is None or not change.limited else (name, None)


@dataclass(frozen=True, eq=False)
class Component(ABC):
    """Tables that share variables, perhaps through other tables."""

    #: Whether values at one step limit those at another.
    follows_steps: ClassVar[bool]
    #: In their order.
    tables: tuple[ResponseTable, ...]

    @property
    @abstractmethod
    def error(self) -> float:
        """A bound on the error of every sum of doubles."""

    @abstractmethod
    def with_table(self, table: ResponseTable) -> Component:
        """Return the component with a table added, or replaced if its variables are the same."""

    @abstractmethod
    def check(self) -> None:
        """Refuse a component with too many combinations or steps."""

    @property
    def comparison_work(self) -> int:
        """The work of an exact comparison beyond its exchanges, in exchanges."""
        return 0

    @abstractmethod
    def marginals(self, variables: tuple[Variable, ...], sizes: tuple[int, ...]) -> Marginals:
        """Return the extremes of ℓ for each combination of variables, in a query's order."""

    def tables_with(self, table: ResponseTable) -> tuple[ResponseTable, ...]:
        """Return the tables, in order, with one added or replaced."""
        index = bisect_left(self.tables, table.order, key=lambda existing: existing.order)
        current = self.tables[index : index + 1]
        replaced = bool(current) and current[0].variables == table.variables
        return (*self.tables[:index], table, *self.tables[index + replaced :])

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        """The number of values of each variable, in order."""
        return _sort_sizes({v: size for table in self.tables for v, size in table.sizes.items()})

    @cached_property
    def _overall(self) -> Marginals:
        return self.marginals((), ())

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The largest and the smallest ℓ, in doubles."""
        return float(self._overall.highs[0]), float(self._overall.lows[0])

    @cached_property
    def exact_spread(self) -> Counter[int]:
        """The powers whose product has the logarithm max ℓ - min ℓ, exactly."""
        everything = np.zeros(1, dtype=np.intp)
        (_, highest), (_, lowest) = self._overall.best(everything, everything)
        spread = highest.copy()
        spread.subtract(lowest)
        return spread

    @cached_property
    def exact_high(self) -> Counter[int]:
        """The powers whose product has the logarithm max ℓ, exactly."""
        return self._overall.highest(np.zeros(1, dtype=np.intp))

    def extreme(self, sign: int) -> Combination:
        """Return a combination where ℓ is exactly largest (sign 1) or smallest (sign -1)."""
        values = self._overall.trace(0, sign)
        return {variable: values[variable] for variable in self.sizes}


@dataclass(frozen=True, eq=False)
class Marginals:
    """The largest and the smallest ℓ for each combination of the variables of a query."""

    sums: EliminationSums
    #: The exact tables of the sum; None for one that is zero everywhere.
    sources: Sequence[ExactTable | None]
    error: float
    #: The index of each combination in the sums, in the order of the query.
    order: Indices

    @classmethod
    def of(
        cls,
        sums: EliminationSums,
        sources: Sequence[ExactTable | None],
        error: float,
        variables: Sequence[Variable],
    ) -> Marginals:
        """Return the marginals of an elimination whose target has these variables."""
        shape = sums.plan.steps[-1].sizes
        target = sorted(variables, key=rank)
        indices = np.arange(int(np.prod(shape))).reshape(shape)
        axes = [target.index(variable) for variable in variables]
        return cls(sums, sources, error, indices.transpose(axes).ravel())

    @cached_property
    def highs(self) -> Floats:
        return self.sums.highs[self.order]

    @cached_property
    def lows(self) -> Floats:
        return self.sums.lows[self.order]

    def best(
        self, high: Indices, low: Indices, extra: ExactTable | None = None
    ) -> list[tuple[int, Counter[int]]]:
        """Find the exact maximum among some combinations, and the minimum among others.

        Return the combination and the likelihood of each. ``extra`` is one more table over these
        combinations.
        """
        exact = self._eliminate_exactly((high, low), extra)
        winners = [exact.best(side) for side in (0, 1)]
        return [(int(self._query_order[index]), powers) for index, powers in winners]

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        """Return the exact extremes at some sorted combinations."""
        return self._one_side(indices, sign).powers(0 if sign > 0 else 1)

    def highest(self, indices: Indices) -> Counter[int]:
        """Return the exact likelihood of the maximum among some combinations."""
        return self._one_side(indices, 1).best(0)[1]

    def trace(self, index: int, sign: int) -> Combination:
        """Return values of all variables that attain the extreme at one combination."""
        target = int(self.order[index])
        return self._one_side(np.array([index]), sign).trace(0 if sign > 0 else 1, target)

    @cached_property
    def _query_order(self) -> Indices:
        """The index of each combination in the order of the query."""
        return np.argsort(self.order)

    def _one_side(self, indices: Indices, sign: int) -> ExactElimination:
        empty = indices[:0]
        return self._eliminate_exactly((indices, empty) if sign > 0 else (empty, indices), None)

    def _eliminate_exactly(
        self, sides: Sequence[Indices], extra: ExactTable | None
    ) -> ExactElimination:
        wanted = np.zeros((2, len(self.order)), dtype=np.bool_)
        for marks, indices in zip(wanted, sides, strict=True):
            marks[self.order[indices]] = True
        *tables, target = self.sources
        assert target is None, "the last table is the target's own, and zero"
        wanted = wanted.reshape(2, *self.sums.plan.steps[-1].sizes)
        return ExactElimination(self.sums, [*tables, extra], self.error, wanted)


def sum_error(tables: Sequence[ResponseTable], additions: int) -> float:
    """Bound the error of sums of all these tables, with some more additions.

    Each table has its own error; every addition rounds a number that is at most the sum of the
    largest absolute values. Doubling the bound covers its own rounding.
    """
    error = up(math.fsum([table.on_part.error for table in tables]))
    magnitude = math.fsum([table.magnitude for table in tables])
    return up(error + 2 * (len(tables) + additions + 2) * UNIT * magnitude)


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

    def marginals(self, variables: tuple[Variable, ...], sizes: tuple[int, ...]) -> Marginals:
        size = _sort_sizes(self.sizes | dict(zip(variables, sizes, strict=True)))
        target = tuple(sorted(variables, key=rank))
        scopes = (*(table.sorted for table in self.tables), target)
        flat = np.zeros((2, *(size[variable] for variable in target)))
        planned = plan_elimination(tuple(size.items()), scopes, target)
        sums = eliminate(planned, [*(table.signed for table in self.tables), flat])
        sources = [*(table.exact for table in self.tables), None]
        return Marginals.of(sums, sources, self.error, variables)


#: Exchanges × steps × (combinations of a state + 1,000): a few seconds and 200 MB of sweeps.
MOST_FOLLOWED = 300_000_000

_STEP_OVERHEAD = 1_000

#: The work of a step in an exact comparison, in different exchanges.
_COMPARISON_PER_STEP = 50


@dataclass(frozen=True, slots=True)
class _StepCache:
    """The tables of each step, and the sweeps that end there, as far as they are computed."""

    at: dict[int, StepTable] = field(default_factory=dict)
    before: dict[int, Sweep] = field(default_factory=dict)
    after: dict[int, Sweep] = field(default_factory=dict)

    def without(self, step: int | None) -> _StepCache:
        """Return the entries that remain valid after a response about a step."""
        if step is None:
            return self
        return _StepCache(
            {other: table for other, table in self.at.items() if other != step},
            {other: sweep for other, sweep in self.before.items() if other < step},
            {other: sweep for other, sweep in self.after.items() if other > step},
        )


@dataclass(frozen=True, slots=True)
class _QueryScope:
    """The variables and steps of the tables, in order; it grows table by table."""

    sizes: dict[Variable, int]
    names: frozenset[str]
    steps: list[int]
    exchanges: int

    @classmethod
    def of(cls, tables: Sequence[ResponseTable]) -> _QueryScope:
        sizes = {v: size for table in tables for v, size in table.sizes.items()}
        steps = sorted({step for _, step in sizes if step is not None})
        exchanges = sum(part.times for table in tables for part in table.on_part.tally)
        return cls(_sort_sizes(sizes), frozenset(name for name, _ in sizes), steps, exchanges)

    def with_table(self, table: ResponseTable) -> _QueryScope:
        new, step, steps = table.sizes, table.step, self.steps
        if new.keys() <= self.sizes.keys():
            return replace(self, exchanges=self.exchanges + 1)
        index = len(steps) if step is None else bisect_left(steps, step)
        if step is not None and steps[index : index + 1] != [step]:
            steps = [*steps[:index], step, *steps[index:]]
        sizes, last = self.sizes | new, list(islice(reversed(self.sizes), 1))
        if len(new) > 1 or any(
            rank(last_variable) > rank(variable) for last_variable in last for variable in new
        ):
            sizes = _sort_sizes(sizes)
        return _QueryScope(sizes, self.names | {name for name, _ in new}, steps, self.exchanges + 1)


def check_step_count(domain: Attributes, exchanges: Iterable[Exchange]) -> None:
    """Refuse, before any computation, exchanges about too many steps of an attribute."""
    steps_by_name: dict[str, list[int]] = {}
    for exchange in exchanges:
        for name, step in exchange.query.on(domain).variables:
            change = domain[name].change
            if step is not None and change is not None and change.limited:
                steps_by_name.setdefault(name, []).append(step)
    for name, steps in steps_by_name.items():
        _check_followed(len(steps), len(set(steps)), StepState(domain, (name,)))


def _check_followed(exchanges: int, steps: int, state: StepState) -> None:
    combinations = math.prod(state.shape)
    if exchanges * steps * (combinations + _STEP_OVERHEAD) > MOST_FOLLOWED:
        most = MOST_FOLLOWED // (combinations + _STEP_OVERHEAD)
        raise InvalidInput(
            f"got {exchanges:,} exchanges about {steps:,} steps of {format_list(state.names)}, "
            f"with {combinations:,} combinations each; expected at most {most:,} exchanges times "
            "steps"
        )


def _sort_sizes(sizes: dict[Variable, int]) -> dict[Variable, int]:
    return {variable: sizes[variable] for variable in sorted(sizes, key=rank)}


@dataclass(frozen=True, eq=False)
class TemporalComponent(Component):
    """Tables about the steps of some attributes, and about attributes tied to these."""

    follows_steps: ClassVar[bool] = True
    domain: Attributes
    cache: _StepCache = field(default_factory=_StepCache, repr=False)
    #: The scope, if it is known from the exchange before.
    scope: _QueryScope | None = field(default=None, repr=False)

    def with_table(self, table: ResponseTable) -> TemporalComponent:
        tables, scope = self.tables_with(table), self._scope.with_table(table)
        unchanged_names = {*self._tying_names(table.variables)} <= {*self._names}
        cache = self.cache.without(table.step) if unchanged_names else _StepCache()
        return TemporalComponent(tables, self.domain, cache, scope)

    @cached_property
    def _scope(self) -> _QueryScope:
        return self.scope or _QueryScope.of(self.tables)

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        return self._scope.sizes

    @property
    def _steps(self) -> list[int]:
        return self._scope.steps

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 4 * len(self._steps) + 2 * len(self.sizes))

    @property
    def _names(self) -> tuple[str, ...]:
        return self._tying_names([(name, None) for name in self._scope.names])

    def _tying_names(self, variables: Iterable[Variable]) -> tuple[str, ...]:
        """Return the attributes that tie steps together: constant, or with limited changes."""
        changes = {name: self.domain[name].change for name, _ in variables}
        return tuple(sorted(n for n, change in changes.items() if not change or change.limited))

    def check(self) -> None:
        state = StepState(self.domain, self._names)
        state.check()
        _check_followed(self._scope.exchanges, len(self._steps), state)
        for step in self._steps:
            if step not in self.cache.at:
                self._at(state, step)

    @property
    def comparison_work(self) -> int:
        return _COMPARISON_PER_STEP * len(self._steps)

    def marginals(self, variables: tuple[Variable, ...], sizes: tuple[int, ...]) -> Marginals:
        names = self._tying_names([*self.sizes, *variables])
        component = self if names == self._names else TemporalComponent(self.tables, self.domain)
        return component._marginals(StepState(self.domain, names), variables)

    def _marginals(self, state: StepState, variables: tuple[Variable, ...]) -> Marginals:
        state.check()
        if variables:
            # One more exchange would be refused when it is recorded, so refuse it now.
            steps = {*self._steps, *(step for _, step in variables if step is not None)}
            _check_followed(self._scope.exchanges + 1, len(steps), state)
        # For a query without a step, any step will do.
        here = next((step for _, step in variables if step is not None), None)
        here = self._steps[-1] if here is None else here
        index = bisect_left(self._steps, here)
        earlier, later = self._steps[:index], self._steps[index:][::-1]
        before = self._sweep_over(self.cache.before, earlier, state)
        later = later[:-1] if later[-1:] == [here] else later
        after = self._sweep_over(self.cache.after, later, state)
        around = TwoSidedSweep(before, after, state, here, self.error)
        # Tables without a step are added here only.
        tables = [table for table in self.tables if table.step in (None, here)]
        return self._eliminate(tables, state.front(here), around.best, around, variables)

    def _sweep_over(
        self, cache: dict[int, Sweep], steps: list[int], state: StepState
    ) -> Sweep | None:
        """Return the sweep over some steps, continued from the last cached one."""
        start = len(steps)
        while start and steps[start - 1] not in cache:
            start -= 1
        sweep = cache[steps[start - 1]] if start else None
        for step in steps[start:]:
            sweep = cache[step] = Sweep.onto(sweep, self._at(state, step), state)
        return sweep

    def _at(self, state: StepState, step: int) -> StepTable:
        """Return the table of a step over its values."""
        if step not in self.cache.at:
            self.cache.at[step] = self._compute_table(state, step)
        return self.cache.at[step]

    def _compute_table(self, state: StepState, step: int) -> StepTable:
        tables, front = self._by_step[step], state.front(step)
        if len(tables) == 1 and tables[0].sorted == front:
            return StepTable(step, tables[0].signed, tables[0].exact)
        marginals = self._eliminate(tables, front, np.zeros((2, *state.values)), None, front)
        extremes = _ExactStepExtremes(marginals, front, state.values)
        return StepTable(step, marginals.sums.sums[-1], extremes)

    @cached_property
    def _by_step(self) -> dict[int | None, list[ResponseTable]]:
        tables_by_step: dict[int | None, list[ResponseTable]] = {}
        for table in self.tables:
            tables_by_step.setdefault(table.step, []).append(table)
        return tables_by_step

    def _eliminate(
        self,
        tables: Sequence[ResponseTable],
        front: tuple[Variable, ...],
        sums: Floats,
        exact: ExactTable | None,
        target: tuple[Variable, ...],
    ) -> Marginals:
        """Return marginals over a target, from the tables and the sums at one step."""
        ordered = tuple(sorted(target, key=rank))
        variables = {*front, *target, *(v for table in tables for v in table.variables)}
        sizes = {v: len(self.domain[v[0]].values) for v in sorted(variables, key=rank)}
        flat = np.zeros((2, *(sizes[variable] for variable in ordered)))
        # All steps are alike, so the plan leaves them out.
        scopes = [*(table.sorted for table in tables), front, ordered]
        planned = plan_elimination(
            tuple((_without_steps([v])[0], size) for v, size in sizes.items()),
            tuple(_without_steps(scope) for scope in scopes),
            _without_steps(ordered),
        )
        result = eliminate(planned, [*(table.signed for table in tables), sums, flat])
        exact_tables = [table.exact for table in tables]
        return Marginals.of(result, [*exact_tables, exact, None], self.error, target)


@dataclass(frozen=True, slots=True)
class _ExactStepExtremes:
    """The exact extremes of the responses about a step."""

    marginals: Marginals
    front: tuple[Variable, ...]
    sizes: tuple[int, ...]

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        return self.marginals.powers(indices, sign)

    def trace(self, index: int, sign: int) -> Combination:
        values = map(int, np.unravel_index(index, self.sizes))
        return dict(zip(self.front, values, strict=True)) | self.marginals.trace(index, sign)


def _without_steps(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple((name, None) for name, _ in variables)
