r"""Divergences between the distributions of responses: hockey-stick, and Rényi as a cumulant.

The hockey-stick divergence is what (ε, δ)-LDP bounds by δ:

.. math:: \delta(\varepsilon) = \max_{x, x'} \sum_y
          \max(0,\; P[y \mid x] - e^\varepsilon P[y \mid x'])

The sum is the largest excess of any event, attained by the responses with a positive summand. As a
function of e^ε it is convex, decreasing and piecewise linear. Proofs: docs/theory/approximate.md.

The cumulant is that of the log-likelihood ratio of the worst epsilon-LDP query, rounded up. Among
all pairs of distributions whose log-ratio L never leaves [-epsilon, epsilon], randomized response
has the largest expectation of every convex function of e^L. Proof: docs/theory/approximate.md.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from expost.errors import InvalidInput
from expost.numbers import Nats, decimal_context, double_above, quotient
from expost.terms import Weights

__all__ = ["excess", "largest_excess", "least_ratio", "randomized_response_cumulant"]

_MOST_COMPARISONS = 1 << 23


def excess(weights: Iterable[tuple[int, int]], ratio: Fraction) -> Fraction:
    """Return the larger excess of one value over the other, from their pairs of weights."""
    top, bottom = ratio.as_integer_ratio()
    first = second = 0
    for p, q in weights:
        first += max(0, bottom * p - top * q)
        second += max(0, bottom * q - top * p)
    return Fraction(max(first, second), bottom)


def largest_excess(rows: Weights, ratio: Fraction) -> Fraction:
    """Return the largest excess over all pairs of rows, one row per value."""
    rows = _distinct(rows)
    top, bottom = ratio.as_integer_ratio()
    most = max(int(np.maximum(bottom * row - top * rows, 0).sum(axis=1).max()) for row in rows)
    return Fraction(most, bottom)


def least_ratio(rows: Weights, allowed: Fraction) -> Fraction | None:
    """Return the least ratio of at least 1 with at most the allowed excess, or None.

    Newton's method from the left: an event that exceeds too much at one ratio needs a larger one.
    There are finitely many events, and none occurs twice.
    """
    rows, ratio = _distinct(rows), Fraction(1)
    while True:
        top, bottom = ratio.as_integer_ratio()
        next_ratio = ratio
        for row in rows:
            event = bottom * row > top * rows
            numerators, denominators = (event * row).sum(axis=1), (event * rows).sum(axis=1)
            for p, q in zip(numerators.tolist(), denominators.tolist(), strict=True):
                if p - ratio * q <= allowed:
                    continue
                if q == 0:
                    return None
                next_ratio = max(next_ratio, (p - allowed) / q)
        if next_ratio == ratio:
            return ratio
        ratio = next_ratio


def _distinct(rows: Weights) -> Weights:
    """Return the distinct rows, as integers of any size."""
    distinct = dict.fromkeys(map(tuple, rows.tolist()))
    if len(distinct) ** 2 * rows.shape[1] > _MOST_COMPARISONS:
        raise InvalidInput(
            f"got {len(distinct)} values and {rows.shape[1]} responses, too many to compare all "
            "pairs of values for delta"
        )
    return np.array(list(distinct), dtype=object)


_DIGITS = 40
_SERIES = Decimal("1e-6")
_SLACK = 1 + Fraction(1, 10**25)


@lru_cache(maxsize=256)
def _exp(exponent: Fraction, digits: int) -> Decimal:
    """Return e^exponent, cached because all λ of a rule share it."""
    with decimal.localcontext(decimal_context(digits, decimal.ROUND_HALF_EVEN)):
        return quotient(exponent).exp()


@lru_cache(maxsize=1 << 15)
def randomized_response_cumulant(epsilon: Nats, exponent: Fraction) -> float:
    r"""Bound K(λ) from above, within a few units of the last place.

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
    # A dozen operations, each right to 33 digits after that loss.
    return double_above(Fraction(result) * _SLACK)
