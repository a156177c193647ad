"""The running example of the paper."""

from __future__ import annotations

from fractions import Fraction

import expost as xp
from expost.queries.tables.channel import Channel

ELEVEN = xp.FiniteSet(range(11))


def power(exponent: int) -> Channel:
    """Pr(1 | x) = 0.2 (x/10)^i + 0.4, the running example of the paper."""
    ones = [Fraction(2, 5) + Fraction(1, 5) * Fraction(x, 10) ** exponent for x in range(11)]
    return xp.channel([[1 - p, p] for p in ones])
