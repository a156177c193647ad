r"""How far probabilities exceed a multiple of others: what (ε, δ)-LDP allows up to δ.

.. math:: \delta(\varepsilon) = \max_{x, x'} \sum_y
          \max(0,\; P[y \mid x] - e^\varepsilon P[y \mid x'])

The sum is the largest excess of any event, that of the responses with a positive summand. As a
function of e^ε it is convex, decreasing and piecewise linear. Proofs: docs/theory/gaussian.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from expost.errors import InvalidInput
from expost.terms import Weights

__all__ = ["excess", "largest_excess", "least_ratio"]

_MOST_COMPARISONS = 1 << 23


def excess(weights: Iterable[tuple[int, int]], ratio: Fraction) -> Fraction:
    """The larger excess of one value over the other, from their pairs of weights."""
    top, bottom = ratio.as_integer_ratio()
    first = second = 0
    for p, q in weights:
        first += max(0, bottom * p - top * q)
        second += max(0, bottom * q - top * p)
    return Fraction(max(first, second), bottom)


def largest_excess(rows: Weights, ratio: Fraction) -> Fraction:
    """The largest excess over all pairs of rows, one row per value."""
    rows = _distinct(rows)
    top, bottom = ratio.as_integer_ratio()
    most = max(int(np.maximum(bottom * row - top * rows, 0).sum(axis=1).max()) for row in rows)
    return Fraction(most, bottom)


def least_ratio(rows: Weights, allowed: Fraction) -> Fraction | None:
    """The least ratio of at least 1 whose excess is at most the allowed one; None if there is none.

    Newton's method from the left: an event that exceeds too much at one ratio needs a larger one.
    There are finitely many events, and none comes twice.
    """
    rows, ratio = _distinct(rows), Fraction(1)
    while True:
        top, bottom = ratio.as_integer_ratio()
        needed = ratio
        for row in rows:
            event = bottom * row > top * rows
            more, less = (event * row).sum(axis=1), (event * rows).sum(axis=1)
            for p, q in zip(more.tolist(), less.tolist(), strict=True):
                if p - ratio * q <= allowed:
                    continue
                if q == 0:
                    return None
                needed = max(needed, (p - allowed) / q)
        if needed == ratio:
            return ratio
        ratio = needed


def _distinct(rows: Weights) -> Weights:
    """Rows that differ, as integers without a limit."""
    distinct = dict.fromkeys(map(tuple, rows.tolist()))
    if len(distinct) ** 2 * rows.shape[1] > _MOST_COMPARISONS:
        raise InvalidInput(
            f"{len(distinct)} values and {rows.shape[1]} responses are too many to compare all "
            "pairs of values for delta"
        )
    return np.array(list(distinct), dtype=object)
