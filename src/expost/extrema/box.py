"""The spread max ℓ - min ℓ over a box, as an enclosure that narrows while it is worked on.

Queries that share no coordinate fall into blocks, whose extrema add up exactly. Each block has
two searches, one for its largest and one for its smallest log-likelihood. Proof:
docs/theory/extrema.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from expost.domains import Box, Integers
from expost.extrema.branch_and_bound import Search
from expost.extrema.corners import Corners
from expost.extrema.effort import Effort, Progress
from expost.extrema.kernels import Side
from expost.extrema.side import Sides, Term, both_sides
from expost.queries.score_term import ScoreTerm
from expost.rounding import Enclosure, down, up

__all__ = ["BoxSpread"]

_CHUNK = 256
_GLANCE = 4


class Maximum(Protocol):
    """A certified enclosure of the largest value of one side."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def nodes(self) -> int: ...
    def pursue(self, tolerance: float, nodes: int, enough: float = math.inf) -> None: ...


class BoxSpread:
    """Searches for the extremes of a sum of terms over a box."""

    def __init__(self, terms: Iterable[ScoreTerm], box: Box) -> None:
        counted = Counter(terms)
        # Each weight that is sampled is within its error of its term, at both ends of the spread.
        self._error = up(2 * math.fsum(up(term.error * n) for term, n in counted.items()))
        pairs = [both_sides(block, sides) for block, sides in _blocks(counted, box)]
        self._sides: list[list[Maximum]] = [[_maximum(pair[k]) for pair in pairs] for k in (0, 1)]

    @property
    def enclosure(self) -> Enclosure:
        """What is known of the spread now."""
        searches = [search for side in self._sides for search in side]
        lower = down(down(math.fsum(search.lower for search in searches)) - self._error)
        upper = up(up(math.fsum(search.upper for search in searches)) + self._error)
        return Enclosure(max(0.0, lower), max(0.0, upper))

    @property
    def nodes(self) -> int:
        return sum(search.nodes for side in self._sides for search in side)

    def narrow(self, effort: Effort) -> None:
        """Search until the gap is reached or the nodes are used up."""

        def one(side: list[Maximum]) -> None:
            left = effort.gap / 2
            for place, search in enumerate(side):
                tolerance = left / (len(side) - place)
                self._pursue(search, tolerance, effort)
                left -= min(tolerance, search.upper - search.lower)

        if effort.threads > 1:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, self._sides))
        else:
            for side in self._sides:
                one(side)

    def compare(self, limit: float, effort: Effort) -> None:
        """Search until the spread is known to be within the limit, or above it, if ever."""
        searches = [search for side in self._sides for search in side]
        for search in searches:
            search.pursue(0.0, min(_GLANCE, effort.nodes))
        moved = True
        while moved:
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
                self._pursue(search, tolerance, effort, search.lower + slack)
                spent += search.upper - search.lower
                moved = moved or search.nodes > before

    def _pursue(
        self, search: Maximum, tolerance: float, effort: Effort, enough: float = math.inf
    ) -> None:
        # In pieces, whether or not anybody watches: the same steps give the same bits.
        limit = search.nodes
        while search.upper - search.lower > tolerance and search.lower <= enough:
            limit = min(effort.nodes, limit + _CHUNK)
            before = search.nodes
            search.pursue(tolerance, limit, enough)
            if effort.progress is not None:
                effort.progress(Progress(self.nodes, self.enclosure))
            if search.nodes == before:
                return


def _maximum(side: Side) -> Maximum:
    return Corners(side) if Corners.suit(side) else Search(side)


def _blocks(terms: Counter[ScoreTerm], box: Box) -> Iterable[tuple[list[Term], Sides]]:
    """Terms that share no coordinate but fixed ones, each with the coordinates that it uses."""
    free = [side.lower < side.upper for side in box.sides]
    leader = list(range(len(free)))

    def find(j: int) -> int:
        while leader[j] != j:
            leader[j] = leader[leader[j]]
            j = leader[j]
        return j

    uses = {term: [j for j, w in enumerate(term.weights) if w and free[j]] for term in terms}
    for used in uses.values():
        for j in used[1:]:
            leader[find(j)] = find(used[0])
    blocks: dict[int, list[Term]] = {}
    for term, used in uses.items():
        if used:
            blocks.setdefault(find(used[0]), []).append((term, terms[term]))
    lo = np.array([side.lower for side in box.sides], dtype=np.float64)
    hi = np.array([side.upper for side in box.sides], dtype=np.float64)
    integer = np.array([isinstance(side, Integers) for side in box.sides])
    # Boxes are equal whatever the order of their names, and so are their enclosures.
    keys = range(len(free)) if box.names is None else box.names
    order = sorted(range(len(free)), key=keys.__getitem__)
    for block in blocks.values():
        kept = [j for j in order if any(term.weights[j] for term, _ in block)]
        slim = [
            (
                ScoreTerm(
                    term.link, term.epsilon, tuple(term.weights[j] for j in kept), term.offset, 0.0
                ),
                times,
            )
            for term, times in block
        ]
        yield slim, Sides(lo[kept], hi[kept], integer[kept])
