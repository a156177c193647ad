"""The spreads of many subjects who were asked the same linear queries, all at once.

Every subject has a concave log-likelihood. Its smallest value is at a corner, so those of all
subjects are one matrix product; its largest one takes a few gradients each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import Box
from expost.numbers import UNIT, up
from expost.queries import Query
from expost.solver import ROUNDING_ALONE, BoxColumns, TermArrays, load_kernels, pack_both_directions
from expost.solver.kernels import entries
from expost.solver.kernels.layout import FOOT, H, PackedProblem
from expost.terms import ScoreTerm

__all__ = ["concave_spreads"]


_MOST_COORDINATES = 12
_BLOCK = 1024


def concave_spreads(
    box: Box, queries: Sequence[Query], positions: NDArray[np.integer[Any]], gap: float
) -> NDArray[np.float64] | None:
    """Lower and upper ends of many spreads at once; None if the queries do not allow it."""
    if box.groups:
        return None  # and a query about categories may have any number of responses
    load_kernels()
    pairs = [(query.on(box).term(0), query.on(box).term(1)) for query in queries]
    side = concave_side([high for _, high in pairs], box)
    if side is None or not all(_mirrored(low, high) for low, high in pairs):
        return None
    error = math.fsum(max(low.error, high.error) for low, high in pairs)
    return np.array(many_spreads(side, positions == 1, up(error), gap))


def _mirrored(low: ScoreTerm, high: ScoreTerm) -> bool:
    """Return whether two responses differ only in sign; a term may be flat in hopeless cases."""
    negated = tuple(-weight for weight in high.weights), -high.offset
    return (low.weights, low.offset) == negated


def concave_side(terms: Sequence[ScoreTerm], box: Box) -> PackedProblem | None:
    """The terms as a side, if they are unclipped linear ones and there are not too many corners."""
    columns = range(len(box.columns))
    sides = BoxColumns.of(box, columns)
    if sides.integer.any() or len(columns) > _MOST_COORDINATES:
        return None
    side, _ = pack_both_directions(TermArrays.of([(term, 1) for term in terms], columns), sides)
    return side if side.clipped_rising < ROUNDING_ALONE else None


def many_spreads(
    packed: PackedProblem, high: NDArray[np.bool_], error: float, gap: float
) -> tuple[Floats, Floats]:
    """Lower and upper bounds, for rows that say which responses were the high ones.

    The side has the terms of the high responses; a low one has the same with its score negated.
    ``error`` is how far the terms are from what is sampled.
    """
    side = packed.views
    corners = np.array(list(itertools.product(*zip(side.lo, side.hi, strict=True)))).T
    scores = side.A @ corners + side.c[:, None]
    foot, h = side.par[:, FOOT], side.par[:, H]
    both = np.vstack([scores, -scores])
    sums = np.log1p((1 + both) / np.tile(foot, 2)[:, None]) - np.tile(h, 2)[:, None]
    responses = np.hstack([high, ~high]).astype(np.float64)
    lowest = np.empty(len(responses))
    for start in range(0, len(responses), _BLOCK):
        lowest[start : start + _BLOCK] = (responses[start : start + _BLOCK] @ sums).min(axis=1)
    highest, gaps, _ = entries.climb(packed, np.where(high, 1.0, -1.0), gap / 2)
    # Both ends are within the error of an evaluation; twice the terms were summed in the product.
    slack = 2 * error + 6 * packed.total_error + 2 * packed.clipped_rising
    width = highest - lowest
    lower, upper = np.maximum(0.0, width - slack), (width + gaps + slack) * (1 + 4 * UNIT)
    return lower, np.where(np.isnan(upper), np.inf, upper)
