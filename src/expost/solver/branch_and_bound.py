"""Best-first branch and bound for one problem: certified bounds on the largest value.

It is limited by nodes, never by a clock, so that the same problem always gives the same bits.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from expost.solver.kernels import entries
from expost.solver.kernels.branching import COORDINATES_ONLY, CORNERS, SCORES_FIRST
from expost.solver.kernels.layout import (
    TIGHTENED,
    VALUE,
    VARIABLE,
    Floats,
    PackedProblem,
    Pool,
    new_work,
)
from expost.solver.work import of_node, of_root

__all__ = ["ROUNDING_ALONE", "Search", "Tick", "Tree", "suitable_rules"]

Tick = Callable[[], None]

_FEW_COORDINATES = 4
_ROOM = 64
_TICK = 256
_HEATS = (16, 50, 200, 800)
_PATIENCE = 500
_STILL, _NOTHING = 0.999, 1e-9

ROUNDING_ALONE = 1e-9
"""If clipping changes a sum by less than this, the sum counts as convex, or concave."""


class Tree:
    """A search tree under one branching rule."""

    cutting = True
    """Whether nodes are tightened if that is known to cut off nothing of interest."""

    def __init__(self, problem: PackedProblem, rule: int) -> None:
        n, d = problem.shape
        self.nodes = 0
        self.lower = -math.inf
        self.rule = rule
        self._problem = problem
        self._work = new_work(n, d)
        self._found, self._branch = self._work.view("found"), self._work.view("branch")
        self._trial = self._work.view("trial")
        self.point: Floats | None = None
        """Where the largest value was found."""
        self._pool = Pool(n, d, _ROOM)
        self._free = list(range(_ROOM - 1, -1, -1))
        self._open: list[tuple[float, int, int]] = []
        self._gap = math.inf
        self._idle = 0
        self.settled = math.inf
        """A bound on everything that is not in an open node."""

    @property
    def upper(self) -> float:
        """A certified bound on the largest value."""
        return max(self.settled, -self._open[0][0]) if self._open else self.settled

    def pursue(self, tolerance: float, nodes: int, enough: float, tick: Tick | None) -> None:
        """Go on until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        Or until nothing moves.
        """
        if not self.nodes:
            self.settled = -math.inf
            self._make(0, -1, 0, math.inf, -math.inf, tolerance)
        while (
            self._open
            and self.nodes < nodes
            and self._idle < _PATIENCE
            and self.lower <= enough
            and -self._open[0][0] > max(self.settled, self.lower + tolerance)
        ):
            bound, level, parent = heapq.heappop(self._open)
            worse = -math.inf
            for half in (0, 1):
                cut = self.lower + tolerance
                made = self._make(parent, half, level + 1, -bound, cut, tolerance)
                worse = max(worse, made)
            self._free.append(parent)
            self._watch(-bound - worse)
            if tick is not None and self.nodes % _TICK < 2:
                tick()

    def _watch(self, gained: float) -> None:
        """Count splits in a row that gained nothing.

        If coordinates are so large that scores drown in their rounding, there are hundreds of them,
        and the search is hopeless. Otherwise there are hardly ever two.
        """
        gap = self.upper - self.lower
        if gap < _STILL * self._gap:
            self._gap, self._idle = gap, 0
        elif not gained > _NOTHING * gap:
            self._idle += 1

    def offer(self, value: float, point: Floats | None) -> None:
        """A point that was found elsewhere, and its value."""
        if value > self.lower:
            self.lower, self.point = value, point

    def _make(
        self, parent: int, half: int, level: int, above: float, cut: float, tolerance: float
    ) -> float:
        if not self._free:
            self._extend()
        slot = self._free.pop()
        bound = self._grow(parent, half, slot, level, above, cut, tolerance)
        self.nodes += 1
        value = float(self._found[VALUE])
        if value > self.lower:
            self.offer(value, self._trial.copy())
        if self._found[TIGHTENED]:
            self.settled = max(self.settled, cut)
        bound = min(bound, above)
        if bound > cut and self._branch[VARIABLE] >= 0:
            heapq.heappush(self._open, (-bound, level, slot))
        else:
            self.settled = max(self.settled, bound)
            self._free.append(slot)
        return bound

    def _grow(
        self,
        parent: int,
        half: int,
        slot: int,
        level: int,
        above: float,
        cut: float,
        tolerance: float,
    ) -> float:
        lower = self.lower if self.nodes else -1e300
        return entries.grow(
            self._problem, self._work, self._pool, parent, half, slot, self.rule, self.cutting,
            level, lower, cut, tolerance, above,
        )  # fmt: skip

    def _extend(self) -> None:
        size = len(self._pool)
        self._pool.double()
        self._free.extend(range(2 * size - 1, size - 1, -1))


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
        return self._dropped + sum(tree.nodes for tree in self._trees)

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
        return max(tree.lower for tree in self._trees)

    @property
    def point(self) -> Floats | None:
        """Where it was found."""
        return max(self._trees, key=lambda tree: tree.lower).point

    @property
    def upper(self) -> float:
        return min(self._ceiling, *(tree.upper for tree in self._trees))

    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None:
        """Go on until the gap is closed, the nodes are used up, or ``enough`` is exceeded.

        ``nodes`` limits each tree. ``tick`` is called now and then.
        """
        if any(tree.settled > self.reached + tolerance for tree in self._trees):
            self._restart()
        nodes = max(0, nodes - self._restarted)
        # Among corners the first bounds are the worst, and say little about later ones.
        for stage in _HEATS[self.rule == CORNERS :]:
            racing = len(self._trees) > 1 or self._others
            if racing and self._heat(stage, tolerance, nodes, enough, tick):
                return
        self._trees[0].pursue(tolerance, nodes, enough, tick)

    def _restart(self) -> None:
        """Start again: what was settled for a larger tolerance is too coarse for this one."""
        tree, best, point = self._trees[0], self.reached, self.point
        if not tree.nodes:
            return
        self._ceiling = self.upper
        self._dropped += sum(old.nodes for old in self._trees)
        self._restarted += tree.nodes
        self._others += [old.rule for old in self._trees[1:]]
        self._trees = [Tree(self._problem, tree.rule)]
        self._trees[0].offer(best, point)

    def _heat(
        self, stage: int, tolerance: float, nodes: int, enough: float, tick: Tick | None
    ) -> bool:
        """A part of the race; whether its first one is at the end."""
        first = self._trees[0]
        first.pursue(tolerance, min(stage, nodes), enough, tick)
        if first.upper <= first.lower + tolerance or first.lower > enough:
            return True
        if self._others:
            self._trees.append(Tree(self._problem, self._others.pop()))
        second = self._trees[1]
        second.offer(first.lower, first.point)
        second.pursue(tolerance, min(stage, nodes), enough, tick)
        first.offer(second.lower, second.point)
        ours, theirs = first.upper - first.lower, second.upper - second.lower
        if min(ours, theirs) < 0.75 * max(ours, theirs) or stage == _HEATS[-1]:
            winner, loser = self._trees if ours < theirs else self._trees[::-1]
            self._trees = [winner]
            self._dropped += loser.nodes
        return False


def suitable_rules(problem: PackedProblem, *, corners: bool = True) -> list[int]:
    """One branching rule, or two that race; with ``corners`` only those, if they are enough."""
    if corners and problem.clipped_falling < ROUNDING_ALONE:
        return [CORNERS, SCORES_FIRST]
    if problem.shape[1] <= _FEW_COORDINATES:
        return [COORDINATES_ONLY]
    return [SCORES_FIRST, COORDINATES_ONLY]
