"""The largest and the smallest sum of tables over all combinations, variable by variable.

ℓ of a record is a sum of tables, each of which depends on a few variables. A variable is eliminated
by adding up all tables that depend on it and keeping, for every combination of the others in them,
the largest sum: one more table. What is left at the end depends only on the variables that a query
is about. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
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
    """The order of variables, which is that of their names and then of their steps."""
    name, step = variable
    return name, float("-inf") if step is None else step


MOST_TIED = 1 << 20
"""Combinations of attributes that are looked at together."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A table or an earlier result by its number, and its shape among the axes of a sum."""

    number: int
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    others: tuple[int, ...]
    """All other axes, after one for signs."""


@dataclass(frozen=True, slots=True)
class EliminationStep:
    """Add up some operands, and keep the largest sums along one axis (at the end: all of them)."""

    operands: tuple[Operand, ...]
    sizes: tuple[int, ...]
    axis: int | None
    held: tuple[int, ...]
    """The shape of the result among the axes of the sum."""


@dataclass(frozen=True, slots=True)
class EliminationPlan:
    """Which sums to take, one after the other; the last one has the axes of the target."""

    steps: tuple[EliminationStep, ...]
    tables: int


@dataclass(frozen=True, slots=True)
class EliminationSums:
    """What an elimination did: all sums, and their largest along one axis, step by step.

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
    """Follow a plan. A table has the axes of its variables in their order, after one for signs.

    That first axis may also be for the signs of many subjects, one after the other.
    """
    operands, sums = list(tables), []
    for step in plan.steps:
        first, *others = step.operands
        total = operands[first.number].reshape(-1, *first.shape)
        for other in others:
            total = total + operands[other.number].reshape(-1, *other.shape)
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
    """How to eliminate all variables but those of the target.

    ``sizes`` lists the variables in their order, ``scopes`` what each table depends on; the target
    is in that order, too, and one of the scopes.
    """
    size, rank = dict(sizes), {variable: n for n, (variable, _) in enumerate(sizes)}
    waiting = {number: frozenset(scope) for number, scope in enumerate(scopes)}
    steps: list[EliminationStep] = []

    def take(numbers: Sequence[int], axes: Sequence[Variable], out: Variable | None) -> None:
        operands = []
        for number in numbers:
            scope = waiting.pop(number)
            places = tuple(k for k, variable in enumerate(axes) if variable in scope)
            others = tuple(k + 1 for k in range(len(axes)) if k not in places)
            shape = tuple(size[v] if v in scope else 1 for v in axes)
            operands.append(Operand(number, places, shape, others))
        axis = None if out is None else axes.index(out)
        held = tuple(1 if v == out else size[v] for v in axes)
        steps.append(EliminationStep(tuple(operands), tuple(size[v] for v in axes), axis, held))

    for variable in _order(size, scopes, target):
        numbers = [number for number, scope in waiting.items() if variable in scope]
        together = frozenset[Variable]().union(*(waiting[number] for number in numbers))
        take(numbers, sorted(together, key=rank.__getitem__), variable)
        waiting[len(scopes) + len(steps) - 1] = together - {variable}
    take(list(waiting), target, None)
    return EliminationPlan(tuple(steps), len(scopes))


def _order(
    size: dict[Variable, int], scopes: Sequence[Sequence[Variable]], target: Sequence[Variable]
) -> list[Variable]:
    """In which order to eliminate, so that no sum is over more than the tied variables.

    Whatever the target, the sums are over the same sets of variables. These are found without it,
    and then the graph in which they are cliques is searched from the target outwards: backwards,
    that is a perfect elimination order (Tarjan and Yannakakis 1984).
    """
    tied = _tied(size, scopes)
    reached = dict.fromkeys(target)
    seen = {variable: len(tied[variable] & reached.keys()) for variable in size}
    outwards: list[Variable] = []
    while len(reached) < len(size):
        following = max((v for v in size if v not in reached), key=seen.__getitem__)
        outwards.append(following)
        reached[following] = None
        for other in tied[following]:
            seen[other] += 1
    return outwards[::-1]


def _tied(
    size: dict[Variable, int], scopes: Sequence[Sequence[Variable]]
) -> dict[Variable, set[Variable]]:
    """For each variable those with which it is ever in one sum.

    Always the variable is eliminated next that ties the fewest others together anew.
    """
    near: dict[Variable, set[Variable]] = {variable: set() for variable in size}
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    for variable, others in near.items():
        others.discard(variable)
    tied = {variable: set(others) for variable, others in near.items()}
    new = {variable: _missing(variable, near) for variable in size}
    while near:
        variable = min(near, key=new.__getitem__)
        others = near.pop(variable)
        _check({variable, *others}, math.prod(size[v] for v in (variable, *others)))
        for other in others:
            near[other].update(others)
            near[other] -= {other, variable}
            tied[other].update(others)
            tied[other].discard(other)
        for changed in others.union(*(near[other] for other in others)):
            new[changed] = _missing(changed, near)
    return tied


def _missing(variable: Variable, near: dict[Variable, set[Variable]]) -> int:
    """How many pairs of its neighbours are not neighbours yet (each of them counted twice)."""
    others = near[variable]
    return sum(len(others) - 1 - len(near[other] & others) for other in others)


def _check(tied: set[Variable], combinations: int) -> None:
    if combinations > MOST_TIED:
        names = sorted({name for name, _ in tied})
        raise InvalidInput(
            f"questions tie {format_list(names)} together, which have {combinations:,} "
            f"combinations; at most {MOST_TIED:,} can be looked at together"
        )


Marks = NDArray[np.bool_]

SIGNS = (1, -1)
"""What the two sides are for: the largest sums and the smallest."""


class ExactElimination:
    """Exact winners of an elimination that was done with doubles.

    Every sum of doubles is within ``error`` of the exact one. ``wanted`` marks combinations of the
    target, on either side. What is zero everywhere has None in the place of its table.
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
        self._near, used = _marked(sums, error, wanted)
        kept: list[_Used] = []
        for number, table in enumerate(tables):
            if table is not None:
                kept += _Used.of(number, table, used[number])
        self._least: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        widths: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        for each in kept:
            self._least[each.side].update(each.least)
            widths[each.side].update(each.widths)
        self._packing = Packing(widths[0] | widths[1])
        codes: dict[int, Integers] = {}
        for each in kept:
            if each.widths:
                shape = self._packing.words, *used[each.number].shape
                own = codes.setdefault(each.number, np.zeros(shape, dtype=np.int64))
                each.write(self._packing, own[:, each.side])
        # For every step all codes, and those of its result; without any where all are alike.
        self._added: list[Integers | None] = []
        self._won = self._followed(codes)

    def best(self, side: int) -> tuple[int, Counter[int]]:
        """A winner among the wanted combinations of the target, and its exact likelihood."""
        near, codes = self._target
        if codes is None or self._top is None:
            return int(near[side].argmax()), self._least[side]
        top = self._top[:, side]
        tied = near[side] & (codes[:, side] == top[:, None]).all(axis=0)
        return int(tied.argmax()), self._powers(side, top)

    def powers(self, side: int) -> DistinctLikelihoods:
        """The exact likelihoods of winners for all wanted combinations of the target."""
        near, codes = self._target
        wanted = np.flatnonzero(near[side])
        if codes is None:
            return DistinctLikelihoods([self._least[side]], np.zeros(len(wanted), dtype=np.intp))
        different, which = np.unique(codes[:, side, wanted], axis=1, return_inverse=True)
        return DistinctLikelihoods(
            [self._powers(side, code) for code in different.T], which.reshape(-1)
        )

    def traced(self, side: int, target: int) -> Combination:
        """A winner for one combination of the target."""
        plan, found = self._sums.plan, Combination()
        last = len(plan.steps) - 1
        at = {last: tuple(int(k) for k in np.unravel_index(target, plan.steps[last].sizes))}
        # From the last step to the first: which of its sums has won.
        for number in reversed(range(len(plan.steps))):
            for operand in plan.steps[number].operands:
                own = tuple(at[number][k] for k in operand.axes)
                before = operand.number - plan.tables
                if before >= 0:
                    at[before] = self._source(before, side, own)
                elif (table := self._tables[operand.number]) is not None:
                    sizes = [plan.steps[number].sizes[k] for k in operand.axes]
                    place = int(np.ravel_multi_index(own, sizes)) if sizes else 0
                    found |= table.traced(place, SIGNS[side])
        return found

    def _source(self, number: int, side: int, own: tuple[int, ...]) -> tuple[int, ...]:
        """Where a sum is that has won at one step, for one entry of its result."""
        axis, codes = self._sums.plan.steps[number].axis, self._added[number]
        assert axis is not None, "only the last step has no result"
        near, won = np.moveaxis(self._near[number][side], axis, -1)[own], self._won[number]
        if codes is not None and won is not None:
            codes = np.broadcast_to(codes, (len(codes), *self._near[number].shape))
            for code, best in zip(codes[:, side], won[:, side], strict=True):
                near = near & (np.moveaxis(code, axis, -1)[own] == best[own])
        return (*own[:axis], int(near.argmax()), *own[axis:])

    def _powers(self, side: int, code: Integers) -> Counter[int]:
        powers = self._packing.powers(code.tolist())
        powers.update(self._least[side])
        return powers

    @cached_property
    def _target(self) -> tuple[Marks, Integers | None]:
        """What is wanted of the target, and all codes there, its combinations on one axis."""
        near, codes = self._near[-1], self._added[-1]
        if codes is not None:
            codes = np.broadcast_to(codes, (len(codes), *near.shape)).reshape(len(codes), 2, -1)
        return near.reshape(2, -1), codes

    @cached_property
    def _top(self) -> Integers | None:
        """The codes of the winners among all that is wanted of the target."""
        near, codes = self._target
        return None if codes is None else self._best(near, codes, 1)

    def _followed(self, codes: dict[int, Integers]) -> list[Integers | None]:
        """Forwards, the codes of exact winners at every step but the last one."""
        plan, won = self._sums.plan, list[Integers | None]()
        for number, step in enumerate(plan.steps):
            total = None
            for operand in step.operands:
                if (own := codes.get(operand.number)) is not None:
                    own = own.reshape(len(own), 2, *operand.shape)
                    total = own if total is None else total + own
            self._added.append(total)
            if step.axis is not None:
                best = None
                if total is not None:
                    best = self._best(self._near[number], total, step.axis + 1)
                    codes[plan.tables + number] = best
                won.append(best)
        return won

    def _best(self, near: Marks, codes: Integers, axis: int) -> Integers:
        """The codes of an exact winner along one axis, of those sums that are near the best."""
        best = np.where(near, codes, -1).max(axis=axis + 1, keepdims=True)
        odd = (near & (codes != best)).any(axis=(0, axis + 1))
        best = best.squeeze(axis + 1)
        if odd.any():
            codes = np.broadcast_to(codes, (len(codes), *near.shape))
            codes, near = np.moveaxis(codes, axis + 1, -1)[:, odd], np.moveaxis(near, axis, -1)[odd]
            best[:, odd] = self._decided(near, codes, np.nonzero(odd)[0])
        return np.asarray(best)

    def _decided(self, near: Marks, codes: Integers, side: Indices) -> Integers:
        """The codes of winners, by exact comparison, where not all that can win are alike.

        Each line along the last axis has one, and is for one of the sides.
        """
        different, which = np.unique(codes[:, near], axis=1, return_inverse=True)
        products = self._packing.products(different)
        numbers = np.full(near.shape, -1)
        numbers[near] = which.reshape(-1)
        won = [
            products.best(set(line) - {-1}, SIGNS[own])
            for line, own in zip(numbers.tolist(), side.tolist(), strict=True)
        ]
        return different[:, won]


