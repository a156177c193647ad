"""Enclosures rounded outward, and exact amounts of privacy.

Two kinds of number are acted on. An :class:`Enclosure` is a pair of doubles that contains the real
value. A :class:`Nats` is the real value itself, written as a rational plus the logarithm of a
rational; budgets, guarantees and losses over a finite domain all have this form, so they can be
compared exactly. Proof: docs/theory/exact_comparison.md.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, total_ordering
from typing import SupportsFloat

from expost.errors import InvalidInput, at
from expost.exact_sum import ExactSum, decimal_context, decimals_around
from expost.integer_exp import near_exp
from expost.notebook import card, nats

__all__ = [
    "INFINITE",
    "UNIT",
    "Added",
    "Enclosure",
    "ExactLike",
    "Nats",
    "decimal_context",
    "decimal_text",
    "double_above",
    "double_below",
    "down",
    "exact",
    "positive",
    "quotient",
    "scaled_exp",
    "up",
]

UNIT = 2.0**-53
"""Unit roundoff: the relative error of one correctly rounded operation on doubles."""

LARGEST_BUDGET = 10**6

ExactLike = int | float | str | Decimal | Fraction | SupportsFloat


def up(x: float) -> float:
    """The next double above, so that a result rounded to nearest becomes an upper bound."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """The next double below."""
    return math.nextafter(x, -math.inf)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A real number between two doubles. Act on ``upper``; it may be infinite."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError("an enclosure needs lower <= upper")

    def __add__(self, other: Enclosure) -> Enclosure:
        if 0.0 == other.lower == other.upper:
            return self
        if 0.0 == self.lower == self.upper:
            return other
        if math.inf in (self.lower, other.lower):
            return Enclosure(math.inf, math.inf)
        return Enclosure(down(self.lower + other.lower), up(self.upper + other.upper))

    def __mul__(self, times: int) -> Enclosure:
        if times == 1 or self.lower == math.inf or 0.0 == self.lower == self.upper:
            return self
        return Enclosure(down(self.lower * times), up(self.upper * times))

    def __contains__(self, x: float | Fraction) -> bool:
        return self.lower <= x <= self.upper

    @property
    def width(self) -> float:
        return up(self.upper - self.lower) if self.lower < self.upper else 0.0

    def _repr_html_(self) -> str:
        facts = {"lower": self.lower, "upper": self.upper, "width": self.width}
        return card("Enclosure", {name: nats(number) for name, number in facts.items()})


# A person's number: a decimal or a quotient of integers. Limits keep a hostile file from asking
# for a billion digits, and every number within the range of doubles.
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d+))?", re.ASCII)
_QUOTIENT = re.compile(r"[+-]?\d+/\d+", re.ASCII)
_MOST_CHARACTERS = 2000
_MOST_BITS = 3000
_LARGEST_EXPONENT = 300


def exact(number: ExactLike) -> Fraction:
    """The rational that a person meant: ``0.3`` and ``"0.3"`` are both 3/10, ``"1/3"`` is 1/3."""
    if isinstance(number, Fraction):
        return _modest(number)
    if isinstance(number, bool) or not isinstance(number, (str, SupportsFloat)):
        raise InvalidInput("must be a number")
    if isinstance(number, int):
        return _modest(Fraction(number))
    # str of a NumPy float is its shortest decimal in its own precision, as repr of a float is.
    text = str(number)
    if len(text) > _MOST_CHARACTERS:
        raise InvalidInput("has too many digits")
    if _QUOTIENT.fullmatch(text):
        numerator, denominator = map(int, text.split("/"))
        if denominator == 0:
            raise InvalidInput("has a denominator of zero")
        return _modest(Fraction(numerator, denominator))
    match = _DECIMAL.fullmatch(text)
    if match is None:
        if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            raise InvalidInput("must be a finite number")
        raise InvalidInput('must be a decimal or "p/q"')
    exponent = match["exponent"] or "0"
    if len(exponent) > 5 or abs(int(exponent)) > 2 * _LARGEST_EXPONENT:
        raise InvalidInput("is too large or too small")
    return _modest(Fraction(text))


def positive(number: ExactLike, *, at_most: int) -> Fraction:
    """An exact number above zero and not above a limit."""
    value = exact(number)
    if value <= 0:
        raise InvalidInput("must be greater than 0")
    if value > at_most:
        raise InvalidInput(f"must be at most {at_most}")
    return value


def _modest(number: Fraction) -> Fraction:
    # Both parts together are then few enough characters to be read again as they are written.
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    if bits > _MOST_BITS:
        raise InvalidInput("has too many digits")
    if (
        bits > _LARGEST_EXPONENT
        and number
        and not Fraction(1, 10**_LARGEST_EXPONENT) <= abs(number) <= 10**_LARGEST_EXPONENT
    ):
        raise InvalidInput("is too large or too small")
    return number


def decimal_text(number: Fraction) -> str:
    """The shortest exact text: a decimal where one ends within 30 places, else ``p/q``."""
    denominator, places = number.denominator, 0
    while denominator != 1 and places <= 30:
        common = math.gcd(denominator, 10)
        if common == 1:
            break
        denominator //= common
        places += 1
    if denominator != 1 or places > 30:
        return f"{number.numerator}/{number.denominator}"
    if places == 0:
        return str(number.numerator)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def quotient(number: Fraction) -> Decimal:
    """A rational as a decimal, rounded as the context at hand says."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def scaled_exp(exponent: Fraction, bits: int) -> int:
    """The integer ⌊2^bits · e^exponent⌋, for a rational exponent other than zero."""
    near = near_exp(exponent, bits)
    if near is not None:
        return near
    # The result has about bits + exponent/ln 2 bits, and a decimal digit is worth three at least.
    digits = 30 + max(0, bits + int(exponent * Fraction("1.4427"))) // 3
    while True:
        context = decimal_context(digits, decimal.ROUND_HALF_EVEN)
        below, above = decimals_around(*exponent.as_integer_ratio(), digits)
        lower = _scaled_floor(context.next_minus(context.exp(below)), bits)
        upper = _scaled_floor(context.next_plus(context.exp(above)), bits)
        if lower == upper:
            return lower
        digits *= 2  # e^exponent is irrational, so some number of digits tells it from an integer


