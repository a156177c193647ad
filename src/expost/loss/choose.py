"""Which solver: enumeration for finite sets, searches for boxes, sums of groups if asked for.

The solvers for boxes are imported when a box comes along, for they bring a compiler with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box
from expost.loss.log_likelihood import BoxLogLikelihood, LogLikelihood
from expost.loss.on_set import spread
from expost.numbers import Enclosure, up
from expost.queries import Query
from expost.solver.effort import Effort
from expost.terms.on_box import ScoreTerm

if TYPE_CHECKING:
    from expost.solver.spread import BoxSpread

__all__ = ["all_compared", "capped", "compared", "concave_spreads", "realized_spread"]

_GROUP = 10
_STAGES = (16, 128)


def realized_spread(
    total: LogLikelihood | BoxLogLikelihood, most: Enclosure, effort: Effort
) -> Enclosure:
    """An enclosure of max ℓ - min ℓ, which is never above the sum of the epsilons, ``most``."""
    if isinstance(total, LogLikelihood):
        return capped(spread(total), most)
    if effort.group is not None:
        groups = _in_groups(total, effort.group, effort)
        return capped(_together([groups]), most)
    joint = _start(total.counted, total.domain)
    joint.narrow(effort)
    loss = joint.enclosure
    if joint.unsettled > effort.gap and len(total.terms) > _GROUP:
        loss = _together([[joint], _in_groups(total, _GROUP, effort)])
    return capped(loss, most)


def compared(total: BoxLogLikelihood, limit: float, most: Enclosure, effort: Effort) -> Enclosure:
    """An enclosure of max ℓ - min ℓ that is on one side of a limit, if that can be shown."""
    (loss,) = all_compared([total], limit, most, effort)
    return loss


def all_compared(
    totals: Sequence[BoxLogLikelihood], limit: float, most: Enclosure, effort: Effort
) -> list[Enclosure]:
    """The same of several, up to the first that is above the limit.

    To be above it takes one good point, and to be within it many nodes: so all of them are looked
    at for a while before much is spent on any.
    """
    joints = [_start(total.counted, total.domain) for total in totals]
    for nodes in (*_STAGES, effort.most):
        for joint in joints:
            joint.compare(limit, replace(effort, nodes=min(nodes, effort.most)))
            if joint.enclosure.lower > limit:
                return [capped(joint.enclosure, most) for joint in joints]
    pairs = zip(totals, joints, strict=True)
    return [_with_groups(total, joint, limit, most, effort) for total, joint in pairs]


def _with_groups(
    total: BoxLogLikelihood, joint: BoxSpread, limit: float, most: Enclosure, effort: Effort
) -> Enclosure:
    loss = joint.enclosure
    open_still = loss.lower <= limit < loss.upper and not effort.used_up
    if open_still and len(total.terms) > _GROUP:
        # Most often a look at the groups shows that they cannot help, whatever is spent on them.
        glance = _in_groups(total, _GROUP, replace(effort, nodes=1))
        sums = [math.fsum(part.lowers[side] for part in glance) for side in (0, 1)]
        if any(low < high for low, high in zip(sums, joint.uppers, strict=True)):
            loss = _together([[joint], _in_groups(total, _GROUP, effort)])
    return capped(loss, most)


def capped(loss: Enclosure, most: Enclosure) -> Enclosure:
    """Rounding, or an unfinished search, never lifts a loss above what basic composition says."""
    return Enclosure(loss.lower, max(loss.lower, min(loss.upper, most.upper)))


def _start(terms: Iterable[ScoreTerm], box: Box) -> BoxSpread:
    from expost.solver.spread import BoxSpread
    from expost.solver.warm_up import ready

    ready()
    return BoxSpread(terms, box)


def _in_groups(total: BoxLogLikelihood, size: int, effort: Effort) -> list[BoxSpread]:
    """Consecutive groups of terms, each searched on its own."""
    terms = list(total.terms)
    groups = [terms[start : start + size] for start in range(0, len(terms), size)]
    spreads = [_start(group, total.domain) for group in groups]
    for spread_of_group in spreads:
        spread_of_group.narrow(effort.shared(len(groups)))
    return spreads


def _together(partitions: Sequence[Sequence[BoxSpread]]) -> Enclosure:
    """What several partitions of the same terms say about their sum.

    The largest sum is at most the sum of the largest parts, and so is that of its negative: for
    each the best partition counts. Only a partition that has one part says how large it is.
    """
    uppers = [
        min(up(math.fsum(part.uppers[side] for part in parts)) for parts in partitions)
        for side in (0, 1)
    ]
    upper = up(up(math.fsum(uppers)) + up(math.fsum(part.error for part in partitions[0])))
    whole = [parts[0].enclosure.lower for parts in partitions if len(parts) == 1]
    lower = max(whole, default=0.0)
    return Enclosure(lower, max(lower, upper))


def concave_spreads(
    box: Box, queries: Sequence[Query], given: NDArray[np.integer[Any]], gap: float
) -> NDArray[np.float64] | None:
    """Lower and upper ends of many spreads at once; None if these queries are not of that kind."""
    from expost.loss.many_concave import concave_side, many_spreads
    from expost.solver.warm_up import ready

    ready()
    pairs = [(query.on(box).term(0), query.on(box).term(1)) for query in queries]
    side = concave_side([high for _, high in pairs], box)
    if side is None or not all(_mirrored(low, high) for low, high in pairs):
        return None
    error = math.fsum(max(low.error, high.error) for low, high in pairs)
    return np.array(many_spreads(side, given == 1, up(error), gap))


def _mirrored(low: ScoreTerm, high: ScoreTerm) -> bool:
    """Whether two responses differ in sign alone; one term may be flat in hopeless cases."""
    negated = tuple(-weight for weight in high.weights), -high.offset
    return (low.weights, low.offset) == negated
