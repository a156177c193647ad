"""The sums of the epsilons of many subjects, as integers over a common denominator.

Decimals that people write have one, so a column of integers holds every sum exactly. What does not
fit on that grid, such as the logarithm of a ratio, is enclosed beside it.
Proof: docs/theory/panels.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats, Indices
from expost.errors import InvalidInput
from expost.numbers import Nats
from expost.panel.places import Chosen
from expost.tally import distinct_integers

__all__ = ["Charge", "Grid", "Spent"]


# Quotients of integers below 2^53 are the nearest doubles.
_MOST = 1 << 53
_LARGEST_DENOMINATOR = 1 << 32


class Grid:
    """A common denominator of the epsilons that were asked so far."""

    __slots__ = ("denominator",)

    def __init__(self) -> None:
        self.denominator = 1

    def admit(self, amount: Nats) -> bool:
        """Whether an amount is on the grid, which may become finer for it."""
        if not amount.is_rational:
            return False
        finer = math.lcm(self.denominator, amount.rational.denominator)
        if finer > _LARGEST_DENOMINATOR or amount.rational * finer >= 1 << 40:
            return False
        self.denominator = finer
        return True

    def steps(self, amount: Fraction) -> int:
        """An amount in steps of the grid, if it is a whole number of them."""
        finer, left = divmod(self.denominator, amount.denominator)
        assert not left, "every amount was admitted"
        return amount.numerator * finer


@dataclass(frozen=True, slots=True)
class Charge:
    """What a query is charged, and whether that is on the grid."""

    amount: Nats
    on_grid: bool


class Spent:
    """The sums of some subjects, in steps of a grid, and what is beside it."""

    def __init__(self, count: int, grid: Grid) -> None:
        self._grid = grid
        self._denominator = grid.denominator
        self._steps = np.zeros(count, dtype=np.int64)
        self._beside: Floats | None = None

    def load(self, charge: Charge, times: NDArray[np.int64]) -> None:
        """Charge everybody for a query so many times."""
        if charge.on_grid:
            self._refine()
            self._steps += self._grid.steps(charge.amount.rational) * times
            return
        for turn in range(int(times.max(initial=0))):
            self.add(charge, Chosen(len(times), np.flatnonzero(times > turn)))

    def add(self, charge: Charge, chosen: Chosen) -> None:
        """Charge some subjects for a query."""
        self._refine()
        if charge.on_grid:
            self._steps[chosen.index] += self._grid.steps(charge.amount.rational)
            return
        if self._beside is None:
            self._beside = np.zeros((2, len(self._steps)))
        around = charge.amount.enclosure
        lower, upper = self._beside[:, chosen.index]
        self._beside[:, chosen.index] = _sum(lower, upper, around.lower, around.upper)

    def _refine(self) -> None:
        if self._denominator != self._grid.denominator:
            self._steps *= self._grid.denominator // self._denominator
            self._denominator = self._grid.denominator
        if self._steps.max(initial=0) >= _MOST:
            raise InvalidInput("the epsilons of a subject add up to more than can be counted")

    def around(self, chosen: Chosen, charge: Charge | None) -> tuple[Floats, Floats]:
        """Doubles around the sums of some subjects, perhaps with one more query."""
        self._refine()
        more = self._grid.steps(charge.amount.rational) if charge and charge.on_grid else 0
        steps = self._steps[chosen.index] + more
        near = steps / self._denominator
        lower = np.where(near > 0, np.nextafter(near, -np.inf), 0.0)
        upper = np.where(near > 0, np.nextafter(near, np.inf), 0.0)
        if self._beside is not None:
            lower, upper = _sum(lower, upper, *self._beside[:, chosen.index])
        if charge and not charge.on_grid:
            lower, upper = _sum(
                lower, upper, charge.amount.enclosure.lower, charge.amount.enclosure.upper
            )
        return lower, upper

    def exact(
        self, chosen: Chosen, charge: Charge | None = None
    ) -> tuple[list[Fraction], Indices] | None:
        """Return the distinct exact sums and each subject's; None if some are not on the grid."""
        if self._beside is not None or (charge and not charge.on_grid):
            return None
        self._refine()
        more = self._grid.steps(charge.amount.rational) if charge else 0
        distinct, index_of = distinct_integers(self._steps[chosen.index] + more)
        return [Fraction(each, self._denominator) for each in distinct.tolist()], index_of


def _sum(
    lower: Floats, upper: Floats, least: Floats | float, most: Floats | float
) -> tuple[Floats, Floats]:
    """Two amounts added, rounded outward; nothing is added exactly, and so is infinity."""
    low, high = lower + least, upper + most
    exact = (np.asarray(most) == 0) | np.isinf(low)
    return (
        np.where(exact, low, np.nextafter(low, -np.inf)),
        np.where(exact, high, np.nextafter(high, np.inf)),
    )
