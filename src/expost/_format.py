"""Counts, nats, factors, shares and lists as text, in one module for commands and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import SupportsFloat

__all__ = [
    "align_columns",
    "format_confidence",
    "format_count",
    "format_factor",
    "format_fixed",
    "format_integer",
    "format_list",
    "format_nats",
    "format_number",
    "format_percent",
    "format_range",
    "format_remaining",
    "format_share",
    "shorten",
]

_MOST_LISTED = 4


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> format_count(1, "subject"), format_count(5000, "subject")
    ('1 subject', '5,000 subjects')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_integer(integer: int) -> str:
    """Format an integer: all digits, or only six if it has more than twenty.

    >>> format_integer(3680000), format_integer(10**400)
    ('3,680,000', '1.00000e+400')
    """
    return f"{integer:,}" if abs(integer) < 10**20 else f"{Decimal(integer):.5e}"


def format_number(amount: SupportsFloat, digits: int = 6) -> str:
    """Format the double nearest to a number, with at most so many significant digits.

    >>> format_number(1 / 3), format_number(1 / 3, 4), format_number(2.0)
    ('0.333333', '0.3333', '2')
    """
    return f"{float(amount):.{digits}g}"


def format_fixed(amount: float, decimals: int) -> str:
    """Format a number with so many digits after the point.

    >>> format_fixed(0.5, 4), format_fixed(1234.5, 0)
    ('0.5000', '1,234')
    """
    return f"{amount:,.{decimals}f}"


def format_range(lower: SupportsFloat, upper: SupportsFloat) -> str:
    """Format the ends of a range.

    >>> format_range(0, 2.5)
    'from 0 to 2.5'
    """
    return f"from {format_number(lower)} to {format_number(upper)}"


def format_nats(amount: float) -> str:
    """Format an amount of privacy in nats, with six digits.

    >>> format_nats(1.0986122886681098)
    '1.09861'
    """
    return format_number(amount)


def format_remaining(nats: float, budget: float = 1.0) -> str:
    """Format what remains of a budget; as 0 what rounded weights leave of a spent one.

    Weights are rounded so that a query reveals a little less than its epsilon.

    >>> format_remaining(0.25), format_remaining(4e-12)
    ('0.25', '0')
    """
    return "0" if nats < 1e-9 * budget else format_nats(nats)


def format_factor(nats: float, digits: int = 3) -> str:
    """Format the factor by which an amount of privacy can change odds.

    >>> format_factor(1), format_factor(8), format_factor(800)
    ('2.72', '2,981', 'e^800')
    """
    if nats > math.log(1e6):
        return f"e^{format_nats(nats)}"
    factor = math.exp(nats)
    return format_fixed(factor, 0) if factor >= 100 else format_number(factor, digits)


def format_confidence(confidence: float) -> str:
    """Format a confidence: ``95 %``."""
    return f"{format_number(100 * confidence)} %"


def format_share(share: float) -> str:
    """Format a share of a budget or of a cost, with three digits: ``33.3 %``."""
    return f"{format_number(100 * share, 3)} %"


def format_percent(share: float) -> str:
    """Format a share: whole percentages, with more digits only close to 0 and 100.

    Only an exact 0 or 1 is shown as 0 % or 100 %.
    """
    if share in (0, 1):
        return f"{format_fixed(share * 100, 0)} %"
    smaller = min(share, 1 - share)
    # Two digits of the smaller part: 23 %, 0.12 %, 99.97 %.
    if smaller < 1e-6:
        return "under 0.0001 %" if share < 0.5 else "over 99.9999 %"
    text = f"{100 * share:.{max(0, -1 - math.floor(math.log10(smaller)))}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def format_list(entries: Sequence[object], conjunction: str = "and") -> str:
    """Format a list in words, with at most four entries; long entries are cut.

    >>> format_list(["age", "sex", "region"])
    'age, sex and region'
    >>> format_list("abcdefg")
    'a, b, c, d and 3 more'
    """
    shown = [shorten(str(entry)) for entry in entries[: _MOST_LISTED + 1]]
    if len(entries) > len(shown):
        shown[-1] = f"{len(entries) - _MOST_LISTED:,} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"


def shorten(text: str, longest: int = 40) -> str:
    """Cut a text that is too long.

    >>> shorten("a long name", longest=6)
    'a long…'
    """
    return text if len(text) <= longest else f"{text[:longest]}…"


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows as lines whose cells are aligned to the left.

    >>> align_columns([("name", "age"), ("Ann", "34")])
    ['name  age', 'Ann   34']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
