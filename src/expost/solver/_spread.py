"""The spread max ℓ - min ℓ over a box, as an enclosure that narrows during the search.

Queries that share no coordinate form separate blocks, whose extrema add up exactly. Each block has
two searches, one for its largest and one for its smallest log-likelihood. Proof:
docs/theory/extrema.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from expost.domains import Box, Integers, Point
from expost.numbers import Enclosure, double_above, down, up
from expost.solver._effort import Effort, Progress, setup_work
from expost.solver._methods import Maximizer, Tick, choose_maximizer
from expost.solver._problem import BoxColumns, TermArrays, merge_windows, pack_both_directions
from expost.terms import ScoreTerm

__all__ = ["BoxSpread", "independent_blocks"]

_FIRST_NODES = 4
_FIRST_TOLERANCE = 1e-4


class BoxSpread:
    """Searches for the extremes of a sum of terms over a box."""

    def __init__(self, terms: Iterable[ScoreTerm], box: Box) -> None:
        counted = terms if isinstance(terms, Counter) else Counter(terms)
        # Every sampled weight is within its error of its term, at both ends of the spread.
        self.error = up(2 * math.fsum([up(term.error * n) for term, n in counted.items()]))
        merged, constant = merge_windows(counted)
        self._constants = (0.0, 0.0)
        if constant:
            self._constants = double_above(constant), double_above(-constant)
        pairs = list(merged.items())
        self._box = box
        self._blocks = [
            (columns, BoxColumns.of(box, columns), [pairs[i] for i in block])
            for columns, block in independent_blocks(pairs, box)
        ]
        problems = [
            pack_both_directions(TermArrays.of(block, columns), ends)
            for columns, ends, block in self._blocks
        ]
        self._sides: list[list[Maximizer]] = [
            [choose_maximizer(pair[k]) for pair in problems] for k in (0, 1)
        ]
        roots = sum(search.root_work for side in self._sides for search in side)
        #: The work of preparing the searches.
        self.setup_work = setup_work(len(pairs), len(box.columns)) + roots

    @property
    def enclosure(self) -> Enclosure:
        """The enclosure of the spread so far."""
        searches = [search for side in self._sides for search in side]
        lower = down(down(math.fsum([search.lower for search in searches])) - self.error)
        upper = up(up(math.fsum([search.upper for search in searches])) + self.error)
        return Enclosure(max(0.0, lower), max(0.0, upper))

    @property
    def highest_at(self) -> Point:
        """The point with the largest sum so far, by the columns of the box."""
        return self._joint_point(self._sides[0])

    @property
    def lowest_at(self) -> Point:
        """The point with the smallest sum so far, by the columns of the box."""
        return self._joint_point(self._sides[1])

    def _joint_point(self, searches: list[Maximizer]) -> Point:
        """Combine the best points of all blocks; other coordinates make no difference."""
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
        """Values that both certainly reach, approximately."""
        first, second = (
            math.fsum(search.lower for search in side) + constant
            for side, constant in zip(self._sides, self._constants, strict=True)
        )
        return first, second

    @property
    def unsettled(self) -> float:
        """How much further searches could narrow the enclosure."""
        return math.fsum(search.upper - search.lower for side in self._sides for search in side)

    @property
    def nodes(self) -> int:
        return sum(search.nodes for side in self._sides for search in side)

    def narrow(self, effort: Effort) -> None:
        """Search until the gap is reached or the nodes are used up."""

        def narrow_side(side: list[Maximizer], effort: Effort) -> None:
            # A little less than half of it, for the errors that are added in the end; but where
            # they are as large as the gap, no search can make up for them.
            gap = max(0.1 * effort.gap, 0.4995 * effort.gap - self.error)
            for later, search in zip(range(len(side) - 1, -1, -1), side, strict=True):
                tolerance = gap / (later + 1)
                self._advance(search, tolerance, effort)
                if later:
                    gap -= min(tolerance, search.upper - search.lower)

        # Neither side knows how much the other uses, so that two threads give the same result.
        halves = effort.halves()
        if effort.threads > 1:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(narrow_side, self._sides, halves))
        else:
            for side, half in zip(self._sides, halves, strict=True):
                narrow_side(side, half)
        effort.join(halves)

    def compare(self, limit: float, effort: Effort) -> None:
        """Search until the spread is known to be within the limit, or above it."""
        searches = [search for side in self._sides for search in side]
        first_look = effort.with_node_limit(_FIRST_NODES)
        for search in searches:
            # Only once: a search that settled nodes at a larger tolerance has to start again.
            if not search.nodes:
                self._advance(search, _FIRST_TOLERANCE, first_look)
        moved = True
        while moved and not effort.used_up:
            moved = False
            searches.sort(key=lambda search: search.upper - search.lower)
            spent = 0.0
            for index, search in enumerate(searches):
                enclosure = self.enclosure
                if enclosure.upper <= limit or enclosure.lower > limit:
                    return
                # If every gap stays within its part of the slack, the spread is within the limit.
                slack = limit - enclosure.lower
                tolerance = 0.9 * max(0.0, slack - spent) / (len(searches) - index)
                before = search.nodes
                self._advance(search, tolerance, effort, search.lower + slack)
                spent += search.upper - search.lower
                moved = moved or search.nodes > before

    def _advance(
        self, search: Maximizer, tolerance: float, effort: Effort, enough: float = math.inf
    ) -> None:
        before = search.nodes
        search.advance(
            tolerance, effort.limit(before, search.node_work), enough, self._tick(effort)
        )
        effort.charge(search.nodes - before, search.node_work)

    def _tick(self, effort: Effort) -> Tick | None:
        report = effort.progress
        return None if report is None else lambda: report(Progress(self.nodes, self.enclosure))


def independent_blocks(
    terms: Sequence[tuple[ScoreTerm, int]], box: Box
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the coordinates and the terms of every block, both by index.

    Blocks share no coordinates except fixed ones. Constant terms belong to no block.
    """
    free = [side.lower < side.upper for side in box.columns]
    # In the order of the box, so that equal boxes have equal enclosures.
    moving = [j for j in box.order if free[j]]
    used_by: list[Sequence[float]] = [term.weights for term, _ in terms]
    if len(moving) < len(free):
        used_by = [[weights[j] for j in moving] for weights in used_by]
    if any(map(all, used_by)):
        # A term with all coordinates links all terms, except constant ones.
        linked = [i for i, used in enumerate(used_by) if any(used)]
        if linked:
            yield list(box.order), linked
        return
    disjoint: list[tuple[set[int], list[int]]] = []
    for index, (term, _) in enumerate(terms):
        used = {j for j, weight in enumerate(term.weights) if weight}
        used.update(*(group for group in box.groups if not used.isdisjoint(group)))
        varying = {j for j in used if free[j]}
        linked_blocks = [block for block in disjoint if not varying.isdisjoint(block[0])]
        if linked_blocks:
            first, *merged = linked_blocks
            first[0].update(used)
            first[1].append(index)
            for block in merged:
                first[0].update(block[0])
                first[1].extend(block[1])
                disjoint.remove(block)
        elif varying:
            disjoint.append((used, [index]))
    for used, term_indices in disjoint:
        yield [j for j in box.order if j in used], term_indices
