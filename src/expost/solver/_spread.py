"""The spread max ℓ - min ℓ over a box, as an enclosure that narrows as the search goes on.

Queries that share no coordinate fall into blocks, whose extrema add up exactly. Each block has
two searches, one for its largest and one for its smallest log-likelihood. Proof:
docs/theory/extrema.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from expost.domains import Box, Integers, Point
from expost.numbers import Enclosure, double_above, down, up
from expost.solver._effort import Effort, Progress, of_set_up
from expost.solver._methods import Convex, Corners, Search, Summit, Tick
from expost.solver._problem import Columns, TermArrays, both_directions, joined
from expost.solver.kernels.layout import Floats, PackedProblem
from expost.terms import ScoreTerm

__all__ = ["BoxSpread", "blocks"]

_GLANCE = 4
_FINE = 1e-4


class Maximum(Protocol):
    """A certified enclosure of the largest value of one problem."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def point(self) -> Floats | None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def size(self) -> float: ...
    @property
    def begun(self) -> float: ...
    def pursue(
        self, tolerance: float, nodes: int, enough: float = math.inf, tick: Tick | None = None
    ) -> None: ...


class BoxSpread:
    """Searches for the extremes of a sum of terms over a box."""

    def __init__(self, given: Iterable[ScoreTerm], box: Box) -> None:
        counted = given if isinstance(given, Counter) else Counter(given)
        # Each weight that is sampled is within its error of its term, at both ends of the spread.
        self.error = up(2 * math.fsum([up(term.error * n) for term, n in counted.items()]))
        together, constant = joined(counted)
        self._constants = (0.0, 0.0)
        if constant:
            self._constants = double_above(constant), double_above(-constant)
        terms = list(together.items())
        self._box = box
        self._blocks = [
            (columns, Columns.of(box, columns), [terms[i] for i in block])
            for columns, block in blocks(terms, box)
        ]
        pairs = [
            both_directions(TermArrays.of(block, columns), ends)
            for columns, ends, block in self._blocks
        ]
        self._sides: list[list[Maximum]] = [[_maximum(pair[k]) for pair in pairs] for k in (0, 1)]
        begun = (search.begun for side in self._sides for search in side)
        self.set_up = of_set_up(len(terms), len(box.columns)) + sum(begun)
        """How much work it was to begin."""

    @property
    def enclosure(self) -> Enclosure:
        """The enclosure of the spread so far."""
        searches = [search for side in self._sides for search in side]
        lower = down(down(math.fsum([search.lower for search in searches])) - self.error)
        upper = up(up(math.fsum([search.upper for search in searches])) + self.error)
        return Enclosure(max(0.0, lower), max(0.0, upper))

    @property
    def highest_at(self) -> Point:
        """The point with the largest sum that was found, by the columns of the box."""
        return self._at(self._sides[0])

    @property
    def lowest_at(self) -> Point:
        """The point with the smallest sum that was found, by the columns of the box."""
        return self._at(self._sides[1])

    def _at(self, searches: list[Maximum]) -> Point:
        """What was found in every block; other coordinates make no difference."""
        point = [float(column.lower) for column in self._box.columns]
        for group in self._box.groups:
            point[group[0]] = 1.0
        for (columns, ends, _), search in zip(self._blocks, searches, strict=True):
            if search.point is None:
                continue
            inside = np.clip(np.ldexp(search.point, ends.exponents), ends.lo, ends.hi)
            for column, x in zip(columns, inside.tolist(), strict=True):
                point[column] = x
        kinds = zip(self._box.columns, point, strict=True)
        return tuple(int(x) if isinstance(column, Integers) else x for column, x in kinds)

    @property
    def uppers(self) -> tuple[float, float]:
        """Bounds on the largest sum and on the largest of its negative, without the error."""
        first, second = (
            up(up(math.fsum(search.upper for search in side)) + constant)
            for side, constant in zip(self._sides, self._constants, strict=True)
        )
        return first, second

    @property
    def lowers(self) -> tuple[float, float]:
        """What both certainly reach, approximately."""
        first, second = (
            math.fsum(search.lower for search in side) + constant
            for side, constant in zip(self._sides, self._constants, strict=True)
        )
        return first, second

    @property
    def unsettled(self) -> float:
        """How much further searching could narrow it."""
        return math.fsum(search.upper - search.lower for side in self._sides for search in side)

    @property
    def nodes(self) -> int:
        return sum(search.nodes for side in self._sides for search in side)

    def narrow(self, effort: Effort) -> None:
        """Search until the gap is reached or the nodes are used up."""

        def one(side: list[Maximum], effort: Effort) -> None:
            # A little less than half of it, for the errors that are added in the end; but where
            # they are as large as the gap, no search can make up for them.
            left = max(0.1 * effort.gap, 0.4995 * effort.gap - self.error)
            for after, search in zip(range(len(side) - 1, -1, -1), side, strict=True):
                tolerance = left / (after + 1)
                self._pursue(search, tolerance, effort)
                if after:
                    left -= min(tolerance, search.upper - search.lower)

        # Neither side knows how much the other one takes, so that two threads find the same.
        halves = effort.halves()
        if effort.threads > 1:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, self._sides, halves))
        else:
            for side, half in zip(self._sides, halves, strict=True):
                one(side, half)
        effort.join(halves)

    def compare(self, limit: float, effort: Effort) -> None:
        """Search until the spread is known to be within the limit, or above it."""
        searches = [search for side in self._sides for search in side]
        glance = effort.glance(_GLANCE)
        for search in searches:
            # Only once: a search that settled things for a larger tolerance has to start again.
            if not search.nodes:
                self._pursue(search, _FINE, glance)
        moved = True
        while moved and not effort.used_up:
            moved = False
            searches.sort(key=lambda search: search.upper - search.lower)
            spent = 0.0
            for place, search in enumerate(searches):
                now = self.enclosure
                if now.upper <= limit or now.lower > limit:
                    return
                # If every gap keeps within its part of the slack, the spread is within the limit.
                slack = limit - now.lower
                tolerance = 0.9 * max(0.0, slack - spent) / (len(searches) - place)
                before = search.nodes
                enough = search.lower + slack
                self._pursue(search, tolerance, effort, enough)
                spent += search.upper - search.lower
                moved = moved or search.nodes > before

    def _pursue(
        self, search: Maximum, tolerance: float, effort: Effort, enough: float = math.inf
    ) -> None:
        before = search.nodes
        search.pursue(tolerance, effort.limit(before, search.size), enough, self._tick(effort))
        effort.charge(search.nodes - before, search.size)

    def _tick(self, effort: Effort) -> Tick | None:
        report = effort.progress
        if report is None:
            return None
        return lambda: report(Progress(self.nodes, self.enclosure))


