"""The doubles next to an exact number, and scaled exponentials as integers."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from expost.numbers.exact_sum import above, below, decimal_context, decimals_around
from expost.numbers.integer_exp import near_exp

__all__ = ["double_above", "double_below", "scaled_exp"]


def scaled_exp(exponent: Fraction, bits: int) -> int:
    """The integer ⌊2^bits · e^exponent⌋, for a rational exponent.

    >>> scaled_exp(Fraction(1), bits=10)  # 1024 e = 2783.5…
    2783
    """
    if not exponent:
        return 1 << bits  # the only rational exponential, so no number of digits would decide it
    near = near_exp(exponent, bits)
    if near is not None:
        return near
    # The result has about bits + exponent/ln 2 bits, and a decimal digit is worth at least three.
    digits = 30 + max(0, bits + int(exponent * Fraction("1.4427"))) // 3
    while True:
        context = decimal_context(digits, decimal.ROUND_HALF_EVEN)
        below, above = decimals_around(*exponent.as_integer_ratio(), digits)
        lower = _scaled_floor(context.next_minus(context.exp(below)), bits)
        upper = _scaled_floor(context.next_plus(context.exp(above)), bits)
        if lower == upper:
            return lower
        digits *= 2  # e^exponent is irrational, so enough digits tell it from any integer


def _scaled_floor(number: Decimal, bits: int) -> int:
    """⌊2^bits · number⌋ of a positive number, without reducing a fraction."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int(number.scaleb(-exponent, decimal_context(len(digits), decimal.ROUND_FLOOR)))
    if exponent >= 0:
        return coefficient * int(10**exponent) << bits
    return int((coefficient << bits) // 10**-exponent)


def double_below(number: Fraction) -> float:
    """The largest double that is not above a rational."""
    return below(number.numerator, number.denominator)


def double_above(number: Fraction) -> float:
    """The smallest double that is not below a rational."""
    return above(number.numerator, number.denominator)
