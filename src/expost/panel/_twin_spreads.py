"""The largest differences of ℓ within units that queries tie to other variables, in arrays.

The variables of a unit appear twice, as for one subject, and the same elimination runs over blocks
of subjects. A table is zero for subjects who were not asked about it, which changes no sum. Proof:
docs/theory/levels.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Attributes, Variable
from expost.filters._levels import Constants, Level, Steps, Unit, Window, units_of
from expost.loss._elimination import eliminate, plan_elimination, rank
from expost.loss._twins import Pairs, Twins
from expost.numbers import blocks
from expost.panel._selection import Selection
from expost.queries import PartLikelihood

__all__ = ["MOST_PAIRS", "TwinSpreads"]

Scope = tuple[Variable, ...]

#: The most pairs of values of a query that are written as a table.
MOST_PAIRS = 1 << 18

_BLOCK = 1 << 17


class TwinSpreads:
    """The largest difference of ℓ within every unit of a level, an array for each unit."""

    def __init__(
        self, domain: Attributes, level: Level, count: int, tables: dict[Scope, Floats]
    ) -> None:
        self._domain = domain
        self._level = level
        self._count = count
        self._tables = tables
        self._groups = () if isinstance(level, Steps) else units_of(level, domain)
        self._amounts: dict[Unit, Floats] = {}
        for scope in tables:
            self.refresh(scope, Selection(count))

    def _touched(self, scope: Scope) -> list[Unit]:
        """Return the units that a query touches."""
        if not isinstance(self._level, Steps):
            return [unit for unit in self._groups if unit.touches(scope)]
        units: list[Unit] = [Constants()] if Constants().touches(scope) else []
        step = next((step for _, step in scope if step is not None), None)
        if step is None:
            return units
        asked = {other for tied in self._tables for _, other in tied if other is not None}
        firsts = sorted({step, *(asked & set(self._level.windows_at(step)))})
        return [*units, *(Window(first, self._level.width) for first in firsts)]

    def refresh(self, scope: Scope, selection: Selection) -> None:
        """Compute the amounts of the units that a response has touched."""
        for unit in self._touched(scope):
            if unit not in self._amounts:
                self._amounts[unit] = self._amounts_of(unit, Selection(self._count))
                continue
            for rows, sums, _ in self._differences(unit, None, selection):
                self._amounts[unit][selection.indices_of(rows)] = np.maximum(sums.max(axis=1), 0.0)

    def losses(self, selection: Selection) -> Floats:
        """Return the losses at the level."""
        return self._largest(self._amounts.values(), selection)

    def worst(
        self, likelihood: PartLikelihood, differences: Floats, selection: Selection
    ) -> Floats:
        """Return the largest amounts after a query, from its table of D."""
        touched, result = self._split(likelihood, selection)
        for unit in touched:
            for rows, sums, pairs in self._differences(unit, likelihood, selection):
                assert pairs is not None
                after = sums + differences[pairs.first, pairs.second]
                result[rows] = np.maximum(result[rows], after.max(axis=1))
        return result

    def plus_epsilon(
        self, likelihood: PartLikelihood, differences: Floats, selection: Selection
    ) -> Floats:
        """Return the largest amounts now, plus the epsilon of a query within the unit."""
        touched, result = self._split(likelihood, selection)
        for unit in touched:
            pairs = Pairs.of(Twins(self._domain, unit), likelihood)
            epsilon = float(differences[pairs.first, pairs.second].max())
            result = np.maximum(result, self._amounts_of(unit, selection) + epsilon)
        return result

    def _split(self, likelihood: PartLikelihood, selection: Selection) -> tuple[list[Unit], Floats]:
        """Return the units that a query touches, and the largest amounts of all others."""
        touched = self._touched(tuple(sorted(likelihood.variables, key=rank)))
        others = [amounts for unit, amounts in self._amounts.items() if unit not in touched]
        return touched, self._largest(others, selection)

    def _amounts_of(self, unit: Unit, selection: Selection) -> Floats:
        """Return the amounts of a unit; a window at a new step may have others with responses."""
        if unit in self._amounts:
            return self._amounts[unit][selection.subscript]
        result = np.zeros(len(selection))
        for rows, sums, _ in self._differences(unit, None, selection):
            result[rows] = np.maximum(sums.max(axis=1), 0.0)
        return result

    def _largest(self, amounts: Iterable[Floats], selection: Selection) -> Floats:
        columns = (column[selection.subscript] for column in amounts)
        return np.asarray(reduce(np.maximum, columns, np.zeros(len(selection))))

    def _differences(
        self, unit: Unit, likelihood: PartLikelihood | None, selection: Selection
    ) -> Iterator[tuple[Indices, Floats, Pairs | None]]:
        """Yield the largest differences of some subjects, for every pair that a query sees."""
        twins = Twins(self._domain, unit)
        pairs = None if likelihood is None else Pairs.of(twins, likelihood)
        scopes = [scope for scope in self._tables if unit.touches(scope)]
        others = [tuple(sorted(twins.of(scope), key=rank)) for scope in scopes]
        target = () if pairs is None else pairs.target
        doubled = self._domain.twins[0]
        variables = sorted({v for scope in (*scopes, *others, target) for v in scope}, key=rank)
        sizes = tuple((variable, len(doubled[variable[0]].values)) for variable in variables)
        plan = plan_elimination(sizes, (*scopes, *others, target), target)
        width = max(math.prod(step.sizes) for step in plan.steps)
        orders = [self._reordered(twins, scope) for scope in scopes]
        flat = np.zeros((1, *(len(doubled[name].values) for name, _ in target)))
        for rows in blocks(len(selection), max(1, _BLOCK // width)):
            places = np.arange(rows.start, rows.stop)
            indices = selection.indices_of(places)
            tables = [self._tables[scope][:, indices].T for scope in scopes]
            subtracted = [-table[:, order] for table, order in zip(tables, orders, strict=True)]
            sums = eliminate(plan, [*tables, *subtracted, flat]).sums[-1]
            sums = np.broadcast_to(sums.reshape(len(sums), -1), (len(places), flat.size))
            yield places, sums, pairs

    def _reordered(self, twins: Twins, scope: Scope) -> Indices:
        """Return the cells of a table in the order of the axes of its twin."""
        other = twins.of(scope)
        axes = [other.index(variable) for variable in sorted(other, key=rank)]
        sizes = [len(self._domain[name].values) for name, _ in scope]
        return np.arange(math.prod(sizes)).reshape(sizes).transpose(axes).ravel()
