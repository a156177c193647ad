"""Products of powers of integers, which are kept as exponents and compared exactly.

Weights are integers. So a sum of logarithms of weights is the logarithm of such a product, and it
is all in the exponents: equal ones are ties. Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.domains import Variable
from expost.numbers import ExactSum

__all__ = [
    "Bases",
    "Combination",
    "DistinctLikelihoods",
    "ExactTable",
    "Integers",
    "Packing",
    "Products",
    "Rows",
    "sign_of",
    "winners",
]


Integers = NDArray[np.int64]

Rows = Integers
"""Exponents: a row for each combination, a column for each base."""

Combination = dict[Variable, int]
"""A combination of some variables, by the places of their values."""

# What a word can hold; one bit less than there are, so that no sum is ever negative.
_WORD = 1 << 62


class DistinctLikelihoods(NamedTuple):
    """Exact likelihoods at some places: all that are there, and which of them is where."""

    likelihoods: Sequence[Counter[int]]
    indices: Indices


class ExactTable(Protocol):
    """What is known exactly at every combination of some variables, which are in their order."""

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        """The exact likelihoods at some combinations.

        Where they are themselves extremes, the sign says which.
        """
        ...

    def trace(self, index: int, sign: int) -> Combination:
        """One combination, and if a number is itself an extreme, a combination of all variables
        that attains it."""
        ...


def sign_of(powers: Mapping[int, int]) -> int:
    """Whether a product of powers is above one, one, or below."""
    nonzero = sorted((base, power) for base, power in powers.items() if power)
    if not nonzero:
        return 0
    # A root of the product, or of one over it, is on the same side of one, or on the other.
    root = math.gcd(*(power for _, power in nonzero)) * (1 if nonzero[0][1] > 0 else -1)
    sign = _sign(tuple((base, power // root) for base, power in nonzero))
    return sign if root > 0 else -sign


@lru_cache(maxsize=1 << 12)
def _sign(powers: tuple[tuple[int, int], ...]) -> int:
    return ExactSum.product(Counter(dict(powers))).sign


@dataclass(frozen=True, slots=True)
class _Digit:
    word: int
    unit: int
    radix: int


class Packing:
    """Exponents of several bases as the digits of a few integers.

    No exponent is negative, and none of the sums that are taken is above the largest one that is
    said here for its base. So nothing is ever carried: adding codes adds all exponents at once, and
    codes are equal exactly if all exponents are.
    """

    def __init__(self, largest: Mapping[int, int]) -> None:
        self._digits: dict[int, _Digit] = {}
        self.words = 0
        full = 1
        for base, exponent in largest.items():
            radix = exponent + 1
            if not self.words or full * radix > _WORD:
                self.words, full = self.words + 1, 1
            self._digits[base] = _Digit(self.words - 1, full, radix)
            full *= radix

    def code(self, powers: Mapping[int, int]) -> list[int]:
        """These exponents as integers. A base without a digit has the same one everywhere."""
        code_words = [0] * self.words
        for base, power in powers.items():
            if digit := self._digits.get(base):
                code_words[digit.word] += power * digit.unit
        return code_words

    def powers(self, code: Sequence[int]) -> Counter[int]:
        """And back."""
        return Counter(
            {
                base: code[digit.word] // digit.unit % digit.radix
                for base, digit in self._digits.items()
            }
        )

    def products(self, codes: Integers) -> Products:
        """What some codes stand for, which are the columns."""
        rows = [codes[digit.word] // digit.unit % digit.radix for digit in self._digits.values()]
        return Products(list(self._digits), np.array(rows))


class Products:
    """Products of powers that are compared exactly, and no two of them twice."""

    def __init__(self, bases: Sequence[int], exponents: Integers) -> None:
        self._bases = bases
        self._exponents = exponents
        self._signs: dict[tuple[int, int], int] = {}

    def best(self, products: Iterable[int], sign: int) -> int:
        """Return the largest of some products (or the smallest), all by their indices."""
        best, *challengers = products
        for challenger in challengers:
            if self._compared(challenger, best) == sign:
                best = challenger
        return best

    def _compared(self, first: int, second: int) -> int:
        if (first, second) not in self._signs:
            difference = self._exponents[:, first] - self._exponents[:, second]
            indices = difference.nonzero()[0].tolist()
            powers = {self._bases[k]: int(difference[k]) for k in indices}
            self._signs[first, second] = sign_of(powers)
        return self._signs[first, second]


@dataclass(eq=False)
class Bases:
    """The integers whose powers are multiplied, each with its column; it grows as they are met."""

    columns: dict[int, int] = field(default_factory=dict)
    _signs: dict[bytes, int] = field(default_factory=dict)

    def matrix(self, powers: Sequence[Counter[int]]) -> Rows:
        """These products of powers as rows."""
        for counter in powers:
            for base in counter:
                self.columns.setdefault(base, len(self.columns))
        rows = np.zeros((len(powers), len(self.columns)), dtype=np.int64)
        for row, counter in zip(rows, powers, strict=True):
            for base, power in counter.items():
                row[self.columns[base]] = power
        return rows

    def total(self, parts: Sequence[Rows], count: int) -> Rows:
        """The sum of rows that may lack columns that were met later."""
        result = np.zeros((count, len(self.columns)), dtype=np.int64)
        for part in parts:
            result[:, : part.shape[1]] += part
        return result

    def powers(self, row: Rows) -> Counter[int]:
        """A row as powers by their bases."""
        bases = zip(self.columns, row.tolist(), strict=False)
        return Counter({base: power for base, power in bases if power})

    def kinds(self, rows: Rows) -> DistinctLikelihoods:
        """What these rows say."""
        different, row_index = np.unique(rows, axis=0, return_inverse=True)
        return DistinctLikelihoods([self.powers(row) for row in different], row_index)

    def sign(self, difference: Rows) -> int:
        """Whether a product is above one, one, or below."""
        key = difference.tobytes()
        if key not in self._signs:
            self._signs[key] = sign_of(self.powers(difference))
        return self._signs[key]


def winners(rows: Rows, groups: Indices, sign: int, bases: Bases) -> Indices:
    """For each group of rows, numbered from zero, one with the largest (or smallest) product."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    best = order[starts]
    different = np.flatnonzero((rows != rows[best[groups]]).any(axis=1))
    for row in different.tolist():
        group = groups[row]
        if bases.sign(rows[row] - rows[best[group]]) == sign:
            best[group] = row
    return best
