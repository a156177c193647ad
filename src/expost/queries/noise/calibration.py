"""The smallest deviation of noise that fits, as a short decimal."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["continuous_mu", "short_above", "smallest_sigma"]

_DIGITS = 4


def smallest_sigma(fits: Callable[[Fraction], bool], guess: Fraction, least: Fraction) -> Fraction:
    """The smallest sigma of four digits that fits and is not below the least one.

    If one sigma fits, every larger one must fit too. The guess only has to be near.
    """
    least = short_above(least, _DIGITS)
    guess = short_above(max(guess, least), _DIGITS)
    unit = Fraction(10) ** (math.floor(math.log10(guess)) + 1 - _DIGITS)
    first, start = math.ceil(least / unit), round(guess / unit)
    return unit * _smallest(lambda n: fits(unit * n), first, start)


def short_above(number: Fraction, digits: int) -> Fraction:
    """The least decimal with this many digits that is not below a positive number."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    top, bottom = map(decimal.Decimal, number.as_integer_ratio())
    return Fraction(context.divide(top, bottom))


def _smallest(good: Callable[[int], bool], first: int, start: int) -> int:
    """The smallest good number from ``first`` on, if all above it are; ``start`` is near it."""
    low, high, step = first - 1, start, 1
    while not good(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while low < (trial := high - step) and good(trial):
        high, step = trial, 2 * step
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def continuous_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Approximately (b - a)/σ of real Gaussian noise (Balle and Wang 2018), to start the search."""

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    low, high = 0.0, 20.0
    for _ in range(100):
        mu = (low + high) / 2
        far = normal(-mu / 2 - epsilon / mu) * math.exp(epsilon)
        low, high = (mu, high) if normal(mu / 2 - epsilon / mu) - far <= delta else (low, mu)
    return Fraction(low or high)
