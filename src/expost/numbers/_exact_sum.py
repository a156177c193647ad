"""Exact sums of rationals and of logarithms of integers, evaluated only as far as necessary.

A loss after thousands of responses is the logarithm of a product of thousands of integers. Written
out, that product can have millions of digits; as a sum of logarithms, thirty digits are usually
enough to compare it. Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

__all__ = ["ExactSum", "above", "below", "decimal_context", "decimals_around", "over_one"]

# Up to this many bits a product is written out: the logarithm of a quotient is faster than a sum,
# and loses fewer digits if the quotient is close to one.
_SHORT = 1 << 12

# Two products of up to this many bits are compared by writing them out.
_LONG = 1 << 18

# A Mersenne prime: numbers that differ modulo it are different.
_PRIME = 2**127 - 1


def over_one(doubles: Iterable[float]) -> tuple[list[int], int]:
    """Write doubles as integers over one denominator, which is a power of two."""
    ratios = [double.as_integer_ratio() for double in doubles]
    common = max([bottom for _, bottom in ratios])
    return [top * (common // bottom) for top, bottom in ratios], common


def decimal_context(digits: int, rounding: str) -> decimal.Context:
    """Return a context of this many digits, in which ``exp`` and ``ln`` are correctly rounded."""
    return decimal.Context(
        prec=digits, rounding=rounding, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
    )


def decimals_around(top: int, bottom: int, digits: int) -> tuple[Decimal, Decimal]:
    """Return the decimals of this many digits on both sides of a quotient; equal if it is one.

    >>> decimals_around(1, 3, digits=4)
    (Decimal('0.3333'), Decimal('0.3334'))
    """
    numerator, denominator = Decimal(top), Decimal(bottom)
    return (
        decimal_context(digits, decimal.ROUND_FLOOR).divide(numerator, denominator),
        decimal_context(digits, decimal.ROUND_CEILING).divide(numerator, denominator),
    )


def _logs_around(below: Decimal, above: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Bound log(below) from below and log(above) from above; ``ln`` is correctly rounded."""
    context = decimal_context(digits, decimal.ROUND_CEILING)
    near = context.ln(below)
    # The logarithm of one is exactly zero; the decimal next to zero would have 10^18 digits.
    low, high = (context.next_minus(near), context.next_plus(near)) if near else (near, near)
    if above > below:
        # log a <= log b + (a - b)/b, and a second logarithm takes much longer.
        high = context.add(high, context.divide(context.subtract(above, below), below))
    return low, high


