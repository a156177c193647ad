"""Searches for the spread max ℓ - min ℓ over a box: of all terms together, or in groups.

The solvers are imported when a search begins, because they bring a compiler with them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from expost.domains import Box, Point
from expost.numbers import Enclosure, up
from expost.solver import Effort
from expost.terms import ScoreTerm

if TYPE_CHECKING:
    from expost.solver import BoxSpread

__all__ = ["all_compared", "found_points", "glanced", "spread"]

_GROUP = 10
_GLANCE = 16
_STAGES = (_GLANCE, 128)
_MOST_AT_ONCE = 0.8
"""Of the work that is left, for all terms together; the rest is for groups, if they help."""
_ANYTHING = Enclosure(0.0, math.inf)

Terms = Counter[ScoreTerm]
"""How often each term occurs, in a canonical order: within its gap, a search depends on it."""

Parts = list[tuple["BoxSpread", int]]
"""A partition of terms: the spread of each group, and how often it is there."""


def spread(terms: Terms, box: Box, effort: Effort) -> Enclosure:
    """An enclosure of max ℓ - min ℓ."""
    if effort.used_up:
        return _ANYTHING
    if effort.group is not None:
        return _together([_in_groups(terms, box, effort.group, effort)])
    joint = _start(terms, box, effort)
    joint.narrow(effort.with_share(_MOST_AT_ONCE))
    if terms.total() > _GROUP and joint.unsettled > effort.gap:
        return _together([[(joint, 1)], _in_groups(terms, box, _GROUP, effort)])
    return joint.enclosure


def glanced(terms: Terms, box: Box, limit: float, effort: Effort) -> Enclosure:
    """What a short look at all terms together says: enough to see that a limit is far away."""
    if effort.used_up:
        return _ANYTHING
    joint = _start(terms, box, effort)
    joint.compare(limit, effort.with_node_limit(_GLANCE))
    return joint.enclosure


def found_points(terms: Terms, box: Box, effort: Effort) -> tuple[Point, Point]:
    """The points with the largest and the smallest value that a search finds, by columns."""
    joint = _start(terms, box, effort)
    joint.narrow(effort)
    return joint.highest_at, joint.lowest_at


def all_compared(
    several: Sequence[Terms], box: Box, limit: float, effort: Effort
) -> list[Enclosure]:
    """Enclosures that are on one side of a limit, if that can be shown; up to the first above it.

    One good point shows that a loss is above the limit, but many nodes are needed to show that it
    is within. So each gets a short look before much is spent on any.
    """
    if effort.used_up:
        return [_ANYTHING for _ in several]
    joints = [_start(terms, box, effort) for terms in several]
    for nodes in (*_STAGES, effort.node_limit):
        for joint in joints:
            joint.compare(limit, effort.with_node_limit(nodes))
            if joint.enclosure.lower > limit:
                return [joint.enclosure for joint in joints]
    pairs = zip(several, joints, strict=True)
    return [_with_groups(terms, box, joint, limit, effort) for terms, joint in pairs]


def _with_groups(
    terms: Terms, box: Box, joint: BoxSpread, limit: float, effort: Effort
) -> Enclosure:
    loss = joint.enclosure
    open_still = loss.lower <= limit < loss.upper and not effort.used_up
    if open_still and terms.total() > _GROUP:
        # Usually a look at the groups shows that they cannot help, whatever is spent on them.
        glance = _in_groups(terms, box, _GROUP, effort.with_node_limit(1))
        sums = [math.fsum(n * part.lowers[side] for part, n in glance) for side in (0, 1)]
        if any(low < high for low, high in zip(sums, joint.uppers, strict=True)):
            return _together([[(joint, 1)], _in_groups(terms, box, _GROUP, effort)])
    return loss


def _start(terms: Iterable[ScoreTerm], box: Box, effort: Effort) -> BoxSpread:
    from expost.solver import BoxSpread, load_kernels

    load_kernels()
    spread = BoxSpread(terms, box)
    effort.charge_work(spread.setup_work)
    return spread


def _in_groups(terms: Terms, box: Box, size: int, effort: Effort) -> Parts:
    """Groups of terms that follow each other, each searched on its own.

    None at all if the work is used up before all of them are known.
    """
    each = list(terms.elements())
    # What was answered very often fills many groups, which are all alike.
    groups = Counter(tuple(each[start : start + size]) for start in range(0, len(each), size))
    shared, parts = effort.divide_gap(groups.total()), []
    for group, times in groups.items():
        if effort.used_up:
            return []
        part = _start(group, box, effort)
        part.narrow(shared)
        parts.append((part, times))
    return parts


def _together(partitions: Sequence[Parts]) -> Enclosure:
    """What several partitions of the same terms say about their sum.

    The largest sum is at most the sum of the largest parts, and likewise for its negative: for each
    of the two, the best partition counts. Only a partition into one part gives a lower bound.
    """
    known = [parts for parts in partitions if parts]
    if not known:
        return _ANYTHING
    uppers = [
        min(up(math.fsum(_times(n, part.uppers[side]) for part, n in parts)) for parts in known)
        for side in (0, 1)
    ]
    error = up(math.fsum(_times(n, part.error) for part, n in known[0]))
    upper = up(up(math.fsum(uppers)) + error)
    whole = [parts[0][0].enclosure.lower for parts in known if [n for _, n in parts] == [1]]
    lower = max(whole, default=0.0)
    return Enclosure(lower, max(lower, upper))


def _times(n: int, number: float) -> float:
    return number if n == 1 else up(n * number)
