"""Intervals of differences between two groups."""

from __future__ import annotations

import math

__all__ = ["estimate_difference"]

#: A share of the range: a search for an end stops about there.
_NEAR_LIMIT = 1e-5


def estimate_difference(
    first: tuple[float, float, float],
    second: tuple[float, float, float],
    *,
    range: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float, float]:
    r"""Estimate a difference by variance estimates recovery (Zou & Donner 2008).

    With estimates a and b between their ends, the lower end is

    .. math:: a - b - \sqrt{(a - l_a)^2 + (u_b - b)^2}

    and the upper end mirrors it. The groups must be independent, as without common subjects.

    An interval that is cut off at a limit of the range shows too little variance on that side.
    Then the other side counts instead, if it is longer. No difference of two numbers outside of the
    intervals is in the result.

    Args:
        first: The estimate of one group, and the ends of its interval.
        second: Those of the group that is subtracted, at the same confidence.
        range: The limits of what is estimated, such as 0 and 1 for shares.

    Returns:
        The difference, and the ends of its interval.

    >>> [round(x, 3) for x in estimate_difference((0.6, 0.4, 0.7), (0.2, 0.1, 0.4))]
    [0.4, 0.117, 0.541]
    """
    a, below_a, above_a = _recover_distances(*first, range)
    b, below_b, above_b = _recover_distances(*second, range)
    return (
        first[0] - second[0],
        max(a - b - math.hypot(below_a, above_b), first[1] - second[2]),
        min(a - b + math.hypot(above_a, below_b), first[2] - second[1]),
    )


def _recover_distances(
    estimate: float, lower: float, upper: float, range: tuple[float, float]
) -> tuple[float, float, float]:
    """Return an estimate, and the distances below and above it that stand for its variance."""
    middle = min(max(estimate, lower), upper)  # an unbiased estimate may be outside
    below, above = middle - lower, upper - middle
    low, high = range
    near = _NEAR_LIMIT * (high - low) if math.isfinite(high - low) else 0.0
    longest = max(below, above)
    return (
        middle,
        longest if lower <= low + near else below,
        longest if upper >= high - near else above,
    )
