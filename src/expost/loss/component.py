"""Attributes that joint questions tie together: what there is to know about ℓ over them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Attributes, Part, Variable
from expost.loss.elimination import Sums
from expost.loss.exact_elimination import ExactElimination
from expost.loss.exact_table import rank
from expost.loss.exponents import Exactly, Found, Kinds
from expost.loss.tables import Table
from expost.numbers import UNIT, up

__all__ = ["Component", "Marginals", "link", "sum_error"]


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
    tables: tuple[Table, ...]
    """In their order."""

    @property
    @abstractmethod
    def error(self) -> float:
        """How far any sum of doubles can be from the exact one."""

    @abstractmethod
    def with_table(self, table: Table) -> Component:
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

    def tables_with(self, table: Table) -> tuple[Table, ...]:
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

    def extreme(self, sign: int) -> Found:
        """Where ℓ is largest (sign 1) or smallest (sign -1), exactly, as far as it was asked."""
        found = self._whole.traced(0, sign)
        return {variable: found[variable] for variable in self.sizes}


@dataclass(frozen=True, eq=False)
class Marginals:
    """The largest and the smallest ℓ for each combination of what a query is about."""

    sums: Sums
    sources: Sequence[Exactly | None]
    """What was summed up, exactly; None for what is zero everywhere."""
    error: float
    written: Indices
    """Where each combination is, in the order in which the query sees them."""

    @classmethod
    def of(
        cls,
        sums: Sums,
        sources: Sequence[Exactly | None],
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
        self, high: Indices, low: Indices, extra: Exactly | None = None
    ) -> list[tuple[int, Counter[int]]]:
        """Where ℓ is largest among some combinations, and smallest among others, and how large.

        Exactly, and perhaps with some more that is about these combinations.
        """
        exactly = self._exactly((high, low), extra)
        found = [exactly.best(side) for side in (0, 1)]
        return [(int(self._read[place]), powers) for place, powers in found]

    def powers(self, places: Indices, sign: int) -> Kinds:
        """The extremes at some combinations, which are sorted, exactly."""
        return self._one_side(places, sign).powers(0 if sign > 0 else 1)

    def traced(self, place: int, sign: int) -> Found:
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

    def _exactly(self, sides: Sequence[Indices], extra: Exactly | None) -> ExactElimination:
        wanted = np.zeros((2, len(self.written)), dtype=np.bool_)
        for marks, places in zip(wanted, sides, strict=True):
            marks[self.written[places]] = True
        *tables, target = self.sources
        assert target is None, "the last table is the target's own, and zero"
        wanted = wanted.reshape(2, *self.sums.plan.steps[-1].sizes)
        return ExactElimination(self.sums, [*tables, extra], self.error, wanted)


def sum_error(tables: Sequence[Table], more: int) -> float:
    """How far sums of all these tables can be from the exact ones, with some more additions.

    Each table has an error of its own; every addition rounds a number that is at most the sum of
    the largest absolute values. All of that is doubled, which is more than what it is rounded by.
    """
    error = up(math.fsum([table.on_part.error for table in tables]))
    magnitude = math.fsum([table.magnitude for table in tables])
    return up(error + 2 * (len(tables) + more + 2) * UNIT * magnitude)
