"""Which solver: enumeration for finite sets, searches for boxes, sums of groups if asked for.

The solvers for boxes are imported when a box comes along, for they bring a compiler with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box
from expost.extrema.effort import Effort
from expost.extrema.finite import spread
from expost.likelihood import BoxLogLikelihood, LogLikelihood
from expost.queries import Query
from expost.queries.score_term import ScoreTerm
from expost.rounding import Enclosure, up

if TYPE_CHECKING:
    from expost.extrema.box import BoxSpread

__all__ = ["capped", "compared", "concave_spreads", "realized_spread"]

_GROUP = 10


def realized_spread(
    total: LogLikelihood | BoxLogLikelihood, most: Enclosure, effort: Effort
) -> Enclosure:
    """An enclosure of max ℓ - min ℓ, which is never above the sum of the epsilons, ``most``."""
    if isinstance(total, LogLikelihood):
        return capped(spread(total), most)
    if effort.group is not None:
        return capped(_in_groups(total, effort.group, effort), most)
    joint = _start(total.terms, total.domain)
    joint.narrow(effort)
    loss = joint.enclosure
    if loss.width > effort.gap and len(total.terms) > _GROUP:
        loss = _narrower(loss, _in_groups(total, _GROUP, effort))
    return capped(loss, most)


def compared(total: BoxLogLikelihood, limit: float, most: Enclosure, effort: Effort) -> Enclosure:
    """An enclosure of max ℓ - min ℓ that is on one side of a limit, if that can be shown."""
    joint = _start(total.terms, total.domain)
    joint.compare(limit, effort)
    loss = joint.enclosure
    if loss.lower <= limit < loss.upper and len(total.terms) > _GROUP:
        loss = _narrower(loss, _in_groups(total, _GROUP, effort))
    return capped(loss, most)


def capped(loss: Enclosure, most: Enclosure) -> Enclosure:
    """Rounding, or an unfinished search, never lifts a loss above what basic composition says."""
    return Enclosure(loss.lower, max(loss.lower, min(loss.upper, most.upper)))


def _start(terms: Iterable[ScoreTerm], box: Box) -> BoxSpread:
    from expost.extrema.box import BoxSpread
    from expost.extrema.ready import ready

    ready()
    return BoxSpread(terms, box)


def _in_groups(total: BoxLogLikelihood, size: int, effort: Effort) -> Enclosure:
    """The sum of the spreads of consecutive groups: an upper bound on the spread of the sum."""
    terms: Sequence[ScoreTerm] = list(total.terms)
    groups = [terms[start : start + size] for start in range(0, len(terms), size)]
    share = effort.shared(len(groups))
    loss = Enclosure(0.0, 0.0)
    for group in groups:
        part = _start(group, total.domain)
        part.narrow(share)
        loss = loss + part.enclosure
    return loss if len(groups) == 1 else Enclosure(0.0, loss.upper)


def _narrower(first: Enclosure, second: Enclosure) -> Enclosure:
    return Enclosure(max(first.lower, second.lower), min(first.upper, second.upper))


def concave_spreads(
    box: Box, queries: Sequence[Query], given: NDArray[np.integer[Any]], gap: float
) -> NDArray[np.float64] | None:
    """Lower and upper ends of many spreads at once; None if these queries are not of that kind."""
    from expost.extrema.many import concave_side, many_spreads
    from expost.extrema.ready import ready

    ready()
    likelihoods = [query.on(box) for query in queries]
    high = [likelihood.term(1) for likelihood in likelihoods]
    side = concave_side(high, box)
    if side is None:
        return None
    error = sum(max(likelihood.term(k).error for k in (0, 1)) for likelihood in likelihoods)
    return np.array(many_spreads(side, given == 1, up(error * (1 + 1e-9)), gap))
