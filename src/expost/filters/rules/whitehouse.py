"""Advanced composition with adaptive parameters, and the constants for fixed parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.domains import Domain
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total, rounded_up
from expost.numbers import (
    DECIMAL_ERROR,
    Enclosure,
    ExactLike,
    double_above,
    enclose_decimal,
    fifty_digits,
    quotient,
)
from expost.queries import Query, read_delta

__all__ = ["Whitehouse"]


@dataclass(frozen=True, slots=True, repr=False)
class Whitehouse(Rule):
    r"""Adaptive advanced composition (Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1).

    Accept while

    .. math:: \sqrt{2 \log(1/\delta') \sum_i \varepsilon_i^2} + \tfrac12 \sum_i \varepsilon_i^2
              \le \varepsilon_g, \quad \delta' + \sum_i \delta_i \le \delta_g ,

    or while the epsilons add up to at most the budget. ``delta_prime`` is the part δ' of delta
    that pays for the composition; the remaining part is for the deltas of the queries. Proof:
    docs/theory/approximate.md.

    >>> import expost as xp
    >>> from expost.filters.rules import Whitehouse
    >>> rule, answer = Whitehouse("1e-6"), xp.randomized_response(epsilon="0.1")
    >>> price = rule.price(answer, xp.FiniteSet(["no", "yes"]))
    >>> round(rule.cost(price * 100, rule.delta_prime).upper, 3)
    5.757
    """

    kind: ClassVar[str] = "whitehouse"
    required: ClassVar[tuple[str, ...]] = ("delta_prime",)
    delta_prime: Fraction

    def __init__(self, delta_prime: ExactLike) -> None:
        object.__setattr__(self, "delta_prime", read_delta(delta_prime, "delta_prime"))

    def allowance(self, delta: Fraction) -> Fraction:
        return delta - self.delta_prime

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        epsilon = rounded_up(self.charge(query, domain)[0])
        return (math.inf if epsilon is None else double_above(epsilon * epsilon),)

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        (squares,) = total.amounts or (Fraction(0),)
        if not isinstance(squares, Fraction):
            return UNAFFORDABLE
        with fifty_digits():
            variance = quotient(squares)
            spread = -2 * quotient(self.delta_prime).ln() * variance
            loss = spread.sqrt() + variance / 2
        return enclose_decimal(loss, DECIMAL_ERROR * Fraction(loss))
