"""The largest and the smallest sum of tables over all combinations, variable by variable.

ℓ of a record is a sum of tables, each of which depends on a few variables. A variable is eliminated
by adding up all tables that depend on it and keeping, for every combination of the others in them,
the largest sum: one more table. What is left at the end depends only on the variables that a query
is about. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from expost._types import Floats
from expost.domains import Variable
from expost.errors import InvalidInput
from expost.queries.words import listed

__all__ = ["MOST_TIED", "Plan", "Step", "Sums", "eliminate", "plan"]

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
class Step:
    """Add up some operands, and keep the largest sums along one axis (at the end: all of them)."""

    operands: tuple[Operand, ...]
    sizes: tuple[int, ...]
    axis: int | None
    held: tuple[int, ...]
    """The shape of the result among the axes of the sum."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which sums to take, one after the other; the last one has the axes of the target."""

    steps: tuple[Step, ...]
    tables: int


@dataclass(frozen=True, slots=True)
class Sums:
    """What an elimination did: all sums, and their largest along one axis, step by step.

    The first axis has two entries: for the sum of the tables and for its negative.
    """

    plan: Plan
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


def eliminate(plan: Plan, tables: Sequence[Floats]) -> Sums:
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
    return Sums(plan, sums, operands[plan.tables :])


@lru_cache(maxsize=1 << 12)
def plan(
    sizes: tuple[tuple[Variable, int], ...],
    scopes: tuple[tuple[Variable, ...], ...],
    target: tuple[Variable, ...],
) -> Plan:
    """How to eliminate all variables but those of the target.

    ``sizes`` lists the variables in their order, ``scopes`` what each table depends on; the target
    is in that order, too, and one of the scopes.
    """
    size, rank = dict(sizes), {variable: n for n, (variable, _) in enumerate(sizes)}
    waiting = {number: frozenset(scope) for number, scope in enumerate(scopes)}
    steps: list[Step] = []

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
        steps.append(Step(tuple(operands), tuple(size[v] for v in axes), axis, held))

    for variable in _order(size, scopes, target):
        numbers = [number for number, scope in waiting.items() if variable in scope]
        together = frozenset[Variable]().union(*(waiting[number] for number in numbers))
        take(numbers, sorted(together, key=rank.__getitem__), variable)
        waiting[len(scopes) + len(steps) - 1] = together - {variable}
    take(list(waiting), target, None)
    return Plan(tuple(steps), len(scopes))


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
            f"questions tie {listed(names)} together, which have {combinations:,} combinations; "
            f"at most {MOST_TIED:,} can be looked at together"
        )
