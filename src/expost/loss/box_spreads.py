"""Searches for the spread max ℓ - min ℓ over a box: of all terms together, or in groups.

The solvers are imported when a search begins, because they bring a compiler with them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from expost.domains import Box, Point
from expost.numbers import Enclosure, up
from expost.solver import Effort
from expost.terms.on_box import ScoreTerm

if TYPE_CHECKING:
    from expost.solver.spread import BoxSpread

__all__ = ["all_compared", "spread"]

_GROUP = 10
_STAGES = (16, 128)

Terms = Counter[ScoreTerm]
"""How often each term occurs, in a canonical order: within its gap, a search depends on it."""


def spread(terms: Terms, box: Box, effort: Effort) -> Enclosure:
    """An enclosure of max ℓ - min ℓ."""
    if effort.group is not None:
        return _together([_in_groups(terms, box, effort.group, effort)])
    joint = _start(terms, box)
    joint.narrow(effort)
    if joint.unsettled > effort.gap and terms.total() > _GROUP:
        return _together([[joint], _in_groups(terms, box, _GROUP, effort)])
    return joint.enclosure


def found_points(terms: Terms, box: Box, effort: Effort) -> tuple[Point, Point]:
    """The points with the largest and the smallest value that a search finds, by columns."""
    joint = _start(terms, box)
    joint.narrow(effort)
    return joint.highest_at, joint.lowest_at


def all_compared(
    several: Sequence[Terms], box: Box, limit: float, effort: Effort
) -> list[Enclosure]:
    """Enclosures that are on one side of a limit, if that can be shown; up to the first above it.

    One good point shows that a loss is above the limit, but many nodes are needed to show that it
    is within. So each gets a short look before much is spent on any.
    """
    joints = [_start(terms, box) for terms in several]
    for nodes in (*_STAGES, effort.most):
        for joint in joints:
            joint.compare(limit, replace(effort, nodes=min(nodes, effort.most)))
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
        glance = _in_groups(terms, box, _GROUP, replace(effort, nodes=1))
        sums = [math.fsum(part.lowers[side] for part in glance) for side in (0, 1)]
        if any(low < high for low, high in zip(sums, joint.uppers, strict=True)):
            return _together([[joint], _in_groups(terms, box, _GROUP, effort)])
    return loss


def _start(terms: Iterable[ScoreTerm], box: Box) -> BoxSpread:
    from expost.solver.spread import BoxSpread
    from expost.solver.warm_up import ready

    ready()
    return BoxSpread(terms, box)


def _in_groups(terms: Terms, box: Box, size: int, effort: Effort) -> list[BoxSpread]:
    """Groups of terms that follow each other, each searched on its own."""
    each = list(terms.elements())
    groups = [each[start : start + size] for start in range(0, len(each), size)]
    spreads = [_start(group, box) for group in groups]
    for spread_of_group in spreads:
        spread_of_group.narrow(effort.shared(len(groups)))
    return spreads


def _together(partitions: Sequence[Sequence[BoxSpread]]) -> Enclosure:
    """What several partitions of the same terms say about their sum.

    The largest sum is at most the sum of the largest parts, and likewise for its negative: for each
    of the two, the best partition counts. Only a partition into one part gives a lower bound.
    """
    uppers = [
        min(up(math.fsum(part.uppers[side] for part in parts)) for parts in partitions)
        for side in (0, 1)
    ]
    upper = up(up(math.fsum(uppers)) + up(math.fsum(part.error for part in partitions[0])))
    whole = [parts[0].enclosure.lower for parts in partitions if len(parts) == 1]
    lower = max(whole, default=0.0)
    return Enclosure(lower, max(lower, upper))
