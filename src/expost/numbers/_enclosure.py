"""Pairs of doubles, rounded outward so that the exact number is certainly between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from expost._format import format_nats, format_number
from expost.cards import card

__all__ = ["NEGLIGIBLE", "UNIT", "Enclosure", "down", "up"]

#: Unit roundoff: the relative error of one correctly rounded operation on doubles.
UNIT = 2.0**-53

#: An amount that may be zero and is below this is shown as zero.
NEGLIGIBLE = 1e-9


def up(x: float) -> float:
    """Return the next double above, which turns a result rounded to nearest into an upper bound.

    >>> up(1.0) > 1.0
    True
    """
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """Return the next double below, which turns a result rounded to nearest into a lower bound."""
    return math.nextafter(x, -math.inf)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A real number that is certainly between two doubles, ``lower`` and ``upper``.

    Losses come as enclosures, because most have no exact double. Act on ``upper``, which may be
    infinite. Sums are rounded outward, so they enclose the exact sum.

    >>> from fractions import Fraction
    >>> total = Enclosure(0.1, 0.1) + Enclosure(0.2, 0.2)
    >>> Fraction(0.1) + Fraction(0.2) in total
    True
    """

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
        """The distance between the two ends, rounded up."""
        return up(self.upper - self.lower) if self.lower < self.upper else 0.0

    @property
    def negligible(self) -> bool:
        """Whether it may be zero, and is too small to matter."""
        return self.lower == 0 and self.upper < NEGLIGIBLE

    def shown(self, digits: int = 6) -> str:
        """Write the upper end, which is the one to act on, or 0 if it is negligible.

        >>> Enclosure(0.5, 0.5000001).shown(), Enclosure(0.0, 5.55e-15).shown()
        ('0.5', '0')
        >>> Enclosure(5.55e-15, 5.56e-15).shown()  # which is certainly not zero
        '5.56e-15'
        """
        return "0" if self.negligible else format_number(self.upper, digits)

    def _repr_html_(self) -> str:
        facts = {"lower": self.lower, "upper": self.upper, "width": self.width}
        little = f"below {format_number(NEGLIGIBLE)}"
        return card(
            "Enclosure",
            {
                name: little if end > 0 and self.negligible else format_nats(end)
                for name, end in facts.items()
            },
        )
