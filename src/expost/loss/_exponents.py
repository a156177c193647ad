"""Products of powers of integers, stored as exponents and compared exactly.

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

#: Exponents: a row for each combination, a column for each base.
Rows = Integers

#: A combination of some variables, by the indices of their values.
Combination = dict[Variable, int]

# What a word can hold; one bit less than there are, so that no sum is ever negative.
_WORD = 1 << 62


class DistinctLikelihoods(NamedTuple):
    """The distinct exact likelihoods of some combinations, and the index of each combination's."""

    likelihoods: Sequence[Counter[int]]
    indices: Indices


class ExactTable(Protocol):
    """Exact likelihoods of every combination of some variables, which are in their order."""

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        """Return the exact likelihoods at some combinations.

        Where they are themselves extremes, the sign says which.
        """

    def trace(self, index: int, sign: int) -> Combination:
        """Return one combination; of all variables if its likelihood is itself an extreme."""


def sign_of(powers: Mapping[int, int]) -> int:
    """Return the sign of the logarithm of a product of powers."""
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
        """Return exponents as integers. A base without a digit has one exponent everywhere."""
        code_words = [0] * self.words
        for base, power in powers.items():
            if digit := self._digits.get(base):
                code_words[digit.word] += power * digit.unit
        return code_words

    def powers(self, code: Sequence[int]) -> Counter[int]:
        """Return the exponents of a code."""
        return Counter(
            {
                base: code[digit.word] // digit.unit % digit.radix
                for base, digit in self._digits.items()
            }
        )

    def products(self, codes: Integers) -> Products:
        """Return the products of some codes, which are the columns."""
        rows = [codes[digit.word] // digit.unit % digit.radix for digit in self._digits.values()]
        return Products(list(self._digits), np.array(rows))


class Products:
    """Products of powers that are compared exactly, each pair once."""

    def __init__(self, bases: Sequence[int], exponents: Integers) -> None:
        self._bases = bases
        self._exponents = exponents
        self._signs: dict[tuple[int, int], int] = {}

    def best(self, products: Iterable[int], sign: int) -> int:
        """Return the largest of some products (or the smallest), all by their indices."""
        best, *challengers = products
        for challenger in challengers:
            if self._compare(challenger, best) == sign:
                best = challenger
        return best

    def _compare(self, first: int, second: int) -> int:
        if (first, second) not in self._signs:
            difference = self._exponents[:, first] - self._exponents[:, second]
            powers = {self._bases[k]: int(difference[k]) for k in difference.nonzero()[0].tolist()}
            self._signs[first, second] = sign_of(powers)
        return self._signs[first, second]


@dataclass(eq=False)
class Bases:
    """The columns of integers whose powers are multiplied; new integers get new columns."""

    columns: dict[int, int] = field(default_factory=dict)
    _signs: dict[bytes, int] = field(default_factory=dict)

    def matrix(self, powers: Sequence[Counter[int]]) -> Rows:
        """Return products of powers as rows."""
        for counter in powers:
            for base in counter:
                self.columns.setdefault(base, len(self.columns))
        rows = np.zeros((len(powers), len(self.columns)), dtype=np.int64)
        for row, counter in zip(rows, powers, strict=True):
            for base, power in counter.items():
                row[self.columns[base]] = power
        return rows

    def total(self, parts: Sequence[Rows], count: int) -> Rows:
        """Return the sum of rows, which may lack columns that are newer."""
        result = np.zeros((count, len(self.columns)), dtype=np.int64)
        for part in parts:
            result[:, : part.shape[1]] += part
        return result

    def powers(self, row: Rows) -> Counter[int]:
        """Return a row as powers by their bases."""
        bases = zip(self.columns, row.tolist(), strict=False)
        return Counter({base: power for base, power in bases if power})

    def kinds(self, rows: Rows) -> DistinctLikelihoods:
        """Return the distinct likelihoods of some rows."""
        different, row_index = np.unique(rows, axis=0, return_inverse=True)
        return DistinctLikelihoods([self.powers(row) for row in different], row_index)

    def sign(self, difference: Rows) -> int:
        """Return the sign of the logarithm of a product."""
        key = difference.tobytes()
        if key not in self._signs:
            self._signs[key] = sign_of(self.powers(difference))
        return self._signs[key]


def winners(rows: Rows, groups: Indices, sign: int, bases: Bases) -> Indices:
    """Return for each group of rows, by its index, a row with the largest (smallest) product."""
    order = np.argsort(groups, kind="stable")
    best = order[np.flatnonzero(np.diff(groups[order], prepend=-1))]
    for row in np.flatnonzero((rows != rows[best[groups]]).any(axis=1)).tolist():
        group = groups[row]
        if bases.sign(rows[row] - rows[best[group]]) == sign:
            best[group] = row
    return best
