"""The first rule that improved on basic composition, for comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total, rounded_up
from expost.numbers import (
    DECIMAL_ERROR,
    Enclosure,
    Nats,
    double_above,
    enclose_decimal,
    fifty_digits,
    quotient,
    scaled_exp,
)
from expost.queries import Query

__all__ = ["Rogers"]

_CONSTANT = Decimal("28.04")
_SURE = Decimal("1e-35")
_STEP, _WIDTH = Decimal("1e-12"), Decimal("1e-22")
_BITS = 64


@dataclass(frozen=True)
class Rogers(Rule):
    r"""The first adaptive advanced composition (Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1).

    With :math:`c = \varepsilon_g^2 / (28.04 \log(1/\delta_g))` and :math:`\delta_g < 1/e`, accept
    while

    .. math:: \sum_i \frac{\varepsilon_i (e^{\varepsilon_i} - 1)}{2} + \sqrt{2 \left(\sum_i
              \varepsilon_i^2 + c\right) \left(1 + \tfrac12 \log\left(\tfrac1c \sum_i
              \varepsilon_i^2 + 1\right)\right) \log\tfrac{2}{\delta_g}} \le \varepsilon_g,
              \quad \sum_i \delta_i \le \frac{\delta_g}{2} ,

    or while the epsilons add up to at most the budget. It is here for comparison. Proof:
    docs/theory/approximate.md.

    >>> from fractions import Fraction
    >>> import expost as xp
    >>> from expost.filters.rules import Rogers
    >>> rule, answer = Rogers(), xp.randomized_response(epsilon="0.1")
    >>> price = rule.price(answer, xp.FiniteSet(["no", "yes"]))
    >>> round(rule.cost(price * 100, Fraction("1e-6")).upper, 3)
    8.658
    """

    kind: ClassVar[str] = "rogers"

    def check(self, delta: Fraction) -> None:
        if not Nats(ratio=1 / delta) > Nats(Fraction(1)):
            raise InvalidInput("needs a delta less than 1/e")

    def allowance(self, delta: Fraction) -> Fraction:
        return delta / 2

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        epsilon = rounded_up(self.charge(query, domain)[0])
        if epsilon is None:
            return math.inf, math.inf
        if epsilon == 0:
            return 0.0, 0.0
        # Enough bits to tell e^epsilon from 1. One unit more than the floor is an upper bound.
        bits = _BITS + max(0, -math.frexp(float(epsilon))[1])
        growth = Fraction(scaled_exp(epsilon, bits) + 1, 1 << bits) - 1
        return double_above(epsilon * epsilon), double_above(epsilon * growth / 2)

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        squares, mean = total.amounts or (Fraction(0), Fraction(0))
        if not isinstance(squares, Fraction) or not isinstance(mean, Fraction):
            return UNAFFORDABLE
        if squares == 0:
            return Enclosure(0.0, 0.0)
        with fifty_digits():
            root = quotient(squares).sqrt()
            drift = quotient(mean) / root
            middle, width = _approximate_budget(drift, delta), _WIDTH
            # This proves both ends, whatever the search for them did.
            while (
                _share(low := middle * (1 - width), drift, delta) <= 1 + _SURE
                or _share(high := middle * (1 + width), drift, delta) >= 1 - _SURE
            ):
                width *= 16
            low, high = low * root, high * root
        return Enclosure(
            enclose_decimal(low, DECIMAL_ERROR * Fraction(low)).lower,
            enclose_decimal(high, DECIMAL_ERROR * Fraction(high)).upper,
        )


def _share(budget: Decimal, drift: Decimal, delta: Fraction) -> Decimal:
    """Return the left side of the theorem as a share of the budget, which falls as that grows.

    Both the budget and the drift (the first sum) are divided by the root of the sum of squares.
    """
    logarithm = -quotient(delta).ln()
    scale, square = _CONSTANT * logarithm, budget * budget
    spread = 2 * (1 / square + 1 / scale) * (1 + (scale / square + 1).ln() / 2)
    return drift / budget + (spread * (logarithm + Decimal(2).ln())).sqrt()


def _approximate_budget(drift: Decimal, delta: Fraction) -> Decimal:
    """Approximate the budget whose share is one: first in doubles, then by a chord in decimals."""
    start, log = float(drift), math.log(delta.denominator) - math.log(delta.numerator)
    scale, factor = float(_CONSTANT) * log, 2 * (log + math.log(2))

    def share(budget: float) -> float:
        square = budget * budget
        spread = (1 / square + 1 / scale) * (1 + math.log1p(scale / square) / 2)
        return start / budget + math.sqrt(spread * factor)

    low, high = 1.0, 2.0
    while share(high) > 1:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if share(middle) > 1 else (low, middle)
    below, above = Decimal(high) * (1 - _STEP), Decimal(high) * (1 + _STEP)
    first, second = _share(below, drift, delta), _share(above, drift, delta)
    return below + (above - below) * (first - 1) / (first - second)
