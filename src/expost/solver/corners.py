"""The largest value of a convex sum over a box: at one of its corners, so all are looked at.

Unclipped linear queries are concave in the score, so their smallest log-likelihood is here.
"""

from __future__ import annotations

import math

from expost.solver.branch_and_bound import ROUNDING_ALONE, Tick
from expost.solver.kernels import entries
from expost.solver.kernels.layout import PackedProblem
from expost.solver.work import of_node

__all__ = ["CORNERS_PER_NODE", "Corners"]

_MOST_COORDINATES = 12
CORNERS_PER_NODE = 1 << 10
"""How many take as long as a node of a search."""


class Corners:
    """The largest value of a problem that is convex, found at once."""

    nodes = 0

    def __init__(self, problem: PackedProblem, clipped: float) -> None:
        best, self.point = entries.best_corner(problem)
        # Products of many factors, and logarithms that are shifted in the end.
        error = 4 * problem.total_error + clipped
        self.lower, self.upper = best - error, best + error
        self.size = of_node(*problem.shape)
        self.begun = self.size * (1 << problem.free) / CORNERS_PER_NODE

    @classmethod
    def of(cls, problem: PackedProblem) -> Corners | None:
        """None if the problem is not convex, or has too many corners."""
        clipped = problem.clipped_falling
        if clipped >= ROUNDING_ALONE or problem.free > _MOST_COORDINATES:
            return None
        return cls(problem, clipped)

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Nothing is left to do."""