def _marked(
    sums: EliminationSums, error: float, wanted: Marks
) -> tuple[list[Marks], dict[int, Marks]]:
    """Backwards: which sums can win at every step, and what of the tables is in these."""
    plan, used = sums.plan, dict[int, Marks]()
    near: list[Marks] = []
    for number in reversed(range(len(plan.steps))):
        step = plan.steps[number]
        if step.axis is None:
            marks = wanted
        else:
            least = (sums.results[number] - 2 * error).reshape(2, *step.held)
            marks = sums.sums[number] >= least
            marks &= used.pop(plan.tables + number).reshape(2, *step.held)
        near.append(marks)
        for operand in step.operands:
            used[operand.number] = np.logical_or.reduce(marks, axis=operand.others)
    return near[::-1], used


@dataclass(frozen=True, slots=True)
class _Used:
    """The exact likelihoods of a table, where they can be part of a winner of one side."""

    number: int
    side: int
    places: Indices
    kinds: DistinctLikelihoods
    least: Counter[int]
    """The smallest exponents."""
    widths: dict[int, int]
    """How much larger others are; without any, all likelihoods are alike."""

    @classmethod
    def of(cls, number: int, table: ExactTable, used: Marks) -> Iterator[_Used]:
        """Those of either side."""
        for side, sign in enumerate(SIGNS):
            places = used[side].reshape(-1).nonzero()[0]
            if len(places):
                kinds = table.powers(places, sign)
                yield cls(number, side, places, kinds, *_least(kinds))

    def write(self, packing: Packing, codes: Integers) -> None:
        """Write down the codes of what is above the smallest exponents."""
        least = packing.code(self.least)
        own = [
            [word - less for word, less in zip(packing.code(powers), least, strict=True)]
            for powers in self.kinds.likelihoods
        ]
        for word, all_codes in zip(np.array(own, dtype=np.int64).T, codes, strict=True):
            all_codes.reshape(-1)[self.places] = word[self.kinds.indices]


def _least(kinds: DistinctLikelihoods) -> tuple[Counter[int], dict[int, int]]:
    """The smallest exponents, and how much larger others are."""
    first, *others = kinds.likelihoods
    if not others:
        return first, {}
    found: dict[int, list[int]] = {}
    for powers in kinds.likelihoods:
        for base, power in powers.items():
            found.setdefault(base, []).append(power)
    least, widths = Counter[int](), dict[int, int]()
    for base, some in found.items():
        if len(some) < len(kinds.likelihoods):
            some.append(0)  # of those that do not have it
        least[base] = min(some)
        if max(some) > least[base]:
            widths[base] = max(some) - least[base]
    return least, widths
