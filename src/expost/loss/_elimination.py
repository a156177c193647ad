"""The largest and the smallest sum of tables over all combinations, variable by variable.

ℓ of a record is a sum of tables, each of which depends on a few variables. A variable is eliminated
by adding up all tables that depend on it and keeping, for every combination of the others in them,
the largest sum: one more table. The remaining table depends only on the variables that a query is
about. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
from expost._grouping import group_pairs
from expost._types import Floats, Indices
from expost.domains import Variable
from expost.errors import InvalidInput
from expost.loss._exponents import Combination, DistinctLikelihoods, ExactTable, Integers, Packing

__all__ = [
    "MOST_TIED",
    "EliminationPlan",
    "EliminationStep",
    "EliminationSums",
    "ExactElimination",
    "eliminate",
    "plan_elimination",
    "rank",
]


def rank(variable: Variable) -> tuple[str, float]:
    """Return the sort key of variables: their names, then their steps."""
    name, step = variable
    return name, float("-inf") if step is None else step


#: The largest number of combinations in one sum.
MOST_TIED = 1 << 20


@dataclass(frozen=True, slots=True)
class Operand:
    """A table or an earlier result by its index, and its shape among the axes of a sum."""

    index: int
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    #: The axes of the sum that the operand lacks, after one for signs.
    reduced_axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EliminationStep:
    """A sum of operands that is maximized along one axis; the last step has no axis."""

    operands: tuple[Operand, ...]
    sizes: tuple[int, ...]
    axis: int | None
    #: The shape of the result among the axes of the sum.
    result_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EliminationPlan:
    """The order of sums; the last one has the axes of the target."""

    steps: tuple[EliminationStep, ...]
    tables: int


@dataclass(frozen=True, slots=True)
class EliminationSums:
    """The sums of an elimination, and their maxima along one axis, step by step.

    The first axis has two entries: for the sum of the tables and for its negative.
    """

    plan: EliminationPlan
    sums: list[Floats]
    results: list[Floats]

    @property
    def highs(self) -> Floats:
        """The largest sum for every combination of the target."""
        return np.ravel(self.sums[-1][0])

    @property
    def lows(self) -> Floats:
        """The smallest sum for every combination of the target."""
        return -np.ravel(self.sums[-1][1])


def eliminate(plan: EliminationPlan, tables: Sequence[Floats]) -> EliminationSums:
    """Follow a plan. A table has the axes of its variables in order, after one for signs.

    For many subjects, the first axis has the signs of each subject, one subject after the other.
    """
    operands, sums = list(tables), []
    for step in plan.steps:
        first, *operands_after = step.operands
        total = operands[first.index].reshape(-1, *first.shape)
        for operand in operands_after:
            total = total + operands[operand.index].reshape(-1, *operand.shape)
        sums.append(total)
        if step.axis is not None:
            operands.append(np.maximum.reduce(total, axis=step.axis + 1))
    return EliminationSums(plan, sums, operands[plan.tables :])


@lru_cache(maxsize=1 << 12)
def plan_elimination(
    sizes: tuple[tuple[Variable, int], ...],
    scopes: tuple[tuple[Variable, ...], ...],
    target: tuple[Variable, ...],
) -> EliminationPlan:
    """Plan how to eliminate all variables except those of the target.

    ``sizes`` has the number of values of each variable, in order, and ``scopes`` the variables of
    each table. The target is in the same order, and one of the scopes.
    """
    size, rank = dict(sizes), {variable: n for n, (variable, _) in enumerate(sizes)}
    waiting = {index: frozenset(scope) for index, scope in enumerate(scopes)}
    waiting_by_variable: dict[Variable, set[int]] = {variable: set() for variable in size}
    for index, scope in waiting.items():
        for variable in scope:
            waiting_by_variable[variable].add(index)
    steps: list[EliminationStep] = []

    def take(indices: Sequence[int], axes: Sequence[Variable], out: Variable | None) -> None:
        operands = []
        for index in indices:
            scope = waiting.pop(index)
            for variable in scope:
                waiting_by_variable[variable].discard(index)
            operand_axes = tuple(k for k, variable in enumerate(axes) if variable in scope)
            reduced_axes = tuple(k + 1 for k in range(len(axes)) if k not in operand_axes)
            shape = tuple(size[v] if v in scope else 1 for v in axes)
            operands.append(Operand(index, operand_axes, shape, reduced_axes))
        axis = None if out is None else axes.index(out)
        held = tuple(1 if v == out else size[v] for v in axes)
        steps.append(EliminationStep(tuple(operands), tuple(size[v] for v in axes), axis, held))

    for variable in _order(size, scopes, target):
        indices = sorted(waiting_by_variable[variable])
        together = frozenset[Variable]().union(*(waiting[index] for index in indices))
        take(indices, sorted(together, key=rank.__getitem__), variable)
        result = len(scopes) + len(steps) - 1
        waiting[result] = together - {variable}
        for tied_variable in waiting[result]:
            waiting_by_variable[tied_variable].add(result)
    take(list(waiting), target, None)
    return EliminationPlan(tuple(steps), len(scopes))


def _order(
    size: dict[Variable, int], scopes: Sequence[Sequence[Variable]], target: Sequence[Variable]
) -> list[Variable]:
    """Return an order in which no sum is over more than the tied variables.

    Whatever the target, the sums are over the same sets of variables. A maximum cardinality search
    of the graph in which they are cliques starts at the target. Its reverse is a perfect
    elimination order (Tarjan and Yannakakis 1984).
    """
    tied = _tied_variables(size, scopes)
    reached = dict.fromkeys(target)
    remaining = [variable for variable in size if variable not in reached]
    ties = _LeastFirst({v: -len(tied[v] & reached.keys()) for v in remaining})
    outwards: list[Variable] = []
    while ties.values:
        following, _ = ties.pop()
        outwards.append(following)
        for neighbor in tied[following]:
            if neighbor in ties.values:
                ties.put(neighbor, ties.values[neighbor] - 1)
    return outwards[::-1]


class _LeastFirst:
    """Variables by a number that changes; the one with the least comes first, in their order."""

    def __init__(self, values: dict[Variable, int]) -> None:
        self.values = values
        self._index = {variable: index for index, variable in enumerate(values)}
        # An entry counts as long as the number is the current one.
        self._entries = [(value, self._index[v], v) for v, value in values.items()]
        heapq.heapify(self._entries)

    def put(self, variable: Variable, value: int) -> None:
        """Change the number of a variable."""
        if self.values[variable] != value:
            self.values[variable] = value
            heapq.heappush(self._entries, (value, self._index[variable], variable))

    def pop(self) -> tuple[Variable, int]:
        """Remove the first variable, and return it with its number."""
        while True:
            value, _, variable = heapq.heappop(self._entries)
            if self.values.get(variable) == value:
                del self.values[variable]
                return variable, value


def _tied_variables(
    size: dict[Variable, int], scopes: Sequence[Sequence[Variable]]
) -> dict[Variable, set[Variable]]:
    """Return for each variable those that are ever in one sum with it.

    The next variable to eliminate is always the one with the fewest new ties (minimum fill-in).
    """
    near: dict[Variable, set[Variable]] = {variable: set() for variable in size}
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    for variable, neighbors in near.items():
        neighbors.discard(variable)
    tied = {variable: set(neighbors) for variable, neighbors in near.items()}
    new = _LeastFirst({variable: _count_missing(variable, near) for variable in size})
    while near:
        variable, missing = new.pop()
        neighbors = near.pop(variable)
        _check({variable, *neighbors}, math.prod(size[v] for v in (variable, *neighbors)))
        if not missing:
            # No ties are new, and a neighbor loses the pairs of this variable with others.
            for neighbor in neighbors:
                pairs = len(near[neighbor]) - len(neighbors)
                new.put(neighbor, new.values[neighbor] - 2 * pairs)
                near[neighbor].discard(variable)
            continue
        for neighbor in neighbors:
            near[neighbor].update(neighbors)
            near[neighbor] -= {neighbor, variable}
            tied[neighbor].update(neighbors)
            tied[neighbor].discard(neighbor)
        for changed in neighbors.union(*(near[neighbor] for neighbor in neighbors)):
            new.put(changed, _count_missing(changed, near))
    return tied


def _count_missing(variable: Variable, near: dict[Variable, set[Variable]]) -> int:
    """Count the pairs of neighbors that are not neighbors of each other (each pair twice)."""
    neighbors = near[variable]
    return sum(len(neighbors) - 1 - len(near[neighbor] & neighbors) for neighbor in neighbors)


def _check(tied: set[Variable], combinations: int) -> None:
    if combinations > MOST_TIED:
        names = sorted({name for name, _ in tied})
        raise InvalidInput(
            f"got queries that connect {format_list(names)}, with {combinations:,} combinations; "
            f"expected at most {MOST_TIED:,}"
        )


Marks = NDArray[np.bool_]

#: The signs of the two sides: the largest sums and the smallest.
SIGNS = (1, -1)


class ExactElimination:
    """Exact winners of an elimination that was done with doubles.

    Every sum of doubles is within ``error`` of the exact one. ``wanted`` marks combinations of the
    target, on either side. A table that is zero everywhere is None.
    """

    def __init__(
        self,
        sums: EliminationSums,
        tables: Sequence[ExactTable | None],
        error: float,
        wanted: Marks,
    ) -> None:
        self._sums = sums
        self._tables = tables
        self._near, used = _mark_candidates(sums, error, wanted)
        used_entries: list[_UsedEntries] = []
        for index, table in enumerate(tables):
            if table is not None:
                used_entries += _UsedEntries.of(index, table, used[index])
        self._least: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        widths: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        for entries in used_entries:
            self._least[entries.side].update(entries.least)
            widths[entries.side].update(entries.widths)
        self._packing = Packing(widths[0] | widths[1])
        codes: dict[int, Integers] = {}
        for entries in used_entries:
            if entries.widths:
                shape = self._packing.words, *used[entries.table_index].shape
                table_codes = codes.setdefault(entries.table_index, np.zeros(shape, dtype=np.int64))
                entries.write(self._packing, table_codes[:, entries.side])
        # For every step all codes, and those of its result; None where all are equal.
        self._added: list[Integers | None] = []
        self._won = self._follow_winners(codes)

    def best(self, side: int) -> tuple[int, Counter[int]]:
        """Return a winner among the wanted combinations of the target, and its likelihood."""
        near, codes = self._target
        if codes is None or self._top is None:
            return int(near[side].argmax()), self._least[side]
        top = self._top[:, side]
        tied = near[side] & (codes[:, side] == top[:, None]).all(axis=0)
        return int(tied.argmax()), self._powers(side, top)

    def powers(self, side: int) -> DistinctLikelihoods:
        """Return the exact likelihoods of winners for all wanted combinations of the target."""
        near, codes = self._target
        wanted = np.flatnonzero(near[side])
        if codes is None:
            return DistinctLikelihoods([self._least[side]], np.zeros(len(wanted), dtype=np.intp))
        different, code_index = np.unique(codes[:, side, wanted], axis=1, return_inverse=True)
        return DistinctLikelihoods(
            [self._powers(side, code) for code in different.T], code_index.reshape(-1)
        )

    def trace(self, side: int, target: int) -> Combination:
        """Return a winner for one combination of the target."""
        plan, combination = self._sums.plan, Combination()
        last = len(plan.steps) - 1
        at = {last: tuple(int(k) for k in np.unravel_index(target, plan.steps[last].sizes))}
        # From the last step to the first, find the sum that won.
        for step_index in reversed(range(len(plan.steps))):
            for operand in plan.steps[step_index].operands:
                indices = tuple(at[step_index][k] for k in operand.axes)
                before = operand.index - plan.tables
                if before >= 0:
                    at[before] = self._source(before, side, indices)
                elif (table := self._tables[operand.index]) is not None:
                    sizes = [plan.steps[step_index].sizes[k] for k in operand.axes]
                    flat_index = int(np.ravel_multi_index(indices, sizes)) if sizes else 0
                    combination |= table.trace(flat_index, SIGNS[side])
        return combination

    def _source(self, step_index: int, side: int, indices: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index of a sum that won at one step, for one entry of its result."""
        axis, codes = self._sums.plan.steps[step_index].axis, self._added[step_index]
        assert axis is not None, "only the last step has no result"
        near = np.moveaxis(self._near[step_index][side], axis, -1)[indices]
        won = self._won[step_index]
        if codes is not None and won is not None:
            codes = np.broadcast_to(codes, (len(codes), *self._near[step_index].shape))
            for code, best in zip(codes[:, side], won[:, side], strict=True):
                near = near & (np.moveaxis(code, axis, -1)[indices] == best[indices])
        return (*indices[:axis], int(near.argmax()), *indices[axis:])

    def _powers(self, side: int, code: Integers) -> Counter[int]:
        powers = self._packing.powers(code.tolist())
        powers.update(self._least[side])
        return powers

    @cached_property
    def _target(self) -> tuple[Marks, Integers | None]:
        """The wanted combinations of the target and all codes there, on one axis."""
        near, codes = self._near[-1], self._added[-1]
        if codes is not None:
            codes = np.broadcast_to(codes, (len(codes), *near.shape)).reshape(len(codes), 2, -1)
        return near.reshape(2, -1), codes

    @cached_property
    def _top(self) -> Integers | None:
        """The codes of the winners among the wanted combinations of the target."""
        near, codes = self._target
        return None if codes is None else self._find_winners(near, codes, 1)

    def _follow_winners(self, codes: dict[int, Integers]) -> list[Integers | None]:
        """Return the codes of exact winners at every step except the last, going forwards."""
        plan, won = self._sums.plan, list[Integers | None]()
        for step_index, step in enumerate(plan.steps):
            total = None
            for operand in step.operands:
                if (operand_codes := codes.get(operand.index)) is not None:
                    operand_codes = operand_codes.reshape(len(operand_codes), 2, *operand.shape)
                    total = operand_codes if total is None else total + operand_codes
            self._added.append(total)
            if step.axis is not None:
                best = None
                if total is not None:
                    best = self._find_winners(self._near[step_index], total, step.axis + 1)
                    codes[plan.tables + step_index] = best
                won.append(best)
        return won

    def _find_winners(self, near: Marks, codes: Integers, axis: int) -> Integers:
        """Return the codes of an exact winner along one axis, among sums near the maximum."""
        best = np.where(near, codes, -1).max(axis=axis + 1, keepdims=True)
        odd = (near & (codes != best)).any(axis=(0, axis + 1))
        best = best.squeeze(axis + 1)
        if odd.any():
            codes = np.broadcast_to(codes, (len(codes), *near.shape))
            codes, near = np.moveaxis(codes, axis + 1, -1)[:, odd], np.moveaxis(near, axis, -1)[odd]
            best[:, odd] = self._decide_exactly(near, codes, np.nonzero(odd)[0])
        return np.asarray(best)

    def _decide_exactly(self, near: Marks, codes: Integers, side: Indices) -> Integers:
        """Return the codes of winners, by exact comparison, where candidates differ.

        Each line along the last axis has one, and is for one of the sides.
        """
        different, code_index = np.unique(codes[:, near], axis=1, return_inverse=True)
        products = self._packing.products(different)
        product_numbers = np.full(near.shape, -1)
        product_numbers[near] = code_index.reshape(-1)
        won = [
            products.best(set(line) - {-1}, SIGNS[column])
            for line, column in zip(product_numbers.tolist(), side.tolist(), strict=True)
        ]
        return different[:, won]


