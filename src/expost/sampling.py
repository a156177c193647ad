"""Exact draws from a pmf of integer weights, with the operating system's generator.

A draw takes one uniform integer below the total weight, which is the same for every value of the
subject, and then does the same arithmetic for every value. So neither the number of random bits
nor the operations depend on the secret. Proof of exactness: docs/theory/weights.md.
"""

from __future__ import annotations

import random
import secrets
from abc import ABC, abstractmethod
from fractions import Fraction
from itertools import accumulate
from typing import Protocol, runtime_checkable

from expost.errors import expect
from expost.numbers import Nats, above

__all__ = [
    "ByteSource",
    "Categorical",
    "InsecureSource",
    "Pmf",
    "Source",
    "Spiked",
    "SystemSource",
    "check_source",
    "digits",
    "draw",
    "uniform_bytes",
]


@runtime_checkable
class Source(Protocol):
    """A source of uniform random integers: the only randomness that a session uses.

    Sessions use :class:`SystemSource` by default. Anything with this one method can replace it.

    >>> isinstance(InsecureSource(7), Source)
    True
    """

    def below(self, limit: int) -> int:
        """Draw a uniform integer in [0, limit)."""


@runtime_checkable
class ByteSource(Source, Protocol):
    """A source that also gives many bytes at once, for drawing many responses."""

    def bytes(self, count: int) -> bytes:
        """Draw ``count`` uniform bytes."""


def check_source(source: Source | None) -> None:
    """Refuse what is neither a source of randomness nor None."""
    expect(source, Source | None, "a source of randomness, such as InsecureSource(38)", "source")


class SystemSource:
    """The operating system's cryptographic generator: the only source for real subjects."""

    def below(self, limit: int) -> int:
        return secrets.randbelow(limit)

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


class InsecureSource:
    """A seeded source for tests and simulations, whose draws can be predicted. It protects nobody.

    >>> from expost.sampling import InsecureSource
    >>> first, second = InsecureSource(7), InsecureSource(7)
    >>> first.below(10**6) == second.below(10**6)
    True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class Pmf(ABC):
    """A distribution over response positions, given by integer weights."""

    __slots__ = ()

    #: The sum of the weights.
    total: int

    @abstractmethod
    def pick(self, uniform: int) -> int:
        """Return the position whose share of [0, total) holds ``uniform``."""

    @abstractmethod
    def weight(self, position: int) -> int:
        """Return the weight of a position."""

    def probability(self, position: int) -> Fraction:
        """Return the exact probability of a position."""
        return Fraction(self.weight(position), self.total)

    def surprisal(self, position: int) -> float:
        """Return the negative logarithm of the probability, in nats, rounded down.

        The position must be possible.
        """
        # As a double, because reducing a fraction of very large weights can take seconds.
        probability = Fraction(above(self.weight(position), self.total))
        return Nats(ratio=1 / probability).enclosure.lower


# A pmf belongs to one value of the subject, so its repr stays the default one: no weights.
class Categorical(Pmf):
    """Weights written out, one per response."""

    __slots__ = ("_cumulative", "_weights", "total")

    def __init__(self, weights: tuple[int, ...]) -> None:
        self._weights = weights
        self._cumulative = tuple(accumulate(weights))
        self.total = self._cumulative[-1]

    def pick(self, uniform: int) -> int:
        # No early exit: the number of comparisons must not reveal the response.
        return sum(uniform >= end for end in self._cumulative)

    def weight(self, position: int) -> int:
        return self._weights[position]


class Spiked(Pmf):
    """One heavy position among many equally light ones, without writing them all out."""

    __slots__ = ("_heavy", "_light", "_spike", "total")

    def __init__(self, size: int, spike: int, heavy: int, light: int) -> None:
        self._spike = spike
        self._heavy = heavy
        self._light = light
        self.total = heavy + (size - 1) * light

    def pick(self, uniform: int) -> int:
        start = self._spike * self._light
        end = start + self._heavy
        before = uniform // self._light
        after = (uniform - self._heavy) // self._light + 1
        # Products, not branches: all three candidates are worked out for every spike.
        inside = (uniform >= start) * (uniform < end)
        return (uniform < start) * before + inside * self._spike + (uniform >= end) * after

    def weight(self, position: int) -> int:
        return self._heavy if position == self._spike else self._light


def digits(value: int, base: int, count: int) -> list[int]:
    """Return the digits of a number below base^count, the lowest one first.

    The number is split in halves: digit by digit takes much longer for thousands of digits.

    >>> digits(1234, base=10, count=4)
    [4, 3, 2, 1]
    """
    powers = {1: base}

    def split(part: int, size: int) -> list[int]:
        if size == 1:
            return [part]
        half = size - size // 2  # the lower half is the longer one, as ``_divide`` needs it
        if half not in powers:
            powers[half] = base**half
        high, low = _divide(part, powers[half], powers[half].bit_length())
        return split(low, half) + split(high, size - half)

    return split(value, count) if count else []


# Below this many bits Python's own division is as fast.
_SHORT = 4000


def _divide(dividend: int, divisor: int, bits: int) -> tuple[int, int]:
    """Divide: ``divisor`` has exactly ``bits`` bits, the quotient at most as many.

    The time of Python's own division grows with the square of the length. This one divides by
    halves, so its time grows as that of multiplication (Burnikel and Ziegler 1998).
    """
    if dividend.bit_length() - bits <= _SHORT:
        return divmod(dividend, divisor)
    odd = bits & 1
    half = (bits + odd) // 2
    divisor <<= odd
    top, high = divisor >> half, divisor & (1 << half) - 1
    quotient, remainder = 0, (dividend << odd) >> 2 * half
    for shift in (half, 0):
        # Three halves by two: the upper ones give a quotient that is at most slightly too large.
        next_half = ((dividend << odd) >> shift) & (1 << half) - 1
        if remainder >> half >= top:
            part, reduced = (1 << half) - 1, remainder - (top << half) + top
        else:
            part, reduced = _divide(remainder, top, half)
        remainder = (reduced << half | next_half) - part * high
        while remainder < 0:
            part, remainder = part - 1, remainder + divisor
        quotient = quotient << half | part
    return quotient, remainder >> odd


def draw(pmf: Pmf, source: Source) -> int:
    """Draw one position, with exactly the probabilities of ``pmf``.

    >>> draw(Categorical((0, 1)), SystemSource())
    1
    """
    uniform = source.below(pmf.total)
    if not isinstance(uniform, int) or not 0 <= uniform < pmf.total:
        raise ValueError("the source of randomness gave a number outside its range")
    return pmf.pick(uniform)


def uniform_bytes(source: Source, count: int) -> bytes:
    """Draw ``count`` uniform bytes from any source.

    >>> len(uniform_bytes(InsecureSource(7), 16))
    16
    """
    # Whether it is a ByteSource, in a hundredth of the time that asking so takes.
    if (draw_bytes := getattr(source, "bytes", None)) is not None:
        drawn = draw_bytes(count)
        if isinstance(drawn, bytes) and len(drawn) == count:
            return drawn
    elif not count or 0 <= (value := source.below(1 << 8 * count)) < 1 << 8 * count:
        return value.to_bytes(count, "little") if count else b""
    raise ValueError("the source of randomness gave a number outside its range")
