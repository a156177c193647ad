"""ℓ over attributes that questions tie together, each of which has one value.

Attributes that no chain of joint questions connects are in components of their own, whose losses
add up. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Part, Variable
from expost.loss.elimination import Plan, Sums, eliminate, plan
from expost.loss.exact_elimination import Bases, ExactElimination, Rows
from expost.loss.tables import Table, rank
from expost.numbers import UNIT, up

__all__ = ["Marginals", "Tied", "sum_error"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Tied:
    """Tables that depend on common variables, perhaps by way of others."""

    tables: tuple[Table, ...]

    @cached_property
    def error(self) -> float:
        """How far any sum of doubles can be from the exact one."""
        return sum_error(self.tables, 2 * len(self.sizes))

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        """The variables in their order, and how many values each has."""
        found: dict[Variable, int] = {}
        for table in self.tables:
            found.update(zip(table.variables, table.part.sizes, strict=True))
        return {variable: found[variable] for variable in sorted(found, key=rank)}

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The largest and the smallest ℓ, in doubles."""
        whole = self.marginals((), None)
        return float(whole.highs[0]), float(whole.lows[0])

    @cached_property
    def exact_spread(self) -> Counter[int]:
        """The powers whose product has the logarithm max ℓ - min ℓ, exactly."""
        whole, nothing = self.marginals((), None), np.zeros(1, dtype=np.intp)
        spread = whole.powers(1, nothing)[0].copy()
        spread.subtract(whole.powers(-1, nothing)[0])
        return spread

    def check(self) -> None:
        """Refuse what ties too much together."""
        self._plan((), self.sizes)

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        """The extremes of ℓ for each combination of some variables, as a query sees them."""
        sizes = dict(self.sizes)
        if part is not None:
            sizes.update(zip(variables, part.sizes, strict=True))
        target = tuple(sorted(variables, key=rank))
        shape = tuple(sizes[variable] for variable in target)
        flat = np.zeros((2, *shape))
        tables = [*(table.signed for table in self.tables), flat]
        sums = eliminate(self._plan(target, sizes), tables)
        places = np.arange(max(1, int(np.prod(shape)))).reshape(shape)
        written = places.transpose([target.index(variable) for variable in variables]).ravel()
        return Marginals(self, sums, written)

    def _plan(self, target: tuple[Variable, ...], sizes: dict[Variable, int]) -> Plan:
        ordered = tuple((variable, sizes[variable]) for variable in sorted(sizes, key=rank))
        return plan(ordered, (*(table.sorted for table in self.tables), target), target)


@dataclass(frozen=True, eq=False)
class Marginals:
    """The largest and the smallest ℓ for each combination of what a query is about."""

    tied: Tied
    sums: Sums
    written: Places
    """Where each combination is that the query sees, in its order."""

    @cached_property
    def highs(self) -> Floats:
        return self.sums.highs[self.written]

    @cached_property
    def lows(self) -> Floats:
        return self.sums.lows[self.written]

    @cached_property
    def bases(self) -> Bases:
        """The bases of all exact products here."""
        return Bases()

    def rows(self, sign: int, places: Places) -> Rows:
        """The exponents of the extremes at some combinations, exactly."""
        tables = [*self.tied.tables, None]
        exact = ExactElimination(self.sums, tables, self.tied.error, sign, self.bases)
        return exact.rows(self.written[places])

    def powers(self, sign: int, places: Places) -> list[Counter[int]]:
        """The same as powers by their bases."""
        return [self.bases.powers(row) for row in self.rows(sign, places)]


def sum_error(tables: Sequence[Table], more: int) -> float:
    """How far sums of all these tables can be from the exact ones, with some more additions.

    Each table has an error of its own; every addition rounds a number that is at most the sum of
    the largest absolute values, which is doubled here to be above its own rounding.
    """
    error, magnitude = 0.0, 0.0
    for table in tables:
        error = up(error + table.on_part.error)
        magnitude += table.magnitude
    return up(error + 2 * (len(tables) + more + 2) * UNIT * magnitude)
