"""Orders that suit a budget. They are chosen in doubles, because any order is sound."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from expost.filters.rules.martingale import LARGEST, SMALLEST, shown_exponent

__all__ = ["best_exponent", "best_exponent_for_small"]

# Three queries of 0.1 are within 0.3, also in doubles.
_ROUNDING = 1e-12


def best_exponent(budget: float, delta: Fraction, epsilon: float) -> Fraction:
    """The exponent at which the most queries of one epsilon fit into a budget.

    Where as many fit by the sum of their epsilons, no exponent does better, and the rule accepts
    them anyway. Then it is the one for many small queries, which are what it can still be good for.
    """

    def fitting(rate: float) -> float:
        return _room(rate, budget, delta) / _cumulant(rate, epsilon)

    best = _highest(fitting)
    by_sum = math.floor(budget / epsilon * (1 + _ROUNDING))
    if math.floor(fitting(float(best)) * (1 - _ROUNDING)) <= by_sum:
        return best_exponent_for_small(budget, delta)
    return best


def best_exponent_for_small(budget: float, delta: Fraction) -> Fraction:
    """The same for many small queries, whose cumulants are λ(λ + 1)/2 times the sum of squares."""
    return _highest(lambda rate: _room(rate, budget, delta) / (rate * (rate + 1)))


def _room(rate: float, budget: float, delta: Fraction) -> float:
    """The most that the cumulants may add up to."""
    gain = math.log1p(rate) + rate * math.log1p(1 / rate)
    return rate * budget + math.log(delta.numerator) - math.log(delta.denominator) + gain


def _cumulant(rate: float, epsilon: float) -> float:
    if rate * epsilon > 30:
        return rate * epsilon - math.log1p(math.exp(-epsilon))
    rise, fall = math.expm1((rate + 1) * epsilon), -math.expm1(-rate * epsilon)
    return math.log1p(rise * fall / (math.exp(epsilon) + 1))


def _highest(gain: Callable[[float], float]) -> Fraction:
    """The maximum on a logarithmic scale: the best of a grid, then of finer ones around it."""
    low, high = math.log(SMALLEST), math.log(LARGEST)
    for _ in range(12):
        step = (high - low) / 100
        best = max((low + index * step for index in range(101)), key=lambda at: gain(math.exp(at)))
        low, high = best - step, best + step
    return shown_exponent(math.exp(best))
