"""Confidence intervals around an estimate.

Proofs: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from expost._types import Floats

__all__ = ["normal_reach", "score_interval", "student_reach"]


def normal_reach(level: float) -> float:
    """How many standard errors a normal interval reaches to each side.

    >>> round(normal_reach(0.95), 3)
    1.96
    """
    return -NormalDist().inv_cdf((1 - level) / 2)


def student_reach(level: float, freedom: int) -> float:
    """The same if the standard error is itself estimated (Hill 1970, Algorithm 396).

    Accurate to about five digits, which is more than the normal approximation deserves.

    >>> round(student_reach(0.95, freedom=10), 3)
    2.228
    """
    tails, n = 1 - level, float(freedom)
    if freedom == 1:
        return 1 / math.tan(tails * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (tails * (2 - tails)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y <= 0.05 + a:
        y = (
            (1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1
        ) * (n + 1) / (n + 2) + 1 / y
        return math.sqrt(n * y)
    x = -normal_reach(level)
    y = x * x
    if freedom < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.sqrt(n * math.expm1(a * y * y))


def score_interval(
    estimates: Floats, constant: Floats, slope: Floats, subjects: int, reach: float
) -> tuple[Floats, Floats]:
    r"""The shares f in [0, 1] that an estimate does not contradict (after Wilson 1927).

    .. math:: n\,(\hat f - f)^2 \le z^2\,(c + b f - f^2)

    The variance of one subject's estimate is c + b f - f² for every f. If no share fits, the
    interval is the single share that fits best.

    >>> zero, one = np.zeros(1), np.ones(1)  # c = 0 and b = 1: Wilson's own interval
    >>> lower, upper = score_interval(np.array([0.5]), zero, one, subjects=100, reach=1.96)
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.404], [0.596])
    """
    squared = reach**2 / subjects
    middle = (estimates + squared * slope / 2) / (1 + squared)
    offset = (estimates**2 - squared * constant) / (1 + squared)
    half = np.sqrt(np.maximum(middle**2 - offset, 0.0))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
