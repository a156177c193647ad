"""Four methods for the largest value of one problem, each a certified enclosure that narrows.

Corners and tangents need no search where a sum is convex or concave. Unclipped linear queries are
concave in the score, so both occur: corners for their smallest log-likelihood, tangents for their
largest. Everything else takes best-first branch and bound. It is limited by nodes, never by a
clock, so the same problem always gives the same bits. Proof: docs/theory/extrema.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from expost.solver._effort import of_node, of_root
from expost.solver.kernels import entries
from expost.solver.kernels.branching import COORDINATES_ONLY, CORNERS, SCORES_FIRST
from expost.solver.kernels.layout import (
    ABOVE,
    HALF,
    LOWER,
    NODES,
    OPEN,
    SETTLED,
    Floats,
    Frontier,
    PackedProblem,
    Pool,
    Record,
    new_frontier,
    new_work,
    roomier,
)
from expost.solver.kernels.trees import DONE, FULL

__all__ = [
    "CORNERS_PER_NODE",
    "ROUNDING_ALONE",
    "Convex",
    "Corners",
    "Search",
    "Summit",
    "Tick",
    "Tree",
    "suitable_rules",
]


Tick = Callable[[], None]

_FEW_COORDINATES = 4
_ROOM = 64
_TICK = 256
# Nodes that the first one of two rules has made at the end of a heat, and those of the other one.
# The first is the better one far more often, and its nodes take half the time, so it goes ahead.
_HEATS = ((32, 16), (64, 64), (200, 200), (800, 800))
# Where the other one is compared with what the first had reached with as many nodes.
_MARKS = (5, 9)
_BEHIND = 1.1
# With fewer nodes there is no race: on a wide box a root of the other one takes long.
_FEW = 4
_PATIENCE = 500

ROUNDING_ALONE = 1e-9
"""If clipping changes a sum by less than this, the sum counts as convex, or concave."""


class Tree:
    """A search tree under one branching rule."""

    cutting = True
    """Whether nodes are tightened if that is known to cut off nothing of interest."""

    def __init__(self, problem: PackedProblem, rule: int) -> None:
        self.rule = rule
        self._problem = problem
        n, d = problem.shape
        self._work = new_work(n, d)
        self._pool = Pool(n, d, _ROOM)
        self._look_at(new_frontier(n, d, _ROOM))
        self.passed: dict[int, float] = {}
        """What the upper bound was at the marks of a race."""

    def _look_at(self, frontier: Record[Frontier]) -> None:
        # Single words are asked for all the time, and a view takes longer than to read one.
        self._frontier, self._words = frontier, frontier.words
        self._counts = frontier.view("counts")
        self._top = frontier.layout.spans["bounds"][0].start

    @property
    def nodes(self) -> int:
        return int(self._counts.item(NODES))

    @property
    def lower(self) -> float:
        """The largest value that was found."""
        return self._words.item(LOWER)

    @property
    def point(self) -> Floats | None:
        """Where it was found."""
        found: Floats = self._frontier.view("point")
        return None if self.lower == -math.inf else found.copy()

    @property
    def settled(self) -> float:
        """A bound on everything that is not in an open node."""
        return self._words.item(SETTLED)

    @property
    def upper(self) -> float:
        """A certified bound on the largest value, at any moment."""
        upper = self._words.item(SETTLED)
        if self._counts.item(OPEN):
            upper = max(upper, self._words.item(self._top))
        if self._counts.item(HALF) < 2:
            # The parent is no longer open, and its halves are not yet made.
            upper = max(upper, self._words.item(ABOVE))
        return upper

    def pursue(self, tolerance: float, nodes: int, enough: float, tick: Tick | None) -> None:
        """Go on until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        Or until nothing moves.
        """
        # Now and then Python has its turn, for whoever wants to interrupt it.
        while self._go_on(tolerance, nodes, enough, _TICK):
            if tick is not None:
                tick()

    def offer(self, value: float, point: Floats | None) -> None:
        """A point that was found elsewhere, and its value."""
        if value > self.lower and point is not None:
            self._words[LOWER] = value
            self._frontier.view("point")[:] = point

    def _go_on(self, tolerance: float, nodes: int, enough: float, steps: int) -> bool:
        """Make up to so many nodes; whether there is more to do."""
        came_to = entries.pursue(
            self._problem, self._work, self._pool, self._frontier, self.rule, self.cutting, nodes,
            _PATIENCE, steps, tolerance, enough,
        )  # fmt: skip
        if came_to == FULL:
            self._extend()
        return came_to != DONE

    def _extend(self) -> None:
        n, d = self._problem.shape
        self._pool.double()
        self._look_at(roomier(self._frontier, n, d, len(self._pool)))


class Search:
    """The largest value of one problem, as an enclosure that narrows.

    Splitting scores and splitting coordinates can differ by orders of magnitude, in favour of
    either; a short race decides.
    """

    def __init__(self, problem: PackedProblem, rules: Sequence[int] = ()) -> None:
        self._problem = problem
        self.size = of_node(*problem.shape)
        """How much work a node is."""
        self.begun = of_root(*problem.shape)
        """How much more it is to begin."""
        first, *others = rules or suitable_rules(problem)
        self._trees = [Tree(problem, first)]
        self._others = others
        self._dropped = 0
        self._restarted = 0
        self._ceiling = math.inf

    @property
    def nodes(self) -> int:
        return self._dropped + sum([tree.nodes for tree in self._trees])

    @property
    def rule(self) -> int:
        """The branching rule that does best so far."""
        return self._trees[0].rule

    @property
    def lower(self) -> float:
        return self.reached - self._problem.total_error

    @property
    def reached(self) -> float:
        """The largest value that was found, as computed."""
        return max([tree.lower for tree in self._trees])

    @property
    def point(self) -> Floats | None:
        """Where it was found."""
        return max(self._trees, key=lambda tree: tree.lower).point

    @property
    def upper(self) -> float:
        return min([self._ceiling, *[tree.upper for tree in self._trees]])

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Go on until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        ``nodes`` limits each tree. ``tick`` is called now and then.
        """
        settled = max([tree.settled for tree in self._trees])
        if self._trees[0].nodes and settled > self.reached + tolerance:
            self._restart()
        nodes = max(0, nodes - self._restarted)

        def walk(tree: Tree, stage: int) -> None:
            tree.pursue(tolerance, min(stage, nodes), enough, tick)

        # Among corners the first bounds are the worst, and say little about later ones.
        for ahead, behind in _HEATS[self.rule == CORNERS :]:
            racing = nodes >= _FEW and (len(self._trees) > 1 or self._others)
            if racing and self._heat(walk, ahead, behind, tolerance, enough):
                return
        walk(self._trees[0], nodes)

    def _restart(self) -> None:
        """Start again: what was settled for a larger tolerance is too coarse for this one."""
        tree, best, point = self._trees[0], self.reached, self.point
        self._ceiling = self.upper
        self._dropped += sum(old.nodes for old in self._trees)
        self._restarted += tree.nodes
        self._others += [old.rule for old in self._trees[1:]]
        self._trees = [Tree(self._problem, tree.rule)]
        self._trees[0].offer(best, point)

    def _heat(
        self, walk: Callable[[Tree, int], None], ahead: int, behind: int, tolerance: float,
        enough: float,
    ) -> bool:  # fmt: skip
        """A part of the race; whether its first one is at the end."""
        first = self._trees[0]
        for mark in (*_MARKS, ahead):
            walk(first, mark)
            if first.upper <= first.lower + tolerance or first.lower > enough:
                return True
            if first.nodes >= mark:
                first.passed.setdefault(mark, first.upper)
        if self._others:
            self._trees.append(Tree(self._problem, self._others.pop()))
        second = self._trees[1]
        second.offer(first.lower, first.point)
        lost = any(self._is_behind(walk, mark) for mark in _MARKS)
        if not lost:
            walk(second, behind)
        first.offer(second.lower, second.point)
        ours, theirs = first.upper - first.lower, second.upper - second.lower
        if lost or min(ours, theirs) < 0.75 * max(ours, theirs) or ahead == _HEATS[-1][0]:
            winner, loser = (first, second) if lost or ours < theirs else (second, first)
            self._trees = [winner]
            self._dropped += loser.nodes
        return False

    def _is_behind(self, walk: Callable[[Tree, int], None], mark: int) -> bool:
        """Let the second one walk to a mark; whether it is well behind of what the first was."""
        first, second = self._trees
        if second.nodes >= mark or mark not in first.passed:
            return False
        walk(second, mark)
        there = first.passed[mark] - self.reached
        return second.nodes >= mark and second.upper - self.reached > _BEHIND * there


def suitable_rules(problem: PackedProblem, *, corners: bool = True) -> list[int]:
    """One branching rule, or two that race; with ``corners`` only those, if they are enough."""
    if corners and problem.clipped_falling < ROUNDING_ALONE:
        return [CORNERS, SCORES_FIRST]
    if problem.shape[1] <= _FEW_COORDINATES:
        return [COORDINATES_ONLY]
    return [SCORES_FIRST, COORDINATES_ONLY]


_MOST_ENUMERATED = 12
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
        if clipped >= ROUNDING_ALONE or problem.free > _MOST_ENUMERATED:
            return None
        return cls(problem, clipped)

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Nothing is left to do."""


_MOST_SEARCHED = 20


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
        if clipped >= ROUNDING_ALONE or problem.free > _MOST_SEARCHED:
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
