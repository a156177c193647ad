"""Decimals with many more digits than a double, and the doubles around them."""

from __future__ import annotations

import decimal
from contextlib import AbstractContextManager
from decimal import Decimal
from fractions import Fraction

from expost.numbers._doubles import double_above, double_below
from expost.numbers._enclosure import Enclosure
from expost.numbers._exact_sum import decimal_context

__all__ = ["DECIMAL_ERROR", "enclose_decimal", "fifty_digits"]

#: A relative error far above that of dozens of operations with 50 digits each.
DECIMAL_ERROR = Fraction(1, 10**35)

_FIFTY = decimal_context(50, decimal.ROUND_HALF_EVEN)


def fifty_digits() -> AbstractContextManager[decimal.Context]:
    """Return a context in which decimals have 50 digits, whatever the caller has set.

    >>> with fifty_digits():
    ...     len(str(Decimal(1) / 3).removeprefix("0."))
    50
    """
    return decimal.localcontext(_FIFTY)


def enclose_decimal(approximation: Decimal, error: Fraction) -> Enclosure:
    """Enclose a non-negative real that is within an absolute error of a decimal."""
    middle = Fraction(approximation)
    return Enclosure(max(0.0, double_below(middle - error)), max(0.0, double_above(middle + error)))
