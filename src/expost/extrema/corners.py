"""The largest value of a convex sum over a box: at one of its corners, so all are looked at.

Unclipped linear queries are concave in the score, so their smallest log-likelihood is here.
"""

from __future__ import annotations

import math

import numpy as np

from expost.extrema import kernels
from expost.extrema.branch_and_bound import Tick
from expost.extrema.kernels import FALLING, Side

__all__ = ["Corners", "clipping"]

_MOST_COORDINATES = 20


class Corners:
    """The largest value of a side that is convex, found at once."""

    nodes = 0

    def __init__(self, side: Side, clipped: float) -> None:
        best = kernels.best_corner(side)
        # Products of many factors, and logarithms that are shifted in the end.
        error = 4 * side.total_error + clipped
        self.lower, self.upper = best - error, best + error

    @classmethod
    def of(cls, side: Side) -> Corners | None:
        """None if the side is not convex, or has too many corners."""
        if (side.link != FALLING).any() or (side.lo < side.hi).sum() > _MOST_COORDINATES:
            return None
        clipped = clipping(side)
        return cls(side, clipped) if clipped < 1e-9 else None

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Nothing is left to do."""


def clipping(side: Side) -> float:
    """What a score that leaves [-1, 1] can change by being clipped; rounding alone does that."""
    reach = np.abs(side.A) @ ((side.hi - side.lo) / 2)
    middle = side.A @ ((side.hi + side.lo) / 2) + side.c
    outside = np.maximum(0.0, np.abs(middle) + reach + 4 * side.slack - 1)
    return float((side.m * outside / side.par[:, kernels.FOOT]).sum()) * 1.01
