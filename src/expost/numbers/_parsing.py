"""Numbers as people write them, read exactly."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import SupportsFloat

from expost._format import shorten
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
_MOST_DECIMALS = 30


def exact(written: ExactLike) -> Fraction:
    """Return the rational number that a person meant: the float ``0.3`` is 3/10, as the text is.

    >>> exact(0.3), exact("0.3"), exact("1/3")
    (Fraction(3, 10), Fraction(3, 10), Fraction(1, 3))
    """
    # Asking isinstance of Fraction, or of SupportsFloat, takes longer than everything else.
    if type(written) is Fraction:
        return _limit_size(written)
    if isinstance(written, bool) or not isinstance(written, (str, float, int, SupportsFloat)):
        raise InvalidInput(f"must be a number, not {type(written).__name__}")
    if isinstance(written, int):
        return _limit_size(Fraction(written))
    # str of a NumPy float is its shortest decimal in its own precision, like repr of a float.
    text = str(written)
    if len(text) > _MOST_CHARACTERS:
        raise InvalidInput("has too many digits")
    return _parse_short(text) if len(text) < _SHORT else _parse(text)


def _parse(text: str) -> Fraction:
    if _QUOTIENT.fullmatch(text):
        numerator, denominator = map(int, text.split("/"))
        if denominator == 0:
            raise InvalidInput(f"{text!r} has a denominator of zero")
        return _limit_size(Fraction(numerator, denominator))
    match = _DECIMAL.fullmatch(text)
    if match is None:
        if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            raise InvalidInput(f"must be a finite number, not {text}")
        example = "1.5" if _COMMA.fullmatch(text) else "0.5 or 1/3"
        raise InvalidInput(f"{shorten(text)!r} is not a number; write {example}")
    exponent = match["exponent"] or "0"
    if len(exponent) > 5 or abs(int(exponent)) > 2 * _LARGEST_EXPONENT:
        raise InvalidInput("is too large or too small")
    return _limit_size(Fraction(text))


# A file repeats a few epsilons and probabilities.
_parse_short = lru_cache(maxsize=1 << 12)(_parse)


def positive(written: ExactLike, *, at_most: int) -> Fraction:
    """Read an exact number above zero and at most a limit; refuse any other.

    >>> positive("0.5", at_most=1)
    Fraction(1, 2)
    """
    value = exact(written)
    top, bottom = value.as_integer_ratio()
    if top <= 0:
        raise InvalidInput(f"must be greater than 0, not {shorten(str(written))}")
    if top > at_most * bottom:
        raise InvalidInput(f"must be at most {at_most}, not {shorten(str(written))}")
    return value


def read_confidence(confidence: ExactLike) -> Fraction:
    """Read a confidence exactly; it and its double are between 0 and 1."""
    with at("confidence"):
        level = exact(confidence)
        if not 0 < float(level) < 1:
            raise InvalidInput(
                f"must be between 0 and 1, not {shorten(str(confidence))}; write 0.95"
            )
        return level


def _limit_size(rational: Fraction) -> Fraction:
    # Both parts together then have few enough characters to be read again once written.
    top, bottom = rational.as_integer_ratio()
    bits = max(top.bit_length(), bottom.bit_length())
    if bits > _MOST_BITS:
        raise InvalidInput("has too many digits")
    if (
        bits > _LARGEST_EXPONENT
        and rational
        and not Fraction(1, 10**_LARGEST_EXPONENT) <= abs(rational) <= 10**_LARGEST_EXPONENT
    ):
        raise InvalidInput("is too large or too small")
    return rational


def decimal_text(rational: Fraction) -> str:
    """Write the shortest exact string: a decimal if it ends within 30 places, otherwise ``p/q``.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    top, bottom = rational.as_integer_ratio()
    if bottom == 1 or 10**_MOST_DECIMALS % bottom:
        return str(rational)
    decimals = next(n for n in range(1, _MOST_DECIMALS + 1) if not 10**n % bottom)
    digits = str(abs(top) * 10**decimals // bottom).rjust(decimals + 1, "0")
    return f"{'-' if top < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def quotient(rational: Fraction) -> Decimal:
    """Convert a rational to a decimal, rounded by the current decimal context."""
    return Decimal(rational.numerator) / Decimal(rational.denominator)
