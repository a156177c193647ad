"""Exact amounts of privacy: a rational plus the logarithm of a rational."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, total_ordering

from expost._format import shorten
from expost.errors import InvalidInput, at, read_at
from expost.numbers._enclosure import Enclosure
from expost.numbers._exact_sum import ExactSum, above, below
from expost.numbers._parsing import ExactLike, decimal_text, exact, positive

__all__ = ["INFINITE", "LARGEST_BUDGET", "Nats", "RunningSum"]

LARGEST_BUDGET = 10**6


@total_ordering
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Nats:
    """An exact amount of privacy in nats: ``rational + log(ratio)``; ``ratio=None`` is infinite.

    Budgets and losses on finite sets are such amounts, so that decisions about them are exact. A
    rational equals the logarithm of a rational only if both are zero, so enough digits decide
    every comparison. Sums are kept as sums, and written out only when they are shown.

    >>> from fractions import Fraction
    >>> tenth = Nats(Fraction("0.1"))
    >>> tenth + tenth + tenth == Nats(Fraction("0.3"))
    True
    >>> Nats(ratio=Fraction(3)) < Nats(Fraction("1.1"))  # log 3 is 1.0986…
    True
    """

    _sum: ExactSum | None

    def __init__(
        self,
        rational: Fraction = Fraction(0),
        ratio: Fraction | None = Fraction(1),
    ) -> None:
        if ratio is not None and ratio <= 0:
            raise ValueError("the ratio must be positive")
        object.__setattr__(self, "_sum", None if ratio is None else ExactSum.of(rational, ratio))

    @classmethod
    def of(cls, amount: ExactSum) -> Nats:
        """Return the amount with the value of a sum."""
        result = cls.__new__(cls)
        object.__setattr__(result, "_sum", amount)
        return result

    @classmethod
    def total(cls, parts: Iterable[tuple[Nats, int]]) -> Nats:
        """Return the sum of these amounts, each multiplied by its integer."""
        counted = list(parts)
        sums = [(part._sum, times) for part, times in counted if part._sum is not None]
        return INFINITE if len(sums) < len(counted) else cls.of(ExactSum.total(sums))

    @classmethod
    def budget(cls, epsilon: ExactLike | None = None, ratio: ExactLike | None = None) -> Nats:
        """Read a budget as a person writes it: ``epsilon`` in nats, or ``ratio`` = e^epsilon.

        >>> Nats.budget("0.5"), Nats.budget(ratio=3)
        (Nats(0.5), Nats(ln(3)))
        """
        if (epsilon is None) == (ratio is None):
            raise InvalidInput("give either epsilon or ratio")
        if epsilon is not None:
            return cls(rational=read_at("epsilon", positive, epsilon, at_most=LARGEST_BUDGET))
        assert ratio is not None
        with at("ratio"):
            factor = exact(ratio)
            if factor <= 1:
                raise InvalidInput(f"must be greater than 1, not {shorten(str(ratio))}")
        return cls(ratio=factor)

    @property
    def rational(self) -> Fraction:
        """The part outside the logarithm."""
        return Fraction(0) if self._sum is None else self._sum.rational

    @property
    def ratio(self) -> Fraction | None:
        """The number inside the logarithm; None if the amount is infinite."""
        return None if self._sum is None else self._sum.ratio

    @property
    def is_infinite(self) -> bool:
        """Whether some value cannot have given the responses, so that nothing bounds the loss."""
        return self._sum is None

    @property
    def is_rational(self) -> bool:
        """Whether the amount is a rational number: there is only a one inside the logarithm."""
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
        """Return the sign of ``self - other``."""
        if self._sum is None or other._sum is None:
            return (self._sum is None) - (other._sum is None)
        return ExactSum.total([(self._sum, 1), (other._sum, -1)]).sign

    @cached_property
    def enclosure(self) -> Enclosure:
        """The nearest doubles on both sides."""
        if self._sum is None:
            return Enclosure(math.inf, math.inf)
        return Enclosure(*self._sum.doubles())

    def scaled(self, bits: int) -> int:
        """Return an integer at most 2^bits times the amount, and less than two below that.

        >>> Nats(ratio=Fraction(2)).scaled(10)  # 1024 ln 2 = 709.78…
        709
        """
        assert self._sum is not None, "an infinite amount has no digits"
        digits = 20 + bits // 3
        while True:
            low, high = (Fraction(bound) * (1 << bits) for bound in self._sum.bounds(digits))
            if high - low < 1:
                return math.floor(low)
            digits *= 2

    @property
    def nearest(self) -> float:
        """A double for reports: the nearest one if the amount is rational, else the next above."""
        if self._sum is None or self._sum.has_ratio:
            return self.enclosure.upper
        return self._sum.nearest_rational


INFINITE = Nats(ratio=None)
_ZERO = Enclosure(0.0, 0.0)
# Room for the denominators of decimals with a dozen places and of many quotients; sums stay fast.
_SHORT = 1 << 64


@dataclass(frozen=True, slots=True)
class RunningSum:
    """A running sum of amounts: short rationals are added exactly, anything else is enclosed.

    >>> from fractions import Fraction
    >>> (RunningSum.of(Nats(Fraction("0.1"))) * 3).exact
    Fraction(3, 10)
    """

    exact: Fraction = Fraction(0)
    #: The sum of the other amounts.
    enclosed: Enclosure = _ZERO

    @classmethod
    def of(cls, amount: Nats) -> RunningSum:
        """Start a sum with one amount."""
        if amount.is_rational and (rational := amount.rational).denominator <= _SHORT:
            return cls(rational)
        return cls(enclosed=amount.enclosure)

    def __add__(self, other: RunningSum) -> RunningSum:
        exact, enclosed = self.exact + other.exact, self.enclosed + other.enclosed
        if exact.denominator <= _SHORT:
            return RunningSum(exact, enclosed)
        return RunningSum(self.exact, enclosed + Nats(other.exact).enclosure)

    def __mul__(self, times: int) -> RunningSum:
        return RunningSum(self.exact * times, self.enclosed * times)

    @property
    def enclosure(self) -> Enclosure:
        """Doubles around the sum."""
        parts = self.exact.as_integer_ratio()
        return Enclosure(below(*parts), above(*parts)) + self.enclosed
