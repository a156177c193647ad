"""Four methods to maximize one problem, each a certified enclosure that narrows.

A convex sum is largest at a corner, and a tangent bounds a concave one: neither needs a search.
Unclipped linear queries are concave in the score, so both occur: corners for their smallest
log-likelihood, tangents for their largest. Everything else takes best-first branch and bound. It is
limited by nodes, never by a clock, so equal problems give equal bits. Proof:
docs/theory/extrema.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from expost.solver._effort import node_work, root_work
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
    NodePool,
    PackedProblem,
    PackedRecord,
    enlarged_frontier,
    new_frontier,
    new_workspace,
)
from expost.solver.kernels.trees import DONE, FULL

__all__ = [
    "CORNERS_PER_NODE",
    "ROUNDING_ALONE",
    "BranchAndBound",
    "ConcaveMaximizer",
    "ConvexMaximizer",
    "CornerEnumeration",
    "Maximizer",
    "SearchTree",
    "Tick",
    "choose_maximizer",
    "suitable_rules",
]


Tick = Callable[[], None]

_FEW_COORDINATES = 4
_ROOM = 64
_TICK = 256
# The nodes of both rules at the end of each stage of a race. The first rule is better far more
# often, and its nodes take half the time, so it goes ahead.
_STAGES = ((32, 16), (64, 64), (200, 200), (800, 800))
# Counts of nodes at which the second rule is compared with the first at the same count.
_MARKS = (5, 9)
_BEHIND = 1.1
# With fewer nodes there is no race: on a wide box a root of the second rule takes long.
_RACE_NODES = 4
_PATIENCE = 500

#: If clipping changes a sum by less than this, the sum counts as convex, or concave.
ROUNDING_ALONE = 1e-9


class SearchTree:
    """A search tree under one branching rule."""

    #: Whether nodes are tightened where that certainly cuts off nothing of interest.
    cutting = True

    def __init__(self, problem: PackedProblem, rule: int) -> None:
        self.rule = rule
        self._problem = problem
        n, d = problem.shape
        self._work = new_workspace(n, d)
        self._pool = NodePool(n, d, _ROOM)
        self._use_frontier(new_frontier(n, d, _ROOM))
        #: The upper bound at each mark of a race.
        self.upper_at_mark: dict[int, float] = {}

    def _use_frontier(self, frontier: PackedRecord[Frontier]) -> None:
        # Single words are read all the time, and making a view takes longer than reading one.
        self._frontier, self._words = frontier, frontier.words
        self._counts = frontier.view("counts")
        self._first_bound = frontier.layout.spans["bounds"][0].start

    @property
    def nodes(self) -> int:
        return int(self._counts.item(NODES))

    @property
    def lower(self) -> float:
        """The best value so far."""
        return self._words.item(LOWER)

    @property
    def point(self) -> Floats | None:
        """A point with the best value."""
        incumbent: Floats = self._frontier.view("point")
        return None if self.lower == -math.inf else incumbent.copy()

    @property
    def settled(self) -> float:
        """A bound on everything that is not in an open node."""
        return self._words.item(SETTLED)

    @property
    def upper(self) -> float:
        """A certified bound on the largest value, at any moment."""
        upper = self._words.item(SETTLED)
        if self._counts.item(OPEN):
            upper = max(upper, self._words.item(self._first_bound))
        if self._counts.item(HALF) < 2:
            # The parent is no longer open, and its halves are not made yet.
            upper = max(upper, self._words.item(ABOVE))
        return upper

    def advance(self, tolerance: float, nodes: int, enough: float, tick: Tick | None) -> None:
        """Search until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        The search also stops when nothing moves any longer.
        """
        # Control returns to Python regularly, so that the search can be interrupted.
        while self._make_nodes(tolerance, nodes, enough, _TICK):
            if tick is not None:
                tick()

    def accept_incumbent(self, value: float, point: Floats | None) -> None:
        """Take a point of another search, if its value is better."""
        if value > self.lower and point is not None:
            self._words[LOWER] = value
            self._frontier.view("point")[:] = point

    def _make_nodes(self, tolerance: float, nodes: int, enough: float, steps: int) -> bool:
        """Make up to ``steps`` nodes; return whether the search can continue."""
        outcome = entries.advance(
            self._problem, self._work, self._pool, self._frontier, self.rule, self.cutting, nodes,
            _PATIENCE, steps, tolerance, enough,
        )  # fmt: skip
        if outcome == FULL:
            self._extend()
        return outcome != DONE

    def _extend(self) -> None:
        n, d = self._problem.shape
        self._pool.double()
        self._use_frontier(enlarged_frontier(self._frontier, n, d, len(self._pool)))


class BranchAndBound:
    """Best-first branch and bound for one problem.

    Splitting scores and splitting coordinates can differ by orders of magnitude, in favor of
    either; a short race decides.
    """

    def __init__(self, problem: PackedProblem, rules: Sequence[int] = ()) -> None:
        self._problem = problem
        #: The work of a node.
        self.node_work = node_work(*problem.shape)
        #: The additional work of the root.
        self.root_work = root_work(*problem.shape)
        first, *unused = rules or suitable_rules(problem)
        self._trees = [SearchTree(problem, first)]
        self._unused_rules = unused
        self._dropped = 0
        self._restarted = 0
        self._ceiling = math.inf

    @property
    def nodes(self) -> int:
        return self._dropped + sum([tree.nodes for tree in self._trees])

    @property
    def rule(self) -> int:
        """The best branching rule so far."""
        return self._trees[0].rule

    @property
    def lower(self) -> float:
        return self.incumbent - self._problem.total_error

    @property
    def incumbent(self) -> float:
        """The best value so far, as computed."""
        return max([tree.lower for tree in self._trees])

    @property
    def point(self) -> Floats | None:
        """A point with the best value."""
        return max(self._trees, key=lambda tree: tree.lower).point

    @property
    def upper(self) -> float:
        return min([self._ceiling, *[tree.upper for tree in self._trees]])

    def advance(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Search until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        ``nodes`` limits each tree. ``tick`` is called regularly.
        """
        settled = max([tree.settled for tree in self._trees])
        if self._trees[0].nodes and settled > self.incumbent + tolerance:
            self._restart()
        nodes = max(0, nodes - self._restarted)

        def search(tree: SearchTree, stage: int) -> None:
            tree.advance(tolerance, min(stage, nodes), enough, tick)

        # Under the rule for corners the first bounds are the worst, and predict later ones badly.
        for ahead, behind in _STAGES[self.rule == CORNERS :]:
            racing = nodes >= _RACE_NODES and (len(self._trees) > 1 or self._unused_rules)
            if racing and self._race(search, ahead, behind, tolerance, enough):
                return
        search(self._trees[0], nodes)

    def _restart(self) -> None:
        """Start again, because nodes settled at a larger tolerance are too coarse for this one."""
        tree, best, point = self._trees[0], self.incumbent, self.point
        self._ceiling = self.upper
        self._dropped += sum(old.nodes for old in self._trees)
        self._restarted += tree.nodes
        self._unused_rules += [old.rule for old in self._trees[1:]]
        self._trees = [SearchTree(self._problem, tree.rule)]
        self._trees[0].accept_incumbent(best, point)

    def _race(
        self, search: Callable[[SearchTree, int], None], ahead: int, behind: int, tolerance: float,
        enough: float,
    ) -> bool:  # fmt: skip
        """Run a stage of the race; return whether the first rule has finished the search."""
        first = self._trees[0]
        for mark in (*_MARKS, ahead):
            search(first, mark)
            if first.upper <= first.lower + tolerance or first.lower > enough:
                return True
            if first.nodes >= mark:
                first.upper_at_mark.setdefault(mark, first.upper)
        if self._unused_rules:
            self._trees.append(SearchTree(self._problem, self._unused_rules.pop()))
        second = self._trees[1]
        second.accept_incumbent(first.lower, first.point)
        lost = any(self._is_behind(search, mark) for mark in _MARKS)
        if not lost:
            search(second, behind)
        first.accept_incumbent(second.lower, second.point)
        ours, theirs = first.upper - first.lower, second.upper - second.lower
        if lost or min(ours, theirs) < 0.75 * max(ours, theirs) or ahead == _STAGES[-1][0]:
            winner, loser = (first, second) if lost or ours < theirs else (second, first)
            self._trees = [winner]
            self._dropped += loser.nodes
        return False

    def _is_behind(self, search: Callable[[SearchTree, int], None], mark: int) -> bool:
        """Run the second rule to a mark; return whether it is well behind the first one there."""
        first, second = self._trees
        if second.nodes >= mark or mark not in first.upper_at_mark:
            return False
        search(second, mark)
        first_gap = first.upper_at_mark[mark] - self.incumbent
        return second.nodes >= mark and second.upper - self.incumbent > _BEHIND * first_gap


