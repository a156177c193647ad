"""The geometric mechanism: an integer with two-sided geometric noise, clamped to a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from expost._format import shorten
from expost.domains import Domain, FiniteSet
from expost.errors import InvalidInput, at
from expost.files.reading import members, read_integer, read_list
from expost.numbers import ExactLike, decimal_text, exact
from expost.queries._likelihood import FiniteLikelihood, two_weights
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.queries.noise._integer_noise import NoisyLikelihood
from expost.sampling import digits

__all__ = ["ClampedNoise", "Geometric", "geometric"]

# Weights are powers up to the distance from a value to the far end of the range.
_MOST_STEPS = 1000
_MOST_BITS = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(QueryWithEpsilon):
    r"""The value plus noise z, clamped to a range (Ghosh, Roughgarden and Sundararajan 2012).

    .. math:: P[z] = \frac{1 - \alpha}{1 + \alpha}\, \alpha^{|z|}, \quad
              \alpha = e^{-\varepsilon/\Delta}

    Values are integers that differ by at most the sensitivity Δ. They may lie outside the range;
    then a larger epsilon may tell some of them apart less.
    """

    kind: ClassVar[str] = "geometric"
    range: tuple[int, int]
    sensitivity: Fraction
    epsilon: Fraction

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"[{low}, {high}], sensitivity={self.sensitivity}"
        return f"Geometric({shown}, epsilon={decimal_text(self.epsilon)})"

    @property
    def steepness(self) -> Fraction:
        return Fraction(1)

    @property
    def asks(self) -> str:
        return f"the value with noise, from {self.range[0]} to {self.range[1]}"

    def tree(self) -> dict[str, Any]:
        ends = [float(end) for end in self.range]
        return {"range": ends, "sensitivity": self.sensitivity, "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Geometric:
        return geometric(**members(fields, required=("range", "sensitivity", "epsilon")))

    def work(self, domain: Domain) -> int:
        low, high = self.range
        inside = all(isinstance(value, int) and low <= value <= high for value in domain.values)
        return 0 if inside else 100 * len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        values = [value for value in domain.values if isinstance(value, int)]
        if len(values) < len(domain):
            raise InvalidInput("geometric needs a domain of integers")
        low, high = self.range
        heavy, light = two_weights(self.epsilon / self.sensitivity)
        reach = self._reach(min(values), max(values))
        bits = reach * heavy.bit_length()
        if bits > _MOST_BITS:
            raise InvalidInput(
                f"got exact weights of {bits:,} bits; expected at most {_MOST_BITS:,}. Use a "
                "narrower range, or an epsilon nearer to the sensitivity",
                "range",
            )
        return NoisyLikelihood(domain, values, ClampedNoise(low, high, reach, heavy, light))

    def _reach(self, smallest: int, largest: int) -> int:
        """Return the largest distance between a value and an end of the range."""
        excess = largest - smallest - self.sensitivity
        if excess > 0:
            raise InvalidInput(
                f"got {self.sensitivity}; expected at least {largest - smallest}, the distance "
                f"between the values {smallest} and {largest}",
                "sensitivity",
            )
        low, high = self.range
        reach = max(high - smallest, largest - low)
        if reach > _MOST_STEPS:
            raise InvalidInput(
                f"got an end that is {reach} steps from a value; expected at most {_MOST_STEPS}",
                "range",
            )
        return reach


class PowersOf(dict[int, int]):
    """Powers of a base, each computed from a neighbor when it is first needed."""

    def __init__(self, base: int) -> None:
        self._base = base

    def __missing__(self, exponent: int) -> int:
        if exponent - 1 in self:
            power = self[exponent - 1] * self._base
        elif exponent + 1 in self:
            power = self[exponent + 1] // self._base
        else:
            power = self._base**exponent
        self[exponent] = power
        return power


@dataclass(frozen=True)
class ClampedNoise:
    """Two-sided geometric noise with α = light/heavy, clamped to a range of integers.

    Probabilities have the denominator (heavy + light) heavy^(reach - 1), for values that are at
    most ``reach`` from both ends.
    """

    low: int
    high: int
    reach: int
    heavy: int
    light: int

    @cached_property
    def _heavy(self) -> PowersOf:
        return PowersOf(self.heavy)

    @cached_property
    def _light(self) -> PowersOf:
        return PowersOf(self.light)

    @cached_property
    def total(self) -> int:
        return (self.heavy + self.light) * self._heavy[self.reach - 1]

    def fall(self, response: int, lowest: int, highest: int) -> tuple[int, int] | None:
        """Return the factor: None only at an end of the range with values beyond it."""
        at_end_of_all = lowest >= self.low if response == self.low else highest <= self.high
        falls = self.low < response < self.high or at_end_of_all
        return (self.heavy, self.light) if falls else None

    def weight(self, value: int, response: int) -> int:
        """Return the numerator of Pr(response | value)."""
        distance = abs(response - value)
        if self.low < response < self.high:
            return (self.heavy - self.light) * self._multiply_powers(
                distance, self.reach - 1 - distance
            )
        outside = value < self.low if response == self.low else value > self.high
        if outside:
            return self.total - self._multiply_powers(distance + 1, self.reach - 1 - distance)
        return self._multiply_powers(distance, self.reach - distance)

    def draw(self, uniform: int) -> int:
        further_digits, first = divmod(uniform, self.heavy + self.light)
        sign = (first >= self.heavy - self.light) - 2 * (first >= self.heavy)
        # Each further step is taken with probability α; all are evaluated.
        size = continues = 1
        for share in digits(further_digits, self.heavy, self.reach - 1):
            continues *= share < self.light
            size += continues
        return sign * size

    def _multiply_powers(self, light: int, heavy: int) -> int:
        return self._light[light] * self._heavy[heavy]


def geometric(*, range: Sequence[int], sensitivity: ExactLike, epsilon: ExactLike) -> Geometric:
    """Ask for the value, an integer, with two-sided geometric noise, clamped to a range.

    Args:
        range: The least and the largest response, two integers.
        sensitivity: The largest difference between two values.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> geometric(range=(0, 10), sensitivity=10, epsilon="1")
    Geometric([0, 10], sensitivity=10, epsilon=1)
    """
    ends = read_list(range, read_integer, "range")
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InvalidInput(
            f"must be two integers, the lower one first, not {shorten(str(ends))}", "range"
        )
    with at("sensitivity"):
        bound = exact(sensitivity)
        if bound < 1 or bound.denominator != 1:
            raise InvalidInput(f"must be an integer of at least 1, not {shorten(str(sensitivity))}")
    return Geometric((ends[0], ends[1]), bound, read_epsilon(epsilon))
