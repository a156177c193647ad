"""Numbers as people write them, read exactly."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import SupportsFloat

from expost.errors import InvalidInput, at

__all__ = ["ExactLike", "decimal_text", "exact", "positive", "quotient", "read_confidence"]

ExactLike = int | float | str | Decimal | Fraction | SupportsFloat
# A number as a person writes it: a decimal or a quotient of integers. The limits keep a hostile
# file from asking for a billion digits, and every number within the range of doubles.
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d+))?", re.ASCII)
_QUOTIENT = re.compile(r"[+-]?\d+/\d+", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_MOST_CHARACTERS = 2000
_SHORT = 32
_MOST_BITS = 3000
_LARGEST_EXPONENT = 300


def exact(number: ExactLike) -> Fraction:
    """The rational number that a person meant: the float ``0.3`` is 3/10, as the text is.

    >>> exact(0.3), exact("0.3"), exact("1/3")
    (Fraction(3, 10), Fraction(3, 10), Fraction(1, 3))
    """
    # Asking whether something is a Fraction, or supports float, takes longer than all else.
    if type(number) is Fraction:
        return _modest(number)
    if isinstance(number, bool) or not isinstance(number, (str, float, int, SupportsFloat)):
        raise InvalidInput("must be a number")
    if isinstance(number, int):
        return _modest(Fraction(number))
    # str of a NumPy float is its shortest decimal in its own precision, like repr of a float.
    text = str(number)
    if len(text) > _MOST_CHARACTERS:
        raise InvalidInput("has too many digits")
    return _short(text) if len(text) < _SHORT else _written(text)


def _written(text: str) -> Fraction:
    if _QUOTIENT.fullmatch(text):
        numerator, denominator = map(int, text.split("/"))
        if denominator == 0:
            raise InvalidInput("has a denominator of zero")
        return _modest(Fraction(numerator, denominator))
    match = _DECIMAL.fullmatch(text)
    if match is None:
        if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            raise InvalidInput("must be a finite number")
        point = ", with a point: 1.5" if _COMMA.fullmatch(text) else ""
        raise InvalidInput(f'must be a decimal or "p/q"{point}')
    exponent = match["exponent"] or "0"
    if len(exponent) > 5 or abs(int(exponent)) > 2 * _LARGEST_EXPONENT:
        raise InvalidInput("is too large or too small")
    return _modest(Fraction(text))


# The same few epsilons and probabilities fill a file.
_short = lru_cache(maxsize=1 << 12)(_written)


def positive(number: ExactLike, *, at_most: int) -> Fraction:
    """An exact number that is above zero and at most a limit; an error for any other.

    >>> positive("0.5", at_most=1)
    Fraction(1, 2)
    """
    value = exact(number)
    top, bottom = value.as_integer_ratio()
    if top <= 0:
        raise InvalidInput("must be greater than 0")
    if top > at_most * bottom:
        raise InvalidInput(f"must be at most {at_most}")
    return value


def read_confidence(confidence: ExactLike) -> Fraction:
    """A confidence between 0 and 1 as a person writes it, exactly; its double is between too."""
    with at("confidence"):
        level = exact(confidence)
        if not 0 < float(level) < 1:
            raise InvalidInput("must be between 0 and 1, such as 0.95")
        return level


def _modest(number: Fraction) -> Fraction:
    # Both parts together then have few enough characters to be read again as they are written.
    top, bottom = number.as_integer_ratio()
    bits = max(top.bit_length(), bottom.bit_length())
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
    """The shortest exact text: a decimal if it ends within 30 places, otherwise ``p/q``.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
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
    """A rational as a decimal, rounded by the current decimal context."""
    return Decimal(number.numerator) / Decimal(number.denominator)
