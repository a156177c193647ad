"""The spreads of ℓ within the units of a level, of many subjects.

While no query ties a unit to other variables, the largest difference of ℓ within a unit is the
spread of all that was asked about it, and a response changes it by what it changes the spread of
the whole. The spreads of the steps of a window add up. Proofs: docs/theory/levels.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import accumulate

import numpy as np

from expost._types import Floats
from expost.domains import Attributes, Variable
from expost.filters._levels import Group, Level, Steps, units_of
from expost.panel._selection import Selection

__all__ = ["UnitSpreads"]

#: A group, a step, or None for all attributes that do not change. Of windows the first step.
UnitKey = Group | int | None


class UnitSpreads:
    """The spread within every unit of a level, an array over all subjects for each."""

    def __init__(self, domain: Attributes, level: Level, count: int) -> None:
        self._domain = domain
        self._level = level
        self._count = count
        self._spreads: dict[UnitKey, Floats] = {}
        self._steps: list[int] = []
        self._groups = () if isinstance(level, Steps) else units_of(level, domain)
        #: Some units that do not change for now, and the largest of their amounts.
        self._settled: tuple[frozenset[UnitKey], Floats] = frozenset(), np.zeros(count)

    def units(self, scope: Iterable[Variable]) -> list[UnitKey] | None:
        """Return the units that a query touches; None if it ties one to other variables."""
        variables = list(scope)
        if isinstance(self._level, Steps):
            steps = {step for _, step in variables}
            return None if len(steps) > 1 else list(steps)
        touched = [unit for unit in self._groups if unit.touches(variables)]
        tied = any(not all(map(unit.has, variables)) for unit in touched)
        return None if tied else list(touched)

    def set(self, scope: Iterable[Variable], spread: Floats) -> None:
        """Add the spread of a component that has been measured."""
        for unit in self.units(scope) or ():
            self._spread(unit)[:] += spread

    def add(self, scope: Iterable[Variable], change: Floats, selection: Selection) -> None:
        """Change the spreads of the units that a response touches."""
        for unit in self.units(scope) or ():
            spread = self._spread(unit)
            spread[selection.subscript] = np.maximum(spread[selection.subscript] + change, 0.0)
            if not self._settled[0].isdisjoint(self._around(unit)):
                self._settled = frozenset(), np.zeros(self._count)

    def _spread(self, unit: UnitKey) -> Floats:
        if unit not in self._spreads:
            self._spreads[unit] = np.zeros(self._count)
            if isinstance(unit, int):
                insort(self._steps, unit)
        return self._spreads[unit]

    def _within(self, first: int, last: int) -> list[int]:
        return self._steps[bisect_left(self._steps, first) : bisect_right(self._steps, last)]

    def _around(self, unit: UnitKey) -> list[UnitKey]:
        """Return the units, or the windows, to which a group, a step or the constants belong."""
        if not isinstance(unit, int):
            return [unit]
        assert isinstance(self._level, Steps)
        return [*self._within(unit - self._level.width + 1, unit)]

    def _amount(self, key: UnitKey) -> Floats:
        """Return the amounts of a unit; those of the steps of a window add up."""
        if not isinstance(key, int):
            return self._spreads[key]
        assert isinstance(self._level, Steps)
        steps = self._within(key, key + self._level.width - 1)
        return reduce(np.add, [self._spreads[step] for step in steps])

    def _largest(self, excluded: Iterable[UnitKey]) -> Floats:
        """Return the largest amount of all units except some; what stays is not looked at again."""
        keys = self._spreads.keys() - set(excluded)
        settled, largest = self._settled
        if not settled <= keys:
            settled, largest = frozenset(), np.zeros(self._count)
        for key in keys - settled:
            largest = np.maximum(largest, self._amount(key))
        self._settled = frozenset(keys), largest
        return largest

    def losses(self, selection: Selection) -> Floats:
        """Return the losses at the level."""
        latest: list[UnitKey] = []
        if self._steps:
            latest = self._around(self._steps[-1])
        others = self._largest(latest)[selection.subscript]
        amounts = [self._amount(key)[selection.subscript] for key in latest]
        return np.asarray(reduce(np.maximum, [others, *amounts]))

    def worst(
        self,
        scope: Iterable[Variable],
        selection: Selection,
        after: Callable[[Floats], Floats],
    ) -> Floats:
        """Return the largest amounts if a query changes those of the units that it touches.

        ``after`` takes the spread within a unit, and returns it after the query.
        """
        units = self.units(scope)
        assert units is not None, "no query ties units"
        touched = [key for unit in units for key in self._around(unit)]
        result = self._largest(touched)[selection.subscript]
        for unit in units:
            spread = self._spreads.get(unit)
            here = np.zeros(len(selection)) if spread is None else spread[selection.subscript]
            amount = after(here)
            if isinstance(unit, int):
                amount = amount + self._rest_of_windows(unit, selection)
            result = np.maximum(result, amount)
        return np.asarray(result)

    def _rest_of_windows(self, step: int, selection: Selection) -> Floats | float:
        """Return the largest sum of the other steps of a window that contains a step."""
        assert isinstance(self._level, Steps)
        width = self._level.width
        before, after = (
            self._within(step - width + 1, step - 1),
            self._within(step + 1, step + width - 1),
        )
        if not before and not after:
            return 0.0
        zero = np.zeros(len(selection))

        def sums(steps: Iterable[int]) -> list[Floats]:
            spreads = (self._spreads[other][selection.subscript] for other in steps)
            return list(accumulate(spreads, np.add, initial=zero))

        earlier, later = sums(reversed(before)), sums(after)
        windows = [
            earlier[len(before) - index] + later[bisect_left(after, first + width)]
            for index, first in enumerate([*before, step])
        ]
        return np.asarray(reduce(np.maximum, windows))