def _mark_candidates(
    sums: EliminationSums, error: float, wanted: Marks
) -> tuple[list[Marks], dict[int, Marks]]:
    """Mark the sums that can win at every step, and the table entries in them, backwards."""
    plan, used = sums.plan, dict[int, Marks]()
    near: list[Marks] = []
    for index in reversed(range(len(plan.steps))):
        step = plan.steps[index]
        if step.axis is None:
            marks = wanted
        else:
            least = (sums.results[index] - 2 * error).reshape(2, *step.result_shape)
            marks = sums.sums[index] >= least
            marks &= used.pop(plan.tables + index).reshape(2, *step.result_shape)
        near.append(marks)
        for operand in step.operands:
            used[operand.index] = np.logical_or.reduce(marks, axis=operand.reduced_axes)
    return near[::-1], used


@dataclass(frozen=True, slots=True)
class _UsedEntries:
    """The exact likelihoods of a table where they can be part of a winner of one side."""

    table_index: int
    side: int
    indices: Indices
    kinds: DistinctLikelihoods
    #: The smallest exponents.
    least: Counter[int]
    #: The excess of the largest exponents; if empty, all likelihoods are equal.
    widths: dict[int, int]

    @classmethod
    def of(cls, table_index: int, table: ExactTable, used: Marks) -> Iterator[_UsedEntries]:
        """Yield the entries of either side."""
        for side, sign in enumerate(SIGNS):
            indices = used[side].reshape(-1).nonzero()[0]
            if len(indices):
                kinds = table.powers(indices, sign)
                yield cls(table_index, side, indices, kinds, *_least(kinds))

    def write(self, packing: Packing, codes: Integers) -> None:
        """Write the codes of the exponents above the smallest ones."""
        least = packing.code(self.least)
        code_rows = [
            [word - less for word, less in zip(packing.code(powers), least, strict=True)]
            for powers in self.kinds.likelihoods
        ]
        for word, all_codes in zip(np.array(code_rows, dtype=np.int64).T, codes, strict=True):
            all_codes.reshape(-1)[self.indices] = word[self.kinds.indices]


def _least(kinds: DistinctLikelihoods) -> tuple[Counter[int], dict[int, int]]:
    """Return the smallest exponents, and how much larger others are."""
    first, *larger = kinds.likelihoods
    if not larger:
        return first, {}
    exponents_by_base = group_pairs(pair for powers in kinds.likelihoods for pair in powers.items())
    least, widths = Counter[int](), dict[int, int]()
    for base, exponents in exponents_by_base.items():
        if len(exponents) < len(kinds.likelihoods):
            exponents.append(0)  # of likelihoods without this base
        least[base] = min(exponents)
        if max(exponents) > least[base]:
            widths[base] = max(exponents) - least[base]
    return least, widths