@dataclass(frozen=True, eq=False)
class ExactSum:
    r"""A rational plus the logarithm of a rational, both as unevaluated sums.

    .. math:: \sum_i n_i \, p_i + \log \prod_j b_j^{e_j}

    >>> eight = ExactSum.product(Counter({2: 3}))
    >>> nine = ExactSum.product(Counter({3: 2}))
    >>> ExactSum.total([(nine, 1000), (eight, -1000)]).sign
    1
    """

    #: The multiplicity of each rational.
    rationals: dict[Fraction, int]
    #: Exponents by base; every base is above 1, and no exponent is zero.
    powers: dict[int, int]

    @classmethod
    def of(cls, rational: Fraction, ratio: Fraction) -> ExactSum:
        """Return the sum of one rational and the logarithm of one positive rational."""
        powers = {ratio.numerator: 1, ratio.denominator: -1}
        powers.pop(1, None)
        return cls({rational: 1} if rational else {}, powers)

    @classmethod
    def product(cls, powers: Counter[int]) -> ExactSum:
        """Return the logarithm of a product of powers of positive integers."""
        return cls({}, {base: power for base, power in powers.items() if power and base > 1})

    @classmethod
    def total(cls, parts: Iterable[tuple[ExactSum, int]]) -> ExactSum:
        """Return the sum of these parts, each multiplied by its integer."""
        rationals: Counter[Fraction] = Counter()
        powers: Counter[int] = Counter()
        for part, times in parts:
            for rational, count in part.rationals.items():
                rationals[rational] += count * times
            for base, power in part.powers.items():
                powers[base] += power * times
        return cls(
            {rational: count for rational, count in rationals.items() if count},
            {base: power for base, power in powers.items() if power},
        )

    @cached_property
    def rational(self) -> Fraction:
        """The sum of the rationals, written out."""
        if len(self.rationals) == 1:
            ((rational, count),) = self.rationals.items()
            return rational if count == 1 else rational * count
        return Fraction(*self._quotient)

    @cached_property
    def ratio(self) -> Fraction:
        """The product, written out."""
        return Fraction(*self._ratio)

    @property
    def _ratio(self) -> tuple[int, int]:
        top = [base**power for base, power in self.powers.items() if power > 0]
        bottom = [base**-power for base, power in self.powers.items() if power < 0]
        return _product(top), _product(bottom)

    @cached_property
    def _quotient(self) -> tuple[int, int]:
        """The sum of the rationals, not in lowest terms: reducing long fractions takes long."""
        by_denominator: Counter[int] = Counter()
        for rational, count in self.rationals.items():
            by_denominator[rational.denominator] += rational.numerator * count
        parts = [(top, bottom) for bottom, top in by_denominator.items()] or [(0, 1)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            sums = [_add_quotients(*first, *second) for first, second in pairs]
            parts = sums + parts[2 * len(sums) :]
        return parts[0]

    @cached_property
    def _bits(self) -> int:
        """The length in bits of the product if it were written out."""
        return sum(abs(power) * base.bit_length() for base, power in self.powers.items())

    @cached_property
    def fingerprint(self) -> tuple[int, int]:
        """Both parts modulo a prime, so equal sums have equal fingerprints."""
        return self._rational_residue, self._ratio_residue

    @cached_property
    def _rational_residue(self) -> int:
        if any(rational.denominator % _PRIME == 0 for rational in self.rationals):
            return _residue(self.rational)
        return (
            sum(
                count * rational.numerator * pow(rational.denominator, -1, _PRIME)
                for rational, count in self.rationals.items()
            )
            % _PRIME
        )

    @cached_property
    def _ratio_residue(self) -> int:
        if any(base % _PRIME == 0 for base in self.powers):
            return _residue(self.ratio)
        product = 1
        for base, power in self.powers.items():
            product = product * pow(base, power, _PRIME) % _PRIME
        return product

    @cached_property
    def has_ratio(self) -> bool:
        """Whether the product differs from one."""
        if not self.powers or self._ratio_residue != 1:
            return bool(self.powers)
        top, bottom = self._ratio
        return top != bottom

    @cached_property
    def is_zero(self) -> bool:
        """Whether the sum is zero; then both parts are, as e^rational is irrational (Lindemann)."""
        return not self.has_ratio and not self._quotient[0]

    @cached_property
    def sign(self) -> int:
        """-1, 0 or 1. If the sum is not zero, enough digits always decide."""
        if not self.rationals and self._bits <= _LONG:
            top, bottom = self._ratio
            return (top > bottom) - (top < bottom)
        digits = 30
        while True:
            low, high = self.bounds(digits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
            if self.is_zero:
                return 0
            digits *= 2

    def bounds(self, digits: int) -> tuple[Decimal, Decimal]:
        """Return decimals around the sum; more digits bring them closer."""
        # Sums get more digits than their parts, so that adding up loses little.
        floor = decimal_context(digits + 20, decimal.ROUND_FLOOR)
        ceiling = decimal_context(digits + 20, decimal.ROUND_CEILING)
        low = high = Decimal(0)
        for count, (below, above) in self._parts(digits):
            if count < 0:
                below, above = above, below
            low = floor.fma(below, Decimal(count), low)
            high = ceiling.fma(above, Decimal(count), high)
        return low, high

    def _parts(self, digits: int) -> Iterable[tuple[int, tuple[Decimal, Decimal]]]:
        for rational, count in self.rationals.items():
            yield count, decimals_around(*rational.as_integer_ratio(), digits)
        if self._bits <= _SHORT and self.powers:
            yield 1, _logs_around(*decimals_around(*self._ratio, digits), digits)
            return
        for base, power in self.powers.items():
            yield power, _logs_around(Decimal(base), Decimal(base), digits)

    @property
    def nearest_rational(self) -> float:
        """The nearest double to the sum of the rationals, which needs no lowest terms."""
        top, bottom = self._quotient
        return top / bottom

    def doubles(self) -> tuple[float, float]:
        """Return the nearest doubles on both sides."""
        digits = 30
        while True:
            if not self.has_ratio:
                return below(*self._quotient), above(*self._quotient)
            low, high = (Fraction(bound).as_integer_ratio() for bound in self.bounds(digits))
            lower, upper = below(*low), above(*high)
            if upper <= math.nextafter(lower, math.inf):
                return lower, upper
            digits *= 2


def _residue(rational: Fraction) -> int:
    """Return a rational modulo the prime, or -1 if the prime divides its denominator."""
    if rational.denominator % _PRIME == 0:
        return -1
    return rational.numerator * pow(rational.denominator, -1, _PRIME) % _PRIME


def _add_quotients(top: int, bottom: int, other_top: int, other_bottom: int) -> tuple[int, int]:
    # Denominators of decimals divide each other, or nearly so, and a common one stays short.
    if bottom.bit_length() + other_bottom.bit_length() < _SHORT:
        common = math.lcm(bottom, other_bottom)
        return top * (common // bottom) + other_top * (common // other_bottom), common
    return top * other_bottom + other_top * bottom, bottom * other_bottom


def _product(factors: list[int]) -> int:
    """Multiply by halves, so that the factors of long products have about the same length."""
    if len(factors) < 8:
        return math.prod(factors)
    middle = len(factors) // 2
    return _product(factors[:middle]) * _product(factors[middle:])


def below(top: int, bottom: int) -> float:
    """Return the largest double that is not above a quotient; ``bottom`` is positive."""
    try:
        nearest = top / bottom  # correctly rounded, whatever the sizes
    except OverflowError:
        return -math.inf if top < 0 else math.nextafter(math.inf, 0)
    over, under = nearest.as_integer_ratio()
    # Adding zero turns -0.0 into 0.0.
    return (nearest if over * bottom <= top * under else math.nextafter(nearest, -math.inf)) + 0.0


def above(top: int, bottom: int) -> float:
    """Return the smallest double that is not below a quotient."""
    return 0.0 - below(-top, bottom)
