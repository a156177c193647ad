"""One bit about a share between 0 and 1: the integer weights of its two responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidInput
from expost.files.reading import each, number
from expost.numbers import double_below
from expost.queries.query import Unbiased
from expost.queries.values.pairwise import two_weights
from expost.terms import Weights, as_integers

__all__ = ["Ends", "Grid", "one_bit_meaning", "one_bit_weights", "read_range"]

Ends = tuple[int | float, int | float]
"""The lower and the upper end of a range."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The weights that a response can have: light, light + 1, …, light + span ≤ heavy."""

    light: int
    heavy: int
    span: int

    @classmethod
    def at(cls, epsilon: Fraction) -> Grid:
        return _grid(*two_weights(epsilon))

    @property
    def total(self) -> int:
        """What the weights of both responses add up to."""
        return 2 * self.light + self.span

    def means(self, ends: Ends) -> tuple[Fraction, Fraction]:
        """What the low and the high response must stand for to be unbiased.

        From the sampled weights: the high one has light + share · span of their total.
        """
        low, high = map(Fraction, ends)
        step = (high - low) / self.span
        return low - self.light * step, high + self.light * step


@lru_cache(maxsize=256)
def _grid(heavy: int, light: int) -> Grid:
    # Rounded down to a double, so that share 1 gives exactly light + span; less span, less loss.
    return Grid(light, heavy, int(double_below(Fraction(heavy - light))))


def one_bit_weights(share: NDArray[np.float64], epsilon: Fraction) -> tuple[Weights, Weights]:
    """Weights of the low and the high response, for scores at these shares of the way up.

    The weight of the high one is monotone in the share, ``light`` at share 0, and ``heavy`` at
    share 1 (or just below it, where heavy - light is too large for a double); the two weights
    always add up to the same total.
    """
    grid = Grid.at(epsilon)
    total = grid.total
    above = as_integers(np.rint(share * float(grid.span)), total)
    high = above + grid.light
    return total - high, high


def one_bit_meaning(ends: Ends, responses: Ends, epsilon: Fraction) -> Unbiased:
    """What two responses say about a score, if they are sampled by the weights of :class:`Grid`."""
    means = dict(zip(responses, Grid.at(epsilon).means(ends), strict=True))
    return Unbiased(ends, means.__getitem__)


def read_range(range: Sequence[float]) -> Ends:
    """Read the two ends of a range as they were written."""
    ends = each(range, number, "range", "two ends, the lower one first, such as (0, 12)")
    if len(ends) != 2 or not ends[0] < ends[1] or not math.isfinite(float(ends[1]) - ends[0]):
        raise InvalidInput("must be two ends, the lower one first", "range")
    return ends[0], ends[1]
