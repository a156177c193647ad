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
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, total_ordering
from typing import SupportsFloat

from expost.errors import InvalidInput, at
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
    if isinstance(number, bool) or not isinstance(number, (str, SupportsFloat)):
        raise InvalidInput("must be a number")
    if isinstance(number, (int, Fraction)):
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
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise InvalidInput("has too many digits")
    if number and not Fraction(1, 10**_LARGEST_EXPONENT) <= abs(number) <= 10**_LARGEST_EXPONENT:
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


def decimal_context(digits: int, rounding: str) -> decimal.Context:
    """Decimals of this many digits, of any size; ``exp`` and ``ln`` are correctly rounded."""
    return decimal.Context(
        prec=digits, rounding=rounding, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
    )


def quotient(number: Fraction) -> Decimal:
    """A rational as a decimal, rounded as the context at hand says."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def _decimals(number: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Decimals of this many digits on both sides of a rational (equal if it is one)."""
    numerator, denominator = Decimal(number.numerator), Decimal(number.denominator)
    return (
        decimal_context(digits, decimal.ROUND_FLOOR).divide(numerator, denominator),
        decimal_context(digits, decimal.ROUND_CEILING).divide(numerator, denominator),
    )


def _log_bounds(number: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rationals on both sides of log(number); ``Context.ln`` is documented as correctly rounded."""
    context = decimal_context(digits, decimal.ROUND_HALF_EVEN)
    below, above = _decimals(number, digits)
    # The logarithm of one is exactly zero; the decimal next to zero would have 10^18 digits.
    return (
        Fraction(0 if below == 1 else context.next_minus(context.ln(below))),
        Fraction(0 if above == 1 else context.next_plus(context.ln(above))),
    )


def scaled_exp(exponent: Fraction, bits: int) -> int:
    """The integer ⌊2^bits · e^exponent⌋, for a rational exponent other than zero."""
    # The result has about bits + exponent/ln 2 bits, and a decimal digit is worth three at least.
    digits = 30 + max(0, bits + int(exponent * Fraction("1.4427"))) // 3
    while True:
        context = decimal_context(digits, decimal.ROUND_HALF_EVEN)
        below, above = _decimals(exponent, digits)
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
@dataclass(frozen=True, repr=False)
class Nats:
    """An exact amount of privacy in nats: ``rational + log(ratio)``; ``ratio=None`` is infinite.

    The order is exact. A rational equals a logarithm of a rational only where both are zero, so
    more digits always decide.
    """

    rational: Fraction = Fraction(0)
    ratio: Fraction | None = Fraction(1)

    def __post_init__(self) -> None:
        if self.ratio is not None and self.ratio <= 0:
            raise ValueError("the ratio must be positive")

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

    def __add__(self, other: Nats) -> Nats:
        if self.ratio is None or other.ratio is None:
            return INFINITE
        return Nats(self.rational + other.rational, self.ratio * other.ratio)

    def __mul__(self, times: int) -> Nats:
        return self if self.ratio is None else Nats(self.rational * times, self.ratio**times)

    def __eq__(self, other: object) -> bool:
        # Equal amounts have equal parts: log(ratio) is never a rational other than zero.
        return self is other or (isinstance(other, Nats) and self._parts == other._parts)

    def __lt__(self, other: Nats) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(self._parts)

    @cached_property
    def _parts(self) -> tuple[int, ...]:
        """Integers, which are compared and hashed much faster than fractions."""
        ratio = (0, 0) if self.ratio is None else self.ratio.as_integer_ratio()
        return *self.rational.as_integer_ratio(), *ratio

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
        if self.ratio is None or other.ratio is None:
            return (self.ratio is None) - (other.ratio is None)
        rational, ratio = self.rational - other.rational, self.ratio / other.ratio
        if ratio == 1 or rational == 0:
            # Both parts are then on the same side of zero, or one of them is zero.
            return (rational > 0) - (rational < 0) + (ratio > 1) - (ratio < 1)
        digits = 30
        while True:
            below, above = _log_bounds(ratio, digits)
            if rational + below > 0:
                return 1
            if rational + above < 0:
                return -1
            digits *= 2

    @cached_property
    def enclosure(self) -> Enclosure:
        """The nearest doubles on both sides."""
        if self.ratio is None:
            return Enclosure(math.inf, math.inf)
        below = above = self.rational
        digits = 30
        while True:
            if self.ratio != 1:
                low, high = _log_bounds(self.ratio, digits)
                below, above = self.rational + low, self.rational + high
            # Adding zero turns -0.0 into 0.0.
            enclosure = Enclosure(double_below(below) + 0.0, double_above(above) + 0.0)
            if enclosure.upper <= up(enclosure.lower):
                return enclosure
            digits *= 2

    @property
    def nearest(self) -> float:
        """A double for reports: the nearest one to a rational, else the next one above."""
        return float(self.rational) if self.ratio == 1 else self.enclosure.upper


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
