r"""Martingale rules: cumulants that add up along a transcript, and the budget that they take.

Both Rényi rules, with one order and with several, rest on one inequality. With weights w and sums
of cumulants S, they accept if and only if for all u >= 0

.. math:: 1 - e^{-u} \le \delta \sum_j w_j e^{\lambda_j (\varepsilon_g + u) - S_j} .

The right side minus the left one is convex in e^{-u}, so a single tangent bounds it for all u at
once. Proof: docs/theory/approximate.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from expost._format import shorten
from expost.domains import Domain
from expost.errors import InvalidInput
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total
from expost.numbers import (
    DECIMAL_ERROR,
    Enclosure,
    ExactLike,
    Nats,
    enclose_decimal,
    exact,
    fifty_digits,
    quotient,
)
from expost.queries import Query, randomized_response_cumulant, read_delta

__all__ = [
    "LARGEST",
    "SMALLEST",
    "Exponential",
    "Martingale",
    "best_exponent",
    "best_exponent_for_small",
    "least_budget",
    "read_exponent",
    "read_reserve",
    "shown_exponent",
]

SMALLEST, LARGEST = Fraction(1, 10**6), 10**9
_CERTAINLY_ONE = 1 + Decimal("1e-45")

# Three queries of 0.1 are within 0.3, also in doubles.
_ROUNDING = 1e-12


class Martingale(Rule):
    r"""A rule that bounds the excess of the loss L by a nonnegative supermartingale of mean <= 1.

    .. math:: M = \sum_j w_j e^{\lambda_j L - \sum_i K_i(\lambda_j)}

    Here K_i is the cumulant of query i. The rule also accepts if the epsilons add up to at most
    the budget, because there is no excess then. The part ``delta_prime`` of delta is
    for the excess, and the remaining part for the deltas of the queries; by default all of it is
    for the excess. A query with a delta counts by its cumulant, if that is finite.
    """

    optional: ClassVar[tuple[str, ...]] = ("delta_prime",)
    delta_prime: Fraction | None

    @property
    @abstractmethod
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        """Pairs of a weight and an exponent lambda."""

    def allowance(self, delta: Fraction) -> Fraction:
        return Fraction(0) if self.delta_prime is None else delta - self.delta_prime

    def charge(self, query: Query, domain: Domain) -> tuple[Nats, Fraction]:
        if query.delta and math.inf not in self._cumulants(query, domain):
            return query.ceiling(domain), Fraction(0)
        return query.charge(domain), query.delta

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        cumulants = self._cumulants(query, domain)
        if not query.delta or math.inf not in cumulants:
            return cumulants
        charge = query.charge(domain)
        return [randomized_response_cumulant(charge, exponent) for _, exponent in self.components]

    def _cumulants(self, query: Query, domain: Domain) -> list[float]:
        return [query.cumulant(domain, exponent) for _, exponent in self.components]

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        sums = total.amounts or (Fraction(0),) * len(list(self.components))
        parts = [
            Exponential(weight, exponent, sum_)
            for (weight, exponent), sum_ in zip(self.components, sums, strict=True)
            if isinstance(sum_, Fraction)
        ]
        return least_budget(parts, self.delta_prime or delta)


def read_exponent(exponent: ExactLike) -> Fraction:
    """Read an exponent lambda, exactly as a person writes it."""
    value = exact(exponent)
    if value <= 0:
        raise InvalidInput(f"must be greater than 0, not {shorten(str(exponent))}")
    if not SMALLEST <= value <= LARGEST:
        raise InvalidInput(f"must be from 1e-6 to 1e9, not {shorten(str(exponent))}")
    return value


def read_reserve(delta_prime: ExactLike | None) -> Fraction | None:
    """Read the part of delta that is for the excess; None for all of it."""
    return None if delta_prime is None else read_delta(delta_prime, "delta_prime")


def shown_exponent(exponent: float) -> Fraction:
    """Return an exponent rounded to four digits, as a person would write it, within the limits.

    >>> shown_exponent(5.04712)
    Fraction(5047, 1000)
    """
    return min(Fraction(LARGEST), max(SMALLEST, Fraction(f"{exponent:.4g}")))


# -- the least budget ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exponential:
    """A summand of the inequality: weight, exponent λ, and the sum of the cumulants at λ."""

    weight: Fraction
    exponent: Fraction
    #: Rounded up.
    cumulants: Fraction

    def at(self, budget: Fraction, delta: Fraction) -> Decimal:
        """Return b = δ w e^(λ budget - cumulants)."""
        power = quotient(self.exponent * budget - self.cumulants).exp()
        return quotient(delta * self.weight) * power


def least_budget(components: Sequence[Exponential], delta: Fraction) -> Enclosure:
    """Enclose the least budget for which the inequality holds, which is never negative."""
    if not components:
        return UNAFFORDABLE
    budget = Fraction(_tangent_point(components, delta))
    error = nudge = DECIMAL_ERROR * (1 + abs(budget))
    with fifty_digits():
        rates = [quotient(part.exponent) for part in components]
        raised = [1 + rate for rate in rates]
        # A step of Newton on the convex function log Σ (1 + λ) b ends at or above its zero.
        terms = [part.at(budget, delta) for part in components]
        value, slope = _dot(terms, raised), _dot(terms, raised, rates)
        budget -= Fraction(value.ln() * value / slope)
        while True:
            budget += nudge
            terms = [part.at(budget, delta) for part in components]
            if _dot(terms, raised) >= _CERTAINLY_ONE:
                break
            nudge *= 1000
        middle, share = quotient(budget), sum(terms, Decimal(0))
        above = middle - (1 + share / _dot(terms, rates)).ln()
        below = middle + (1 - share).ln()
        above, below = max(Decimal(0), above), max(Decimal(0), below)
    return Enclosure(enclose_decimal(below, error).lower, enclose_decimal(above, error).upper)


def _dot(*factors: Sequence[Decimal]) -> Decimal:
    """Return the sum of the products."""
    return sum((math.prod(row, start=Decimal(1)) for row in zip(*factors, strict=True)), Decimal(0))


def _tangent_point(components: Sequence[Exponential], delta: Fraction) -> float:
    """Return roughly where log Σ (1 + λ) δ w e^(λ x - S) is zero: for the best tangent."""
    rates = [float(part.exponent) for part in components]
    starts = [
        _log((1 + part.exponent) * delta * part.weight) - float(part.cumulants)
        for part in components
    ]
    # Where a single term is 1 the sum is at least 1; from there Newton's method only goes down.
    budget = min(-start / rate for start, rate in zip(starts, rates, strict=True))
    for _ in range(100):
        powers = [start + rate * budget for start, rate in zip(starts, rates, strict=True)]
        highest = max(powers)
        shares = [math.exp(power - highest) for power in powers]
        value = highest + math.log(math.fsum(shares))
        slope = math.fsum(map(math.prod, zip(shares, rates, strict=True))) / math.fsum(shares)
        lower = budget - value / slope
        if not lower < budget:
            break
        budget = lower
    return budget


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator)


# -- orders that suit a budget ---------------------------------------------------------------------


def best_exponent(budget: float, delta: Fraction, epsilon: float) -> Fraction:
    """Choose the exponent at which the most queries of one epsilon fit into a budget.

    If as many fit by the sum of their epsilons, no exponent does better, and the rule accepts them
    anyway. Then the exponent is the one for many small queries, where it can still help. Exponents
    are chosen in doubles, because any exponent is sound.
    """

    def query_count(rate: float) -> float:
        return _cumulant_budget(rate, budget, delta) / _cumulant(rate, epsilon)

    best = _highest(query_count)
    by_sum = math.floor(budget / epsilon * (1 + _ROUNDING))
    if math.floor(query_count(float(best)) * (1 - _ROUNDING)) <= by_sum:
        return best_exponent_for_small(budget, delta)
    return best


def best_exponent_for_small(budget: float, delta: Fraction) -> Fraction:
    """Choose the exponent for many small queries: their cumulants are λ(λ + 1)/2 · Σ ε²."""
    return _highest(lambda rate: _cumulant_budget(rate, budget, delta) / (rate * (rate + 1)))


def _cumulant_budget(rate: float, budget: float, delta: Fraction) -> float:
    """Return the most that the cumulants may add up to."""
    gain = math.log1p(rate) + rate * math.log1p(1 / rate)
    return rate * budget + math.log(delta.numerator) - math.log(delta.denominator) + gain


def _cumulant(rate: float, epsilon: float) -> float:
    if rate * epsilon > 30:
        return rate * epsilon - math.log1p(math.exp(-epsilon))
    rise, fall = math.expm1((rate + 1) * epsilon), -math.expm1(-rate * epsilon)
    return math.log1p(rise * fall / (math.exp(epsilon) + 1))


def _highest(gain: Callable[[float], float]) -> Fraction:
    """Maximize on a logarithmic scale: on a grid, then on finer ones around its best point."""
    low, high = math.log(SMALLEST), math.log(LARGEST)
    for _ in range(12):
        step = (high - low) / 100
        best = max((low + index * step for index in range(101)), key=lambda at: gain(math.exp(at)))
        low, high = best - step, best + step
    return shown_exponent(math.exp(best))