def _maximum(problem: PackedProblem) -> Maximum:
    found = Corners.of(problem) or Convex.of(problem) or Summit.of(problem)
    return found or Search(problem)


def blocks(
    terms: Sequence[tuple[ScoreTerm, int]], box: Box
) -> Iterator[tuple[list[int], list[int]]]:
    """Terms that share no coordinate but fixed ones, and the coordinates that they use.

    Both by index. Terms that are constant belong to no block.
    """
    free = [side.lower < side.upper for side in box.columns]
    # Not as they come: equal boxes have equal enclosures.
    moving = [j for j in box.order if free[j]]
    used_by: list[Sequence[float]] = [term.weights for term, _ in terms]
    if len(moving) < len(free):
        used_by = [[weights[j] for j in moving] for weights in used_by]
    if any(map(all, used_by)):
        # One term with all coordinates links all others, but for those that are constant.
        linked = [i for i, used in enumerate(used_by) if any(used)]
        if linked:
            yield list(box.order), linked
        return
    found: list[tuple[set[int], list[int]]] = []
    for index, (term, _) in enumerate(terms):
        used = {j for j, weight in enumerate(term.weights) if weight}
        used.update(*(group for group in box.groups if not used.isdisjoint(group)))
        varying = {j for j in used if free[j]}
        joined = [block for block in found if not varying.isdisjoint(block[0])]
        if joined:
            first, *others = joined
            first[0].update(used)
            first[1].append(index)
            for other in others:
                first[0].update(other[0])
                first[1].extend(other[1])
                found.remove(other)
        elif varying:
            found.append((used, [index]))
    for used, block in found:
        yield [j for j in box.order if j in used], block
