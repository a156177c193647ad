"""The largest value of a convex sum over a box: at one of its corners, so all are looked at.

Unclipped linear queries are concave in the score, so their smallest log-likelihood is here.
"""

from __future__ import annotations

import math

from expost.solver import kernels
from expost.solver.branch_and_bound import ROUNDING_ALONE, Tick
from expost.solver.kernels import FALLING, PackedSide

__all__ = ["Corners"]

_MOST_COORDINATES = 12


class Corners:
    """The largest value of a side that is convex, found at once."""

    nodes = 0

    def __init__(self, side: PackedSide, clipped: float) -> None:
        best = kernels.best_corner(*side)
        # Products of many factors, and logarithms that are shifted in the end.
        error = 4 * side.total_error + clipped
        self.lower, self.upper = best - error, best + error

    @classmethod
    def of(cls, side: PackedSide) -> Corners | None:
        """None if the side is not convex, or has too many corners."""
        clipped = kernels.clipping(*side, FALLING)
        if clipped >= ROUNDING_ALONE:
            return None
        free, _ = kernels.moving(*side)
        return cls(side, clipped) if free <= _MOST_COORDINATES else None

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Nothing is left to do."""
