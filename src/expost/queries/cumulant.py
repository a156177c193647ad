r"""The cumulant of the log-likelihood ratio of the worst epsilon-LDP query, rounded up.

Among all pairs of distributions whose log-ratio L never leaves [-epsilon, epsilon], randomized
response has the largest expectation of every convex function of e^L. Proof:
docs/theory/approximate.md.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from expost.numbers import Nats, decimal_context, double_above, quotient

__all__ = ["randomized_response_cumulant"]

_DIGITS = 40
_SERIES = Decimal("1e-6")
_SLACK = 1 + Fraction(1, 10**25)


@lru_cache(maxsize=256)
def _exp(exponent: Fraction, digits: int) -> Decimal:
    """The same for every λ of a rule."""
    with decimal.localcontext(decimal_context(digits, decimal.ROUND_HALF_EVEN)):
        return quotient(exponent).exp()


@lru_cache(maxsize=1 << 15)
def randomized_response_cumulant(epsilon: Nats, exponent: Fraction) -> float:
    r"""An upper bound on K(λ), within a few units of the last place.

    .. math:: K(\lambda) = \log \frac{e^{(\lambda+1)\varepsilon} + e^{-\lambda\varepsilon}}
              {e^\varepsilon + 1} = \log\left(1 + \frac{(e^{(\lambda+1)\varepsilon} - 1)
              (1 - e^{-\lambda\varepsilon})}{e^\varepsilon + 1}\right)
    """
    if epsilon.is_infinite:
        return math.inf
    if epsilon == Nats():
        return 0.0
    # K grows with epsilon, so the double above a logarithm will do.
    exact = epsilon.rational if epsilon.is_rational else Fraction(epsilon.enclosure.upper)
    tilt = exponent * exact
    # e^x - 1 loses as many digits as x has zeros after its point.
    zeros = max(0, len(str(tilt.denominator)) - len(str(tilt.numerator)) + 1)
    with decimal.localcontext(decimal_context(_DIGITS + zeros, decimal.ROUND_HALF_EVEN)):
        base, power = _exp(exact, _DIGITS + zeros), quotient(tilt).exp()
        excess = (base * power - 1) * (power - 1) / power / (base + 1)
        if excess < _SERIES:
            # log(1 + z) <= z - z²/2 + z³/3, without the digits that 1 + z would lose.
            result = excess - excess**2 / 2 + excess**3 / 3
        else:
            result = (1 + excess).ln()
    # A dozen operations, each right to 33 digits after what was lost.
    return double_above(Fraction(result) * _SLACK)
