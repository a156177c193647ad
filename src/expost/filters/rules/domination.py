r"""The least budget above which a mixture of exponentials dominates the excess of a loss.

All martingale rules rest on one inequality. With weights w and sums of cumulants S, they accept if
and only if for all u >= 0

.. math:: 1 - e^{-u} \le \delta \sum_j w_j e^{\lambda_j (\varepsilon_g + u) - S_j} .

The right side minus the left one is convex in e^{-u}, so a single tangent bounds it for all u at
once. Proof: docs/theory/approximate.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from expost.filters.rules.rule import NEVER
from expost.numbers import Enclosure, quotient
from expost.numbers._decimals import ERROR, enclosed, many_digits

__all__ = ["Component", "least_budget"]

_SURELY = 1 + Decimal("1e-45")


@dataclass(frozen=True, slots=True)
class Component:
    """A weight, the exponent λ, and the sum of the cumulants at λ, rounded up."""

    weight: Fraction
    exponent: Fraction
    cumulants: Fraction

    def at(self, place: Fraction, delta: Fraction) -> Decimal:
        """b = δ w e^(λ place - cumulants)."""
        power = quotient(self.exponent * place - self.cumulants).exp()
        return quotient(delta * self.weight) * power


def least_budget(components: Sequence[Component], delta: Fraction) -> Enclosure:
    """Doubles around the least budget for which the inequality holds, which is never negative."""
    if not components:
        return NEVER
    place = Fraction(_touching(components, delta))
    error = nudge = ERROR * (1 + abs(place))
    with many_digits():
        rates = [quotient(part.exponent) for part in components]
        raised = [1 + rate for rate in rates]
        # A step of Newton on the convex function log Σ (1 + λ) b ends at or above its zero.
        terms = [part.at(place, delta) for part in components]
        value, slope = _dot(terms, raised), _dot(terms, raised, rates)
        place -= Fraction(value.ln() * value / slope)
        while True:
            place += nudge
            terms = [part.at(place, delta) for part in components]
            if _dot(terms, raised) >= _SURELY:
                break
            nudge *= 1000
        middle, share = quotient(place), sum(terms, Decimal(0))
        above = middle - (1 + share / _dot(terms, rates)).ln()
        below = middle + (1 - share).ln()
        above, below = max(Decimal(0), above), max(Decimal(0), below)
    return Enclosure(enclosed(below, error).lower, enclosed(above, error).upper)


def _dot(*factors: Sequence[Decimal]) -> Decimal:
    """The sum of the products."""
    return sum((math.prod(row, start=Decimal(1)) for row in zip(*factors, strict=True)), Decimal(0))


def _touching(components: Sequence[Component], delta: Fraction) -> float:
    """Roughly where log Σ (1 + λ) δ w e^(λ x - S) is zero: the tangent there is the best one."""
    rates = [float(part.exponent) for part in components]
    starts = [
        _log((1 + part.exponent) * delta * part.weight) - float(part.cumulants)
        for part in components
    ]
    # Where a single term is 1 the sum is at least 1; from there Newton's method only goes down.
    place = min(-start / rate for start, rate in zip(starts, rates, strict=True))
    for _ in range(100):
        powers = [start + rate * place for start, rate in zip(starts, rates, strict=True)]
        highest = max(powers)
        shares = [math.exp(power - highest) for power in powers]
        value = highest + math.log(math.fsum(shares))
        slope = math.fsum(map(math.prod, zip(shares, rates, strict=True))) / math.fsum(shares)
        lower = place - value / slope
        if not lower < place:
            break
        place = lower
    return place


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)