def _scaled_floor(number: Decimal, bits: int) -> int:
    """⌊2^bits · number⌋ of a positive number, without a fraction in lowest terms."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int(number.scaleb(-exponent, decimal_context(len(digits), decimal.ROUND_FLOOR)))
    if exponent >= 0:
        return coefficient * int(10**exponent) << bits
    return int((coefficient << bits) // 10**-exponent)


def double_below(number: Fraction) -> float:
    """The largest double that is not above a rational."""
    try:
        nearest = float(number)
    except OverflowError:
        return -math.inf if number < 0 else math.nextafter(math.inf, 0)
    return nearest if nearest <= number else down(nearest)


def double_above(number: Fraction) -> float:
    """The smallest double that is not below a rational."""
    return -double_below(-number)


@total_ordering
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Nats:
    """An exact amount of privacy in nats: ``rational + log(ratio)``; ``ratio=None`` is infinite.

    The order is exact. A rational equals a logarithm of a rational only where both are zero, so
    more digits always decide. Sums are held as such, and written out only where they are shown.
    """

    _sum: ExactSum | None

    def __init__(
        self,
        rational: Fraction = Fraction(0),
        ratio: Fraction | None = Fraction(1),
    ) -> None:
        if ratio is not None and ratio <= 0:
            raise ValueError("the ratio must be positive")
        amount = None if ratio is None else ExactSum.of(rational, ratio)
        object.__setattr__(self, "_sum", amount)

    @classmethod
    def of(cls, amount: ExactSum) -> Nats:
        """The amount that a sum is."""
        result = cls.__new__(cls)
        object.__setattr__(result, "_sum", amount)
        return result

    @classmethod
    def total(cls, parts: Iterable[tuple[Nats, int]]) -> Nats:
        """The sum of these amounts, each so many times."""
        counted = list(parts)
        sums = [(part._sum, times) for part, times in counted if part._sum is not None]
        if len(sums) < len(counted):
            return INFINITE
        return cls.of(ExactSum.total(sums))

    @classmethod
    def budget(cls, epsilon: ExactLike | None = None, ratio: ExactLike | None = None) -> Nats:
        """A budget as a person writes it: ``epsilon`` in nats, or ``ratio`` = e^epsilon."""
        if (epsilon is None) == (ratio is None):
            raise InvalidInput("give either epsilon or ratio")
        if epsilon is not None:
            with at("epsilon"):
                return cls(rational=positive(epsilon, at_most=LARGEST_BUDGET))
        assert ratio is not None
        with at("ratio"):
            factor = exact(ratio)
            if factor <= 1:
                raise InvalidInput("must be greater than 1")
        return cls(ratio=factor)

    @property
    def rational(self) -> Fraction:
        """What is not under the logarithm."""
        return Fraction(0) if self._sum is None else self._sum.rational

    @property
    def ratio(self) -> Fraction | None:
        """What is under the logarithm."""
        return None if self._sum is None else self._sum.ratio

    @property
    def is_infinite(self) -> bool:
        return self._sum is None

    @property
    def is_rational(self) -> bool:
        """Whether there is nothing under the logarithm but one."""
        return self._sum is not None and not self._sum.has_ratio

    def __add__(self, other: Nats) -> Nats:
        return Nats.total([(self, 1), (other, 1)])

    def __mul__(self, times: int) -> Nats:
        return Nats.total([(self, times)])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Nats) or self._fingerprint != other._fingerprint:
            return False
        return self._compare(other) == 0

    def __lt__(self, other: Nats) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(self._fingerprint)

    @property
    def _fingerprint(self) -> tuple[int, int] | None:
        return None if self._sum is None else self._sum.fingerprint

    def __repr__(self) -> str:
        return f"Nats({self})"

    def __str__(self) -> str:
        if self.ratio is None:
            return "inf"
        parts = [] if self.rational == 0 and self.ratio != 1 else [decimal_text(self.rational)]
        if self.ratio != 1:
            parts.append(f"ln({self.ratio})")
        return " + ".join(parts)

    def _compare(self, other: Nats) -> int:
        """The sign of ``self - other``."""
        if self._sum is None or other._sum is None:
            return (self._sum is None) - (other._sum is None)
        return ExactSum.total([(self._sum, 1), (other._sum, -1)]).sign

    @cached_property
    def enclosure(self) -> Enclosure:
        """The nearest doubles on both sides."""
        if self._sum is None:
            return Enclosure(math.inf, math.inf)
        return Enclosure(*self._sum.doubles())

    @property
    def nearest(self) -> float:
        """A double for reports: the nearest one to a rational, else the next one above."""
        if self._sum is None or self._sum.has_ratio:
            return self.enclosure.upper
        return self._sum.nearest_rational


INFINITE = Nats(ratio=None)

# Denominators of decimals with a dozen places, and of many quotients; no sum takes long.
_SHORT = 1 << 64


@dataclass(frozen=True, slots=True)
class Added:
    """A sum of amounts: three times 0.1 is 0.3. What would be long to write is enclosed."""

    exact: Fraction = Fraction(0)
    rest: Enclosure = Enclosure(0.0, 0.0)

    @classmethod
    def of(cls, amount: Nats) -> Added:
        if amount.ratio == 1 and amount.rational.denominator <= _SHORT:
            return cls(amount.rational)
        return cls(rest=amount.enclosure)

    def __add__(self, other: Added) -> Added:
        exact, rest = self.exact + other.exact, self.rest + other.rest
        if exact.denominator <= _SHORT:
            return Added(exact, rest)
        return Added(self.exact, rest + Nats(other.exact).enclosure)

    def __mul__(self, times: int) -> Added:
        return Added(self.exact * times, self.rest * times)

    @property
    def enclosure(self) -> Enclosure:
        return Nats(self.exact).enclosure + self.rest
