"""The largest epsilon with which a query would still be accepted."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from expost.queries import Query
from expost.queries.base import LARGEST_EPSILON

__all__ = ["largest_epsilon"]

_STEP = Fraction(1, 10**10)


def largest_epsilon(
    query: Query, accepts: Callable[[Query], bool], remaining: float
) -> Fraction | None:
    """The end of the accepted interval that starts at zero, on a grid of 1e-10.

    ``remaining`` is only where the search starts. The result is itself accepted; one step more is
    not, or is beyond the largest epsilon that a query may have. None if nothing fits.
    """

    def fits(steps: int) -> bool:
        variant = query.with_epsilon(steps * _STEP)
        return variant is not None and accepts(variant)

    most = int(LARGEST_EPSILON / _STEP)
    low = min(most, int(Fraction(remaining) / _STEP))
    # Rounding may have put the start a step or two too high.
    stride = 1
    while low > 0 and not fits(low):
        low, stride = max(0, low - stride), stride * 2
    high, stride = low + 1, 1
    while high <= most and fits(high):
        low, high, stride = high, high + stride, stride * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * _STEP if low else None
