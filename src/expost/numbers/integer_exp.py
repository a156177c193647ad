"""The exponential function in integers, many times faster than in decimals.

Proof of the bound: docs/theory/exact_comparison.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

__all__ = ["near_exp"]

_GUARD = 64
_PER_LN2 = 1 / math.log(2)


def near_exp(exponent: Fraction, bits: int) -> int | None:
    """The integer ⌊2^bits · e^exponent⌋; None where 64 more bits do not tell it for certain."""
    top, bottom = exponent.as_integer_ratio()
    # e^x = 2^k e^r with r between 0 and ln 2, about.
    k = math.floor(float(exponent) * _PER_LN2)
    places = max(0, bits + k) + _GUARD
    more = 4 + k.bit_length()
    r = ((top << places + more) // bottom - k * _ln2(places + more)) >> more
    if r < 0:
        k, r = k - 1, r + _ln2(places)
    halvings = math.isqrt(places) // 2 + 1
    # The series of e^(r / 2^halvings), which is then squared that often.
    r >>= halvings
    term = total = 1 << places
    n = 1
    while term:
        term = (term * r >> places) // n
        total += term
        n += 1
    for _ in range(halvings):
        total = total * total >> places
    error = (2 * n + 8) << (halvings + 2)
    shift = places - k - bits
    lower, upper = (total - error) >> shift, (total + error) >> shift
    return lower if lower == upper else None


def _ln2(bits: int) -> int:
    """2^bits · ln 2, off by one at most."""
    kept = -(-bits // 256) * 256
    return _kept_ln2(kept) >> (kept - bits)


@lru_cache(maxsize=256)
def _kept_ln2(bits: int) -> int:
    """By ln 2 = 18 artanh(1/26) - 2 artanh(1/4801) + 8 artanh(1/8749)."""
    places = bits + 32
    parts = [(18, 26), (-2, 4801), (8, 8749)]
    return sum(factor * _artanh(places, of) for factor, of in parts) >> 32


def _artanh(places: int, of: int) -> int:
    """2^places · artanh(1/of)."""
    power, total, n = (1 << places) // of, 0, 1
    while power:
        total += power // n
        power //= of * of
        n += 2
    return total