def suitable_rules(problem: PackedProblem, *, corners: bool = True) -> list[int]:
    """Choose one branching rule, or two that race.

    With ``corners``, a convex problem gets the rule for corners first.
    """
    if corners and problem.clipped_falling < ROUNDING_ALONE:
        return [CORNERS, SCORES_FIRST]
    if problem.shape[1] <= _FEW_COORDINATES:
        return [COORDINATES_ONLY]
    return [SCORES_FIRST, COORDINATES_ONLY]


#: The count of corners that take as long as a node of a search.
CORNERS_PER_NODE = 1 << 10


class CornerEnumeration:
    """The maximum of a convex problem with few corners, from all of them."""

    nodes = 0

    def __init__(self, problem: PackedProblem) -> None:
        best, self.point = entries.best_corner(problem)
        # The error covers products of many factors, and logarithms that are shifted in the end.
        error = 4 * problem.total_error + problem.clipped_falling
        self.lower, self.upper = best - error, best + error
        self.node_work = node_work(*problem.shape)
        self.root_work = self.node_work * (1 << problem.free_count) / CORNERS_PER_NODE

    def advance(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Do nothing: the maximum is known."""


class ConvexMaximizer:
    """The maximum of a convex problem, by a search or from all corners, which counts as a node."""

    def __init__(self, problem: PackedProblem) -> None:
        self._problem = problem
        self._patience = (1 << problem.free_count) // CORNERS_PER_NODE
        self._search = BranchAndBound(problem, [CORNERS])
        self.node_work, self.root_work = self._search.node_work, self._search.root_work
        self._corners: CornerEnumeration | None = None

    @property
    def nodes(self) -> int:
        return self._search.nodes + (self._corners is not None)

    @property
    def lower(self) -> float:
        return self._corners.lower if self._corners else self._search.lower

    @property
    def point(self) -> Floats | None:
        return self._corners.point if self._corners else self._search.point

    @property
    def upper(self) -> float:
        return self._corners.upper if self._corners else self._search.upper

    def advance(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Search until the gap is closed; if that takes long, enumerate all corners."""
        if self._corners or self.upper - self.lower <= tolerance:
            return
        self._search.advance(tolerance, min(nodes, self._patience), enough, tick)
        closed = self.upper - self.lower <= tolerance or self.lower > enough
        if not closed and nodes > self._patience:
            self._corners = CornerEnumeration(self._problem)


class ConcaveMaximizer:
    """The maximum of a concave problem. A climb counts as a node."""

    def __init__(self, problem: PackedProblem) -> None:
        self._problem = problem
        self.node_work = node_work(*problem.shape)
        self.root_work = 0.0
        self._error = 4 * problem.total_error + problem.clipped_rising
        self._climbs = 0
        self._value, self._gap = -math.inf, math.inf
        self._argmax: Floats | None = None
        self._search: BranchAndBound | None = None

    @property
    def nodes(self) -> int:
        return self._climbs + (self._search.nodes if self._search else 0)

    @property
    def lower(self) -> float:
        climbed = self._value - self._error
        return max(climbed, self._search.lower) if self._search else climbed

    @property
    def point(self) -> Floats | None:
        climbed = self._value - self._error
        if self._search and self._search.lower > climbed:
            return self._search.point
        return self._argmax

    @property
    def upper(self) -> float:
        proved = self._value + self._gap + self._error
        return min(proved, self._search.upper) if self._search else proved

    def advance(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Climb until the gap is closed; if that stalls, search."""
        if self.upper - self.lower <= tolerance:
            return
        if self._search is None:
            self._climb(tolerance - 2 * self._error)
            if self.upper - self.lower <= tolerance:
                return
            self._search = BranchAndBound(self._problem)
        self._search.advance(tolerance, nodes, enough, tick)

    def _climb(self, tolerance: float) -> None:
        self._climbs += 1
        ones = np.ones((1, self._problem.shape[0]))
        values, gaps, (self._argmax,) = entries.climb(self._problem, ones, tolerance)
        self._value, self._gap = float(values[0]), float(gaps[0])


#: A certified enclosure of the maximum of one problem, which narrows.
Maximizer = CornerEnumeration | ConvexMaximizer | ConcaveMaximizer | BranchAndBound

_MOST_ENUMERATED = 12
_MOST_SEARCHED = 20


def choose_maximizer(problem: PackedProblem) -> Maximizer:
    """Return the method for a problem, by its convexity and its count of corners."""
    is_convex = problem.clipped_falling < ROUNDING_ALONE
    if is_convex and problem.free_count <= _MOST_ENUMERATED:
        return CornerEnumeration(problem)
    if is_convex and problem.free_count <= _MOST_SEARCHED:
        return ConvexMaximizer(problem)
    if problem.clipped_rising < ROUNDING_ALONE and not problem.integer_count:
        return ConcaveMaximizer(problem)
    return BranchAndBound(problem)
