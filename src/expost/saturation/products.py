"""Products of powers, written out: exactly where they are short, otherwise to 150 bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["written_out"]

# A product of more bits is rounded to this many after each step.
_SHORT = 1 << 14
_KEPT = 192


def written_out(products: Sequence[Counter[int]]) -> tuple[bool, list[Fraction]]:
    """Products of powers in units of the first of them, and whether these are exact.

    Exponents are by base. Otherwise each is within 2^-150 of itself. The same products always give
    the same fractions.
    """
    quotients = [Counter(product) for product in products]
    for quotient in quotients:
        quotient.subtract(products[0])
    exact = all(_bits(quotient) <= _SHORT for quotient in quotients)
    write = _multiplied if exact else _rounded
    return exact, [write(quotient) for quotient in quotients]


def _bits(product: Counter[int]) -> int:
    return sum(abs(power) * base.bit_length() for base, power in product.items())


def _multiplied(product: Counter[int]) -> Fraction:
    above = below = 1
    for base, power in product.items():
        if power > 0:
            above *= base**power
        else:
            below *= base**-power
    return Fraction(above, below)


def _rounded(product: Counter[int]) -> Fraction:
    """The same with a mantissa of few bits: every step is off by less than 2^-190 of itself."""
    above, below = _Rounded(), _Rounded()
    for base, power in sorted(product.items()):  # the same steps for equal products
        if power > 0:
            above = above.times(_Rounded(base).power(power))
        elif power < 0:
            below = below.times(_Rounded(base).power(-power))
    shift = above.exponent - below.exponent
    quotient = (above.mantissa << 2 * _KEPT) // below.mantissa
    short = _Rounded(quotient, shift - 2 * _KEPT)
    return Fraction(short.mantissa) * Fraction(2) ** short.exponent


class _Rounded:
    """mantissa · 2^exponent, rounded down to so many bits."""

    def __init__(self, mantissa: int = 1, exponent: int = 0) -> None:
        drop = max(0, mantissa.bit_length() - _KEPT)
        self.mantissa, self.exponent = mantissa >> drop, exponent + drop

    def times(self, other: _Rounded) -> _Rounded:
        return _Rounded(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def power(self, times: int) -> _Rounded:
        result, square = _Rounded(), self
        while times:
            if times & 1:
                result = result.times(square)
            square, times = square.times(square), times >> 1
        return result
