"""ℓ of many subjects over records: a table for each part that was asked about, as arrays.

What a query sees of a record is eliminated from the tables that are tied to it, for a block of
subjects at a time. A table is zero for subjects who were not asked about it, which changes no sum.
The differences of all other parts add up, so one number for each subject stands for them. Proofs:
docs/theory/attributes.md, docs/theory/audits.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Attributes, Variable
from expost.errors import InvalidInput
from expost.filters import Filter, Level, SimplifiedFilter
from expost.filters._many_accounts import Accounts, BudgetComparison, Case, LossBounds
from expost.loss import Odometer
from expost.loss._components import link
from expost.loss._elimination import eliminate, plan_elimination, rank
from expost.loss._sweeps import StepState as Swept
from expost.numbers import Nats, blocks
from expost.panel._compiled_query import CompiledFiniteQuery, QueryRegistry, as_finite
from expost.panel._finite_state import FiniteAccounts, FiniteState
from expost.panel._log import Counted
from expost.panel._selection import Selection
from expost.panel._twin_spreads import MOST_PAIRS, TwinSpreads
from expost.panel._unit_spreads import UnitSpreads
from expost.queries import Query

__all__ = ["AttributesState"]


#: The variables that a query depends on, in the order of axes.
Scope = tuple[Variable, ...]

_BLOCK = 1 << 15


class AttributesState(FiniteState):
    """ℓ over records, by the parts that were asked about."""

    domain: Attributes
    roundings = 4  # what a part adds to the whole is taken out and put in again

    def __init__(self, domain: Attributes, registry: QueryRegistry, count: int) -> None:
        super().__init__(domain, registry, count)
        self._tables: dict[Scope, Floats] = {}
        self._scopes: dict[int, _QueryScope] = {}
        changes = [kind.change for kind in domain.kinds]
        # Where changes are limited by distance it matters which steps a subject was asked about.
        self._by_scope_set = any(
            change is not None and change.max_step is not None for change in changes
        )
        self._scope_set_of = np.zeros(count, dtype=np.int32)
        self._scope_sets: list[frozenset[Scope]] = [frozenset()]
        self._scope_set_indices: dict[frozenset[Scope], int] = {frozenset(): 0}
        #: The spreads within the units of levels, as far as filters have needed them.
        self._unit_spreads: dict[Level, UnitSpreads | TwinSpreads | None] = {}
        # All at the start, so that who else is here makes no difference, not in the last digit.
        for index in range(len(registry)):
            self._open_table(self._scope_of(as_finite(registry[index])))

    def accounts(self, selection: Selection) -> Accounts:
        return AttributesAccounts(self, selection)

    def _scope_of(self, compiled: CompiledFiniteQuery) -> _QueryScope:
        if compiled.index not in self._scopes:
            likelihood = compiled.query.on(self.domain)
            self._scopes[compiled.index] = _QueryScope(self.domain, likelihood.variables)
        return self._scopes[compiled.index]

    def scope_of(self, compiled: CompiledFiniteQuery) -> Scope:
        """Return the variables that a query depends on, in the order of axes."""
        return self._scope_of(compiled).scope

    def _open_table(self, query_scope: _QueryScope) -> None:
        """Have a table for what a query is about."""
        if query_scope.scope not in self._tables:
            self._check(query_scope)
            self._tables[query_scope.scope] = np.zeros((query_scope.size, self.count))

    def _check(self, query_scope: _QueryScope) -> None:
        """Group subjects by what they were asked if all queries tie too much together."""
        if self._by_scope_set:
            return
        try:
            self._tied_scopes(query_scope).check()
        except InvalidInput:
            self._by_scope_set = True
            self._record_scopes()

    def _record_scopes(self) -> None:
        for compiled, indices, _ in self.log.single_responses:
            query_scope = self._scope_of(as_finite(compiled))
            self._record_scope(query_scope.scope, Selection(self.count, indices))

    def _add(self, compiled: CompiledFiniteQuery, codes: Indices, selection: Selection) -> None:
        query_scope = self._prepare_scope(compiled, selection)
        change = -self._spread_before(query_scope, selection)
        self._record_scope(query_scope.scope, selection)
        self._add_to_table(compiled, codes, selection)
        for rows, highs, lows in self._marginal_extremes(query_scope, selection):
            change[rows] += highs.max(axis=0) - lows.min(axis=0)
        spread = self.spread
        spread[selection.subscript] = np.maximum(spread[selection.subscript] + change, 0.0)
        for level, spreads in self._unit_spreads.items():
            if isinstance(spreads, TwinSpreads) and compiled.impossible[codes].any():
                self._unit_spreads[level] = None  # differences of infinities are undefined
            elif isinstance(spreads, TwinSpreads):
                spreads.refresh(query_scope.scope, selection)
            elif spreads is not None and spreads.units(query_scope.scope) is None:
                self._unit_spreads[level] = self._twin_spreads(level)
            elif spreads is not None:
                spreads.add(query_scope.scope, change, selection)

    def _add_counted(self, counted: Counted) -> None:
        queries = [as_finite(compiled) for compiled in counted.compiled_queries]
        by_scope: dict[Scope, list[int]] = {}
        for response, compiled in enumerate(queries):
            query_scope = self._scope_of(compiled)
            self._open_table(query_scope)
            by_scope.setdefault(query_scope.scope, []).append(response)
        if self._by_scope_set:
            self._record_scopes()
        for scopes, _ in self._by_scopes(Selection(self.count)):
            for scope in scopes or ():
                self._tied_scopes(_QueryScope(self.domain, scope), scopes).check()
        for scope, responses in by_scope.items():
            logs = np.zeros((len(queries), len(self._tables[scope])))
            occurs = np.zeros(len(queries), dtype=np.bool_)
            occurs[responses] = True
            for response in responses:
                compiled, code = queries[response], counted.codes[response]
                logs[response] = compiled.logs[self._scope_of(compiled).written, code]
            self._tables[scope] += counted.subset(occurs).sums(logs)

    def _prepare_scope(self, compiled: CompiledFiniteQuery, selection: Selection) -> _QueryScope:
        """Have a table for a query, unless it ties too much together for one of the subjects."""
        query_scope = self._scope_of(compiled)
        self._open_table(query_scope)
        if self._by_scope_set:
            for scopes, _ in self._by_scopes(selection):
                self._tied_scopes(query_scope, scopes).check()
        return query_scope

    def _add_to_table(
        self, compiled: CompiledFiniteQuery, codes: Indices, selection: Selection
    ) -> None:
        query_scope = self._scope_of(compiled)
        table, logs = self._tables[query_scope.scope], compiled.logs[query_scope.written]
        for rows, index in selection.blocks(max(1, _BLOCK // query_scope.size)):
            table[:, index] += logs[:, codes[rows]]

    def _measured(self) -> Floats:
        all_subjects, spread = Selection(self.count), np.zeros(self.count)
        for scopes, rows in self._by_scopes(all_subjects):
            remaining = list(self._tables if scopes is None else scopes)
            self._add_spreads(remaining, scopes, rows, all_subjects, spread)
        return spread

    def _add_spreads(
        self,
        remaining: list[Scope],
        scopes: frozenset[Scope] | None,
        rows: Indices,
        selection: Selection,
        spread: Floats,
    ) -> None:
        """Add max - min over each component of some scopes."""
        while remaining:
            tied_scopes = self._tied_scopes(_QueryScope(self.domain, remaining[0]), scopes)
            remaining = [scope for scope in remaining if scope not in tied_scopes.scopes]
            for block, highs, lows in self._blocks(tied_scopes, rows, selection):
                spread[block] += highs.max(axis=0) - lows.min(axis=0)

    def worst(self, compiled: CompiledFiniteQuery, selection: Selection) -> Floats:
        if compiled.infinite:
            return np.full(len(selection), np.inf)
        tied, before = self._worst_of_tied(compiled, selection)
        return tied + np.maximum(self.spread[selection.subscript] - before, 0.0)

    def _worst_of_tied(
        self, compiled: CompiledFiniteQuery, selection: Selection
    ) -> tuple[Floats, Floats]:
        """Return the worst case over all that a query is tied to, and its spread now."""
        query_scope = self._scope_of(compiled)
        self._check(query_scope)
        worst, inside = np.empty((2, len(selection)))
        for rows, highs, lows in self._marginal_extremes(query_scope, selection):
            inside[rows] = highs.max(axis=0) - lows.min(axis=0)
            worst[rows] = compiled.differences.worst(highs, lows, inside[rows])
        if self._by_scope_set:
            return worst, self._spread_before(query_scope, selection)
        return worst, inside

    def _twin_spreads(self, level: Level) -> TwinSpreads | None:
        """Return the differences within units that queries tie; None if they tie too much."""
        limited = any(kind.change is not None and kind.change.limited for kind in self.domain.kinds)
        if limited or self.impossible.any():
            return None
        try:
            return TwinSpreads(self.domain, level, self.count, self._tables)
        except InvalidInput:
            return None

    def unit_spreads(self, level: Level) -> UnitSpreads | TwinSpreads | None:
        """Return the spreads within the units of a level; None if they are not in arrays."""
        if level not in self._unit_spreads:
            self._unit_spreads[level] = self._measure_units(level)
        return self._unit_spreads[level]

    def tie_units(self, level: Level) -> TwinSpreads | None:
        """Return the differences within the units of a level from now on, which queries tie."""
        spreads = self._unit_spreads.get(level)
        if not isinstance(spreads, TwinSpreads):
            spreads = self._twin_spreads(level)
            self._unit_spreads[level] = spreads
        return spreads

    def _measure_units(self, level: Level) -> UnitSpreads | TwinSpreads | None:
        spreads, selection = UnitSpreads(self.domain, level, self.count), Selection(self.count)
        if self._by_scope_set or any(spreads.units(scope) is None for scope in self._tables):
            return self._twin_spreads(level)
        for scope in self._tables:
            spread = np.zeros(self.count)
            first = self._tied_scopes(_QueryScope(self.domain, scope)).scopes[:1] == (scope,)
            if first:
                self._add_spreads([scope], None, np.arange(self.count), selection, spread)
            spreads.set(scope, spread)
        return spreads

    def worst_at_level(
        self, spreads: UnitSpreads, compiled: CompiledFiniteQuery, selection: Selection
    ) -> Floats:
        """Compute max ℓ(x) - ℓ(x') + D(x, x') over the pairs that a level protects, in doubles."""
        tied, before = self._worst_of_tied(compiled, selection)
        scope = self._scope_of(compiled).scope
        return spreads.worst(
            scope, selection, lambda spread: tied + np.maximum(spread - before, 0.0)
        )

    def _spread_before(self, query_scope: _QueryScope, selection: Selection) -> Floats:
        """Compute max - min over all that a query is tied to, before it is asked."""
        result = np.zeros(len(selection))
        if not self._by_scope_set:
            for rows, highs, lows in self._marginal_extremes(query_scope, selection):
                result[rows] = highs.max(axis=0) - lows.min(axis=0)
            return result
        # A step that is asked about for the first time can make a difference by itself.
        for scopes, row_indices in self._by_scopes(selection):
            tied_scopes = list(self._tied_scopes(query_scope, scopes).scopes)
            self._add_spreads(tied_scopes, scopes, row_indices, selection, result)
        return result

    def _marginal_extremes(
        self, query_scope: _QueryScope, selection: Selection
    ) -> Iterator[tuple[Indices, Floats, Floats]]:
        """Compute the largest and smallest ℓ as a query sees it, for some subjects at a time."""
        for scopes, row_indices in self._by_scopes(selection):
            yield from self._blocks(self._tied_scopes(query_scope, scopes), row_indices, selection)

    def _blocks(
        self, tied_scopes: _TiedScopes, row_indices: Indices, selection: Selection
    ) -> Iterator[tuple[Indices, Floats, Floats]]:
        size = max(1, _BLOCK // tied_scopes.width)
        for block in blocks(len(row_indices), size):
            rows, listed = row_indices[block], len(row_indices) < selection.total
            indices = selection.indices_of(rows) if listed else block
            tables = [self._tables[scope][:, indices] for scope in tied_scopes.scopes]
            yield (rows, *tied_scopes.extremes(tables))

    def _tied_scopes(
        self, query_scope: _QueryScope, scope_set: frozenset[Scope] | None = None
    ) -> _TiedScopes:
        """Return the scopes tied to that of a query, directly or through others."""
        open_scopes = [scope for scope in self._tables if scope_set is None or scope in scope_set]
        links = {link(self.domain, variable) for variable in query_scope.scope}
        tied_scopes: list[Scope] = []
        while True:
            further = [
                scope
                for scope in open_scopes
                if scope not in tied_scopes
                and links & {link(self.domain, variable) for variable in scope}
            ]
            if not further:
                break
            tied_scopes += further
            links |= {link(self.domain, variable) for scope in further for variable in scope}
        ordered = sorted(tied_scopes, key=lambda scope: [*map(rank, scope)])
        return _TiedScopes(self.domain, tuple(ordered), query_scope)

    def _by_scopes(self, selection: Selection) -> Iterator[tuple[frozenset[Scope] | None, Indices]]:
        """Group subjects by the scopes they were asked about, if that matters."""
        if not self._by_scope_set:
            yield None, np.arange(len(selection))
            return
        set_indices = self._scope_set_of[selection.subscript]
        for index in np.unique(set_indices).tolist():
            yield self._scope_sets[index], np.flatnonzero(set_indices == index)

    def _record_scope(self, scope: Scope, selection: Selection) -> None:
        if not self._by_scope_set:
            return
        set_indices = self._scope_set_of[selection.subscript]
        after = set_indices.copy()
        for index in np.unique(set_indices).tolist():
            scopes = self._scope_sets[index] | {scope}
            if scopes not in self._scope_set_indices:
                self._scope_set_indices[scopes] = len(self._scope_sets)
                self._scope_sets.append(scopes)
            after[set_indices == index] = self._scope_set_indices[scopes]
        self._scope_set_of[selection.subscript] = after


@dataclass(frozen=True, eq=False)
class AttributesAccounts(FiniteAccounts):
    """The accounts of some subjects with records."""

    state: AttributesState

    def at_level(self, filter_: Filter, query: Query | None) -> LossBounds:
        level, case = filter_.level, _case_of(filter_, query)
        if not filter_.by_loss:
            return self.by_queries((filter_, query), case)
        spreads = self.state.unit_spreads(level)
        compiled = None if query is None else self._compile(query)
        if compiled is not None and compiled.infinite:
            infinite = np.full(len(self), np.inf)
            return LossBounds(infinite, infinite, self._settled_at_level(case))
        if (
            compiled is not None
            and isinstance(spreads, UnitSpreads)
            and spreads.units(self.state.scope_of(compiled)) is None
        ):
            spreads = self.state.tie_units(level)
        if spreads is None or self.state.impossible.any() or not self._is_small(compiled):
            return self.one_by_one(case)
        # Sums over a window round once more for every response.
        slack = 2 * self.state.slack(self.selection, 0.0 if compiled is None else compiled.size)
        amounts = self._amounts(spreads, type(filter_) is SimplifiedFilter, compiled)
        lower, upper = self.state.around(amounts, slack, self.selection)
        return LossBounds(lower, upper, self._settled_at_level(case))

    @staticmethod
    def _is_small(compiled: CompiledFiniteQuery | None) -> bool:
        """Return whether a query has few enough pairs of values for a table of D."""
        return compiled is None or len(compiled.likelihood.domain) ** 2 <= MOST_PAIRS

    def _amounts(
        self,
        spreads: UnitSpreads | TwinSpreads,
        plus_epsilon: bool,
        compiled: CompiledFiniteQuery | None,
    ) -> Floats:
        if compiled is None:
            return spreads.losses(self.selection)
        if isinstance(spreads, TwinSpreads):
            likelihood = compiled.query.on(self.state.domain)
            after = spreads.plus_epsilon if plus_epsilon else spreads.worst
            return after(likelihood, compiled.differences.doubles(), self.selection)
        if not plus_epsilon:
            return self.state.worst_at_level(spreads, compiled, self.selection)
        epsilon = compiled.likelihood.epsilon.enclosure.upper
        scope = self.state.scope_of(compiled)
        return spreads.worst(scope, self.selection, lambda spread: spread + epsilon)

    def _settled_at_level(self, case: Case) -> Callable[[Indices, Nats], BudgetComparison]:
        """Compare in rationals, once for every tally."""

        def settle(rows: Indices, budget: Nats) -> BudgetComparison:
            state = self.state
            indices, index_of = state.distinct_by_tally(self.selection.indices_of(rows))
            within: dict[bytes, bool] = {}
            keys = [state.tally(int(index)) for index in indices]
            for key in set(keys):
                within[key] = case(Odometer(state.registry.transcript(key))).within(budget)
            return BudgetComparison.decided(np.array([within[key] for key in keys])[index_of])

        return settle


def _case_of(filter_: Filter, query: Query | None) -> Case:
    return filter_.current_case if query is None else partial(filter_.worst_case, query=query)


def _step_of(scope: Scope) -> int | None:
    """Return the step that a scope is about, if any of its attributes changes."""
    return next((step for _, step in scope if step is not None), None)


class _QueryScope:
    """The scope of a query, and the order in which the query names its variables."""

    def __init__(self, domain: Attributes, variables: Scope) -> None:
        self.scope = tuple(sorted(variables, key=rank))
        sizes = [len(domain[name].values) for name, _ in variables]
        axes = [variables.index(variable) for variable in self.scope]
        self.size = math.prod(sizes)
        self.sizes = tuple(sizes[axis] for axis in axes)
        self.step = _step_of(self.scope)
        #: For each cell of the table, its index in the order of the query.
        self.written = np.arange(self.size).reshape(sizes).transpose(axes).ravel()
        self.sorted = np.argsort(self.written)


@dataclass(frozen=True, eq=False)
class _TiedScopes:
    """Scopes that are tied together, and the one that a query is about."""

    domain: Attributes
    scopes: tuple[Scope, ...]
    scope_set: _QueryScope

    def check(self) -> None:
        """Refuse what ties too much together."""
        self.extremes([np.zeros((math.prod(self._sizes(scope)), 1)) for scope in self.scopes])

    @cached_property
    def width(self) -> int:
        """About how many doubles are looked at together, of one subject."""
        if self.alone:
            return self.scope_set.size
        rows = max(math.prod(self._sizes(scope)) for scope in (*self.scopes, self.scope_set.scope))
        return 4 * max(rows, math.prod(self._state.shape) if self._follows else rows)

    @property
    def alone(self) -> bool:
        """Whether no other scope is tied to that of the query."""
        return set(self.scopes) <= {self.scope_set.scope}

    @cached_property
    def _follows(self) -> bool:
        variables = {
            variable for scope in (*self.scopes, self.scope_set.scope) for variable in scope
        }
        return any(link(self.domain, variable) != variable for variable in variables)

    def _sizes(self, scope: Scope) -> tuple[int, ...]:
        return tuple(len(self.domain[name].values) for name, _ in scope)

    def extremes(self, tables: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Compute the largest and smallest sums for what the query sees, a column per subject."""
        if self.alone:
            (table,) = tables or [np.zeros((self.scope_set.size, 1))]
            seen = table[self.scope_set.sorted]
            return seen, seen
        both_signs = [np.concatenate([table, -table], axis=1).T for table in tables]
        if self._follows:
            sums = self._sweep_steps(both_signs)
        else:
            sums = _sums(self.domain, self.scopes, both_signs, self.scope_set.scope)
        highs, lows = np.split(sums.reshape(len(sums), -1).T[self.scope_set.sorted], 2, axis=1)
        return highs, -lows

    @cached_property
    def _state(self) -> Swept:
        names = {name for scope in (*self.scopes, self.scope_set.scope) for name, _ in scope}
        changes = {name: self.domain[name].change for name in names}
        tying = (name for name, change in changes.items() if not change or change.limited)
        state = Swept(self.domain, tuple(sorted(tying)))
        state.check()
        return state

    def _sweep_steps(self, tables: Sequence[Floats]) -> Floats:
        """Maximize sums where steps constrain each other: from both sides up to the step."""
        steps = sorted({step for step in map(_step_of, self.scopes) if step is not None})
        step_here = self.scope_set.step
        if step_here is None:
            step_here = steps[-1] if steps else 1
        before = self._side([step for step in steps if step < step_here], step_here, tables)
        after = self._side([step for step in steps if step > step_here][::-1], step_here, tables)
        state = self._state
        counters = tuple(range(1 + len(state.values), 1 + len(state.shape)))
        both_signs = before + np.flip(after, counters)
        best = both_signs.reshape(len(both_signs), *state.values, -1).max(axis=-1)
        front = state.front(step_here)
        rows = [
            index for index, scope in enumerate(self.scopes) if _step_of(scope) in (None, step_here)
        ]
        return _sums(
            self.domain,
            [*(_plain(self.scopes[index]) for index in rows), _plain(front)],
            [*(tables[index] for index in rows), best],
            _plain(self.scope_set.scope),
        )

    def _side(self, steps: Sequence[int], step_here: int, tables: Sequence[Floats]) -> Floats:
        """Sum the steps on one side, the farthest first, up to this step."""
        state, last = self._state, None
        sums = np.zeros((1, *state.shape))
        for step in [*steps, step_here]:
            if last is not None:
                for move in state.moves(abs(step - last)):
                    sums = move.apply(sums)
            if step == step_here:
                break
            rows = [index for index, scope in enumerate(self.scopes) if _step_of(scope) == step]
            table_at = _sums(
                self.domain,
                [_plain(self.scopes[index]) for index in rows],
                [tables[index] for index in rows],
                _plain(state.front(step)),
            )
            sums = sums + table_at.reshape(-1, *state.values, *(1 for _ in state.counters))
            last = step
        return sums


def _sums(
    domain: Attributes, scopes: Sequence[Scope], tables: Sequence[Floats], target: Scope
) -> Floats:
    """Compute the largest sums of tables for every combination of a target."""
    variables = sorted({*target, *(variable for scope in scopes for variable in scope)}, key=rank)
    sizes = tuple((variable, len(domain[variable[0]].values)) for variable in variables)
    flat = np.zeros((1, math.prod(len(domain[name].values) for name, _ in target)))
    return eliminate(plan_elimination(sizes, (*scopes, target), target), [*tables, flat]).sums[-1]


def _plain(scope: Sequence[Variable]) -> Scope:
    """Return a scope without steps: plans leave them out, because all steps are alike."""
    return tuple((name, None) for name, _ in scope)
