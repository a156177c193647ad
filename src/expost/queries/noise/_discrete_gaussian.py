r"""Discrete Gaussian noise on the integers, as integer weights (Canonne, Kamath, Steinke 2020).

.. math:: w(z) = \lfloor 2^T e^{-z^2 / 2 s^2} \rfloor

The paper is "The Discrete Gaussian for Differential Privacy". Proofs: docs/theory/approximate.md.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from expost.numbers import UNIT, bisect, scaled_exp

__all__ = [
    "LARGEST_REACH",
    "ROUNDING",
    "GaussianNoise",
    "continuous_mu",
    "short_above",
    "smallest_sigma",
]

#: The most steps between a value and the response that is farthest from it.
LARGEST_REACH = 200_000

#: How far the logarithm of a probability can be from that of a real discrete Gaussian.
ROUNDING = Fraction(1, 2**40)

# Noise beyond this many deviations, of a probability below 1e-18, counts as the last step.
_DEVIATIONS = 9
_BITS = 64
_GUARD = 60


@dataclass(frozen=True)
class GaussianNoise:
    """Noise of deviation s on values from ``first`` to ``last``, clamped nine deviations beyond.

    Every response has a positive weight for every value.
    """

    first: int
    last: int
    deviation: Fraction

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, first: int, last: int, deviation: Fraction) -> GaussianNoise:
        """Return cached noise: equal queries, and queries about other scores, share it."""
        return cls(first, last, deviation)

    @cached_property
    def beyond(self) -> int:
        """The count of steps that responses may lie beyond the values."""
        return math.ceil(_DEVIATIONS * self.deviation)

    @cached_property
    def variance(self) -> float:
        """The variance of the noise, in doubles."""
        steps = np.arange(self.beyond + 1.0) / float(self.deviation)
        weights = np.exp(-(steps**2) / 2)
        return 2 * float(self.deviation**2) * float(steps**2 @ weights / (2 * weights.sum() - 1))

    @property
    def low(self) -> int:
        return self.first - self.beyond

    @property
    def high(self) -> int:
        return self.last + self.beyond

    @property
    def reach(self) -> int:
        """The most steps from a value to the response that is farthest from it."""
        return self.last - self.first + self.beyond

    @cached_property
    def bits(self) -> int:
        """T, such that weights up to the reach are at least 2^64 - 1."""
        # 1.4427 is above 1/ln 2.
        return _BITS + math.ceil((self.reach / self.deviation) ** 2 * Fraction("1.4427") / 2)

    @cached_property
    def weights(self) -> list[int]:
        """The weights w(0), w(1), … as long as they are positive."""
        return _weights(self.deviation**2, self.bits)

    @cached_property
    def tails(self) -> list[int]:
        """The weight of noise that is at least 0, 1, …"""
        return list(accumulate(reversed(self.weights)))[::-1]

    @cached_property
    def total(self) -> int:
        return 2 * self.tails[0] - self.weights[0]

    def fall(self, response: int, lowest: int, highest: int) -> None:
        return None  # they fall ever faster

    def weight(self, value: int, response: int) -> int:
        """Return the weight of a response, for a value between ``first`` and ``last``."""
        distance = abs(response - value)
        inside = self.low < response < self.high
        return self.weights[distance] if inside else self.tails[distance]

    def at_least(self, noise: int) -> int:
        """Return the weight of noise from here on."""
        if noise <= 0:
            return self.total - self.at_least(1 - noise)
        return self.tails[noise] if noise < len(self.tails) else 0

    def least_ratio(self, delta: Fraction) -> Fraction:
        """Return the least e^ε, at least 1, at which any two values are within (ε, δ).

        The events "at least k" of the two values with the largest distance are the worst.
        """
        top, bottom = delta.as_integer_ratio()
        distance, spared = self.last - self.first, top * self.total
        best, best_denominator = 1, 1
        for noise in self._candidate_events(delta):
            numerator = bottom * self.at_least(noise) - spared
            denominator = bottom * self.at_least(noise + distance)
            if numerator * best_denominator > best * denominator:
                best, best_denominator = numerator, denominator
        return Fraction(best, best_denominator)

    def _candidate_events(self, delta: Fraction) -> list[int]:
        """Return the events, by their k, that may be the worst one within the error of doubles.

        Doubles hold the tails to a unit of roundoff; a few more are allowed for the operations
        on them. Tails too large for doubles occur only where there are few events.
        """
        if self.total.bit_length() > 1000:
            return list(range(1 - self.reach, self.beyond + 1))
        tails, total = np.array(self.tails[: self.reach + 1], dtype=np.float64), float(self.total)
        at_least = np.concatenate([total - tails[:0:-1], tails[1:]])  # from 1 - reach to reach
        numerators = at_least[: self.reach + self.beyond]
        denominators = at_least[self.last - self.first :]
        spared, slack = float(delta) * total, 16 * UNIT
        most = (numerators * (1 + slack) - spared * (1 - slack)) / (denominators * (1 - slack))
        least = (numerators * (1 - slack) - spared * (1 + slack)) / (denominators * (1 + slack))
        return (np.flatnonzero(most >= least.max()) + 1 - self.reach).tolist()

    def draw(self, uniform: int) -> int:
        # The lowest integers are for the lowest noise, the highest ones for the highest. No early
        # exit: the number of comparisons must not tell which noise it was.
        above = self.total - uniform
        return sum(t >= above for t in self.tails[1:]) - sum(t > uniform for t in self.tails[1:])


def _weights(variance: Fraction, bits: int) -> list[int]:
    """Return ⌊2^bits e^(-z²/2 variance)⌋ for z = 0, 1, … while that is positive.

    Each follows from the one before by products that are rounded down. Up to z they lose less than
    (z + 1)² units in the last place. If that leaves the floor open, it is computed separately.
    """
    scale = bits + _GUARD
    weight = 1 << scale
    factor = scaled_exp(-1 / (2 * variance), scale)
    shrink = scaled_exp(-1 / variance, scale)
    result: list[int] = []
    while True:
        z = len(result)
        floor = weight >> _GUARD
        if (weight + (z + 1) ** 2) >> _GUARD != floor:
            floor = scaled_exp(-(z**2) / (2 * variance), bits)
        if not floor:
            return result
        result.append(floor)
        weight, factor = weight * factor >> scale, factor * shrink >> scale


_DIGITS = 4


def smallest_sigma(fits: Callable[[Fraction], bool], guess: Fraction, least: Fraction) -> Fraction:
    """Search the smallest sigma of four digits that fits and is not below the least one.

    If one sigma fits, every larger one must fit too. The guess only has to be near.
    """
    least = short_above(least, _DIGITS)
    guess = short_above(max(guess, least), _DIGITS)
    unit = Fraction(10) ** (math.floor(math.log10(guess)) + 1 - _DIGITS)
    first, start = math.ceil(least / unit), round(guess / unit)
    return unit * _smallest(lambda n: fits(unit * n), first, start)


def short_above(positive: Fraction, digits: int) -> Fraction:
    """Return the least decimal with this many digits that is not below a positive rational."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    top, bottom = map(decimal.Decimal, positive.as_integer_ratio())
    return Fraction(context.divide(top, bottom))


def _smallest(good: Callable[[int], bool], first: int, start: int) -> int:
    """Search the smallest good integer from ``first`` on, near ``start``; larger ones are good."""
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
    """Approximate (b - a)/σ of real Gaussian noise (Balle and Wang 2018), to start the search."""

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    def fits(mu: float) -> bool:
        excess_tail = normal(-mu / 2 - epsilon / mu) * math.exp(epsilon)
        return normal(mu / 2 - epsilon / mu) - excess_tail <= delta

    low, high = bisect(fits, 0.0, 20.0, steps=100)
    return Fraction(low or high)
