"""The largest value of a concave sum over a box: gradients lead there, and a tangent proves it.

Unclipped linear queries are concave in the score, so their largest log-likelihood is here.
"""

from __future__ import annotations

import math

import numpy as np

from expost.solver.branch_and_bound import ROUNDING_ALONE, Search, Tick
from expost.solver.kernels import entries
from expost.solver.kernels.layout import Floats, PackedProblem
from expost.solver.work import of_node

__all__ = ["Summit"]


class Summit:
    """The largest value of a problem that is concave. A climb counts as a node."""

    def __init__(self, problem: PackedProblem, clipped: float) -> None:
        self._problem = problem
        self.size = of_node(*problem.shape)
        self.begun = 0.0
        self._error = 4 * problem.total_error + clipped
        self._climbs = 0
        self._found, self._gap = -math.inf, math.inf
        self._top: Floats | None = None
        self._search: Search | None = None

    @classmethod
    def of(cls, problem: PackedProblem) -> Summit | None:
        """None if the problem is not concave."""
        clipped = problem.clipped_rising
        return None if clipped >= ROUNDING_ALONE or problem.whole else cls(problem, clipped)

    @property
    def nodes(self) -> int:
        return self._climbs + (self._search.nodes if self._search else 0)

    @property
    def lower(self) -> float:
        climbed = self._found - self._error
        return max(climbed, self._search.lower) if self._search else climbed

    @property
    def point(self) -> Floats | None:
        climbed = self._found - self._error
        if self._search and self._search.lower > climbed:
            return self._search.point
        return self._top

    @property
    def upper(self) -> float:
        proved = self._found + self._gap + self._error
        return min(proved, self._search.upper) if self._search else proved

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Climb until the gap is closed; if that stalls, search."""
        if self.upper - self.lower <= tolerance:
            return
        if self._search is None:
            self._climb(tolerance - 2 * self._error)
            if self.upper - self.lower <= tolerance:
                return
            self._search = Search(self._problem)
        self._search.pursue(tolerance, nodes, enough, tick)

    def _climb(self, tolerance: float) -> None:
        self._climbs += 1
        ones = np.ones((1, self._problem.shape[0]))
        values, gaps, (self._top,) = entries.climb(self._problem, ones, tolerance)
        self._found, self._gap = float(values[0]), float(gaps[0])
