"""The largest value of a concave sum over a box: gradients lead there, and a tangent proves it.

Unclipped linear queries are concave in the score, so their largest log-likelihood is here.
"""

from __future__ import annotations

import math

import numpy as np

from expost.solver import kernels
from expost.solver.branch_and_bound import ROUNDING_ALONE, Search, Tick
from expost.solver.kernels import RISING, PackedSide

__all__ = ["Summit"]


class Summit:
    """The largest value of a side that is concave. A climb counts as a node."""

    def __init__(self, side: PackedSide, clipped: float) -> None:
        self._side = side
        self._error = 4 * side.total_error + clipped
        self._climbs = 0
        self._found, self._gap = -math.inf, math.inf
        self._search: Search | None = None

    @classmethod
    def of(cls, side: PackedSide) -> Summit | None:
        """None if the side is not concave."""
        clipped = kernels.clipping(*side, RISING)
        if clipped >= ROUNDING_ALONE:
            return None
        _, whole = kernels.moving(*side)
        return None if whole else cls(side, clipped)

    @property
    def nodes(self) -> int:
        return self._climbs + (self._search.nodes if self._search else 0)

    @property
    def lower(self) -> float:
        climbed = self._found - self._error
        return max(climbed, self._search.lower) if self._search else climbed

    @property
    def upper(self) -> float:
        proved = self._found + self._gap + self._error
        return min(proved, self._search.upper) if self._search else proved

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Climb until the gap is closed; where that stalls, search."""
        if self.upper - self.lower <= tolerance:
            return
        if self._search is None:
            self._climb(tolerance - 2 * self._error)
            if self.upper - self.lower <= tolerance:
                return
            self._search = Search(self._side)
        self._search.pursue(tolerance, nodes, enough, tick)

    def _climb(self, tolerance: float) -> None:
        self._climbs += 1
        value, gap = np.empty(1), np.empty(1)
        kernels.climb(*self._side, np.ones((1, self._side.shape[0])), tolerance, value, gap)
        self._found, self._gap = float(value[0]), float(gap[0])
