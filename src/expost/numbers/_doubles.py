"""Doubles next to an exact number, and scaled exponentials as integers.

Exponentials are computed in integer arithmetic, many times faster than in decimals. Proof of the
bound: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from expost.numbers._exact_sum import above, below

__all__ = ["double_above", "double_below", "near_exp", "scaled_exp"]


_GUARD = 64
_PER_LN2 = 1 / math.log(2)


def scaled_exp(exponent: Fraction, bits: int) -> int:
    """Return the integer ⌊2^bits · e^exponent⌋, for a rational exponent.

    >>> scaled_exp(Fraction(1), bits=10)  # 1024 e = 2783.5…
    2783
    """
    if not exponent:
        return 1 << bits  # the only rational exponential, so no number of bits would decide it
    guard = _GUARD
    while (floor := near_exp(exponent, bits, guard)) is None:
        guard *= 2  # e^exponent is irrational, so enough bits tell it from any integer
    return floor


def near_exp(exponent: Fraction, bits: int, guard: int = _GUARD) -> int | None:
    """Return the integer ⌊2^bits · e^exponent⌋, or None if that many guard bits do not decide it.

    >>> near_exp(Fraction(1), bits=10)  # 1024 e = 2783.5…
    2783
    """
    top, bottom = exponent.as_integer_ratio()
    # e^x = 2^k e^r with r between about 0 and ln 2.
    k = math.floor(float(exponent) * _PER_LN2)
    precision = max(0, bits + k) + guard
    extra = 4 + k.bit_length()
    r = ((top << precision + extra) // bottom - k * _ln2(precision + extra)) >> extra
    if r < 0:
        k, r = k - 1, r + _ln2(precision)
    halvings = math.isqrt(precision) // 2 + 1
    # The series of e^(r / 2^halvings), squared as many times afterwards.
    r >>= halvings
    term = total = 1 << precision
    n = 1
    while term:
        term = (term * r >> precision) // n
        total += term
        n += 1
    for _ in range(halvings):
        total = total * total >> precision
    error = (2 * n + 8) << (halvings + 2)
    shift = precision - k - bits
    lower, upper = (total - error) >> shift, (total + error) >> shift
    return lower if lower == upper else None


def _ln2(bits: int) -> int:
    """Return 2^bits · ln 2, off by at most one."""
    cached_bits = -(-bits // 256) * 256
    return _cached_ln2(cached_bits) >> (cached_bits - bits)


@lru_cache(maxsize=256)
def _cached_ln2(bits: int) -> int:
    """Compute 2^bits · ln 2 from ln 2 = 18 artanh(1/26) - 2 artanh(1/4801) + 8 artanh(1/8749)."""
    precision = bits + 32
    parts = [(18, 26), (-2, 4801), (8, 8749)]
    return sum(factor * _artanh(precision, inverse) for factor, inverse in parts) >> 32


def _artanh(precision: int, inverse: int) -> int:
    """Approximate 2^precision · artanh(1/inverse) by its series."""
    power, total, n = (1 << precision) // inverse, 0, 1
    while power:
        total += power // n
        power //= inverse * inverse
        n += 2
    return total


def double_below(rational: Fraction) -> float:
    """Return the largest double that is not above a rational."""
    return below(rational.numerator, rational.denominator)


def double_above(rational: Fraction) -> float:
    """Return the smallest double that is not below a rational."""
    return above(rational.numerator, rational.denominator)
