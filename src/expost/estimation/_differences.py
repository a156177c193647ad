"""Intervals of differences between two groups."""

from __future__ import annotations

import math

__all__ = ["estimate_difference"]


def estimate_difference(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float, float]:
    r"""Estimate a difference by variance estimates recovery (Zou & Donner 2008).

    With estimates a and b between their ends, the lower end is

    .. math:: a - b - \sqrt{(a - l_a)^2 + (u_b - b)^2}

    and the upper end mirrors it. The groups must be independent, as without common subjects.

    Args:
        first: The estimate of one group, and the ends of its interval.
        second: Those of the group that is subtracted, at the same confidence.

    Returns:
        The difference, and the ends of its interval.

    >>> [round(x, 3) for x in estimate_difference((0.6, 0.4, 0.7), (0.2, 0.1, 0.4))]
    [0.4, 0.117, 0.541]
    """
    # Unbiased estimates may be outside of their intervals.
    (a, lower_a, upper_a), (b, lower_b, upper_b) = (
        (min(max(estimate, lower), upper), lower, upper)
        for estimate, lower, upper in (first, second)
    )
    return (
        first[0] - second[0],
        a - b - math.hypot(a - lower_a, upper_b - b),
        a - b + math.hypot(upper_a - a, b - lower_b),
    )
