"""The largest value of a convex sum that has many corners: a search among them, or all of them.

The bound of the search is usually exact at its root (docs/theory/extrema.md). If it is not, looking
at every corner may be faster, unless there are too many.
"""

from __future__ import annotations

import math

from expost.solver.branch_and_bound import ROUNDING_ALONE, Search, Tick
from expost.solver.corners import CORNERS_PER_NODE, Corners
from expost.solver.kernels.branching import CORNERS
from expost.solver.kernels.layout import Floats, PackedProblem

__all__ = ["Convex"]

_MOST_COORDINATES = 20


class Convex:
    """The largest value of a problem that is convex. A look at all corners counts as a node."""

    def __init__(self, problem: PackedProblem, clipped: float, patience: int) -> None:
        self._problem = problem
        self._clipped = clipped
        self._patience = patience
        self._search = Search(problem, [CORNERS])
        self._corners: Corners | None = None

    @classmethod
    def of(cls, problem: PackedProblem) -> Convex | None:
        """None if the problem is not convex, or has so many corners that only a search will do."""
        clipped = problem.clipped_falling
        if clipped >= ROUNDING_ALONE or problem.free > _MOST_COORDINATES:
            return None
        return cls(problem, clipped, (1 << problem.free) // CORNERS_PER_NODE)

    @property
    def nodes(self) -> int:
        return self._search.nodes + (self._corners is not None)

    @property
    def size(self) -> float:
        return self._search.size

    @property
    def begun(self) -> float:
        return self._search.begun

    @property
    def lower(self) -> float:
        return self._corners.lower if self._corners else self._search.lower

    @property
    def point(self) -> Floats | None:
        return self._corners.point if self._corners else self._search.point

    @property
    def upper(self) -> float:
        return self._corners.upper if self._corners else self._search.upper

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Search until the gap is closed; if that takes long, look at all corners."""
        if self._corners or self.upper - self.lower <= tolerance:
            return
        self._search.pursue(tolerance, min(nodes, self._patience), enough, tick)
        closed = self.upper - self.lower <= tolerance or self.lower > enough
        if not closed and nodes > self._patience:
            self._corners = Corners(self._problem, self._clipped)
