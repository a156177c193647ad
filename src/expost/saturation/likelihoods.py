"""Classes of values that nothing tells apart: not the question, and not what was answered.

All that a saturating query needs of a transcript is the likelihood P of each class, up to a common
factor: exactly where that is short, otherwise to 150 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.queries import FiniteLikelihood
from expost.queries.lifted import Lifted
from expost.transcript import Summand

__all__ = ["MOST_CLASSES", "Classes", "classes_of"]

MOST_CLASSES = 256
"""A query has a row for each class, and about as many responses."""
_MOST_PATTERNS = 1 << 13
# A product of more bits is rounded to this many after each step.
_SHORT = 1 << 14
_KEPT = 192

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Classes:
    """The classes, numbered by their first values."""

    of: Places
    """The class of each value."""
    groups: tuple[int, ...]
    """For each class, what its values answer to the question."""
    sizes: tuple[int, ...]
    likelihoods: tuple[Fraction, ...]
    """Up to a common factor."""
    exact: bool
    """Otherwise each is within 2^-150 of itself."""


def classes_of(domain: FiniteSet, summands: Sequence[Summand], answers: Places) -> Classes:
    """Values with the same answer and equal likelihoods.

    Values are grouped by what each response says about them, which is quick; then classes with
    equal products are joined.
    """
    code = answers.astype(np.int64)
    for summand in summands:
        more = _alike(summand.query.on(domain), summand.position)
        code = np.unique(code * (int(more.max()) + 1) + more, return_inverse=True)[1]
        if int(code.max()) >= _MOST_PATTERNS:
            raise _too_many(int(code.max()) + 1)
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    exact, products = _products(domain, summands, first.tolist())
    numbers: dict[tuple[int, Fraction], int] = {}
    # By their first values, so that the same classes are always numbered alike.
    for pattern in np.argsort(first).tolist():
        numbers.setdefault((int(answers[first[pattern]]), products[pattern]), len(numbers))
    if len(numbers) > MOST_CLASSES:
        raise _too_many(len(numbers))
    joined = np.array(
        [numbers[int(answers[i]), p] for i, p in zip(first, products, strict=True)], dtype=np.intp
    )
    classes = joined[of]
    classes.setflags(write=False)
    return Classes(
        classes,
        tuple(group for group, _ in numbers),
        tuple(np.bincount(classes).tolist()),
        tuple(product for _, product in numbers),
        exact,
    )


def _too_many(found: int) -> InvalidInput:
    return InvalidInput(
        f"the question and the answers so far tell {found:,} classes of values apart; a saturating "
        f"query takes at most {MOST_CLASSES}"
    )


def _alike(likelihood: FiniteLikelihood, position: int) -> Places:
    """Numbers from 0 that are equal exactly for values with equal weights."""
    if isinstance(likelihood, Lifted):
        return _alike(likelihood.seen, position)[likelihood.where]
    _, code = np.unique(likelihood.alike(position), return_inverse=True)
    return code.astype(np.intp)


def _products(
    domain: FiniteSet, summands: Iterable[Summand], places: Sequence[int]
) -> tuple[bool, list[Fraction]]:
    """P at some values relative to the first of them, and whether that is exact."""
    factors: list[Counter[int]] = [Counter() for _ in places]
    for summand in summands:
        powers = summand.query.on(domain).powers(summand.position, places)
        for product, own in zip(factors, powers, strict=True):
            for base, power in own:
                product[base] += power * summand.times
    if any(0 in product for product in factors):
        raise InvalidInput("the answers so far rule some values out, so the loss has no bound")
    for product in factors[1:]:
        product.subtract(factors[0])
    factors[0].clear()
    exact = all(_bits(product) <= _SHORT for product in factors)
    multiplied = _multiplied if exact else _rounded
    return exact, [multiplied(product) for product in factors]


def _bits(product: Counter[int]) -> int:
    return sum(abs(power) * base.bit_length() for base, power in product.items())


def _multiplied(product: Counter[int]) -> Fraction:
    above = below = 1
    for base, power in product.items():
        if power > 0:
            above *= base**power
        else:
            below *= base**-power
    return Fraction(above, below)


def _rounded(product: Counter[int]) -> Fraction:
    """The same with a mantissa of few bits: every step is off by less than 2^-190 of itself."""
    above, below = _Rounded(), _Rounded()
    for base, power in product.items():
        if power > 0:
            above = above.times(_Rounded(base).power(power))
        elif power < 0:
            below = below.times(_Rounded(base).power(-power))
    shift = above.exponent - below.exponent
    quotient = (above.mantissa << 2 * _KEPT) // below.mantissa
    short = _Rounded(quotient, shift - 2 * _KEPT)
    return Fraction(short.mantissa) * Fraction(2) ** short.exponent


class _Rounded:
    """mantissa · 2^exponent, rounded down to so many bits."""

    def __init__(self, mantissa: int = 1, exponent: int = 0) -> None:
        drop = max(0, mantissa.bit_length() - _KEPT)
        self.mantissa, self.exponent = mantissa >> drop, exponent + drop

    def times(self, other: _Rounded) -> _Rounded:
        return _Rounded(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def power(self, times: int) -> _Rounded:
        result, square = _Rounded(), self
        while times:
            if times & 1:
                result = result.times(square)
            square, times = square.times(square), times >> 1
        return result
