"""Subset selection: a random subset of the values, more likely with the true one in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput, read_at
from expost.files.reading import members, number, read_integer, read_list
from expost.numbers import ExactLike, Nats, decimal_text
from expost.queries._likelihood import (
    BitProbabilities,
    FiniteLikelihood,
    LazyResponses,
    Pairwise,
    two_weights,
)
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.sampling import Pmf

__all__ = ["SpikedSubsets", "SubsetSelection", "members_of", "rank_of", "subset_selection"]

# A draw takes time that grows with the square of this: near a second at the limit.
_MOST_VALUES = 10_000
_MOST_CACHED = 1 << 20
_FEW_INDICES = 300


@dataclass(frozen=True, eq=False, repr=False)
class SubsetSelection(QueryWithEpsilon):
    r"""A subset of fixed size d; one with the true value has odds e^epsilon against one without.

    .. math:: P[S \mid x] = \frac{e^{\varepsilon 1[x \in S]}}
              {e^\varepsilon \binom{k-1}{d-1} + \binom{k-1}{d}}

    (Wang et al. 2016, Ye and Barg 2018; a size near k/(e^epsilon + 1) is best.)
    """

    kind: ClassVar[str] = "subset_selection"
    size: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", read_at("size", read_integer, self.size, at_least=1))
        super().__post_init__()

    def __repr__(self) -> str:
        return f"SubsetSelection({self.size} values, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return f"{self.size} values, the true one more likely among them"

    def tree(self) -> dict[str, Any]:
        return {"size": float(self.size), "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SubsetSelection:
        return cls(**members(fields, required=("size", "epsilon")))

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if self.size >= len(domain):
            raise InvalidInput(
                f"got {self.size:,}; expected below the number of values, {len(domain):,}", "size"
            )
        if len(domain) > _MOST_VALUES:
            raise InvalidInput(
                f"got {len(domain)} values; expected at most {_MOST_VALUES}. Try local_hashing, "
                "which has no such limit"
            )
        return _SubsetLikelihood(domain, self.size, *two_weights(self.epsilon))


class _SubsetLikelihood(Pairwise):
    """Responses are indices in ascending order; each supports the values that it lists."""

    def __init__(self, domain: FiniteSet, size: int, heavy: int, light: int) -> None:
        super().__init__(domain, heavy, light)
        self._size = size
        self.responses = LazyResponses(math.comb(len(domain), size), self._indices, self.position)
        # Ranks take long to compute. Responses are public, so their ranks may be cached.
        self._indices_by_rank: dict[int, tuple[int, ...]] = {}
        self._ranks: dict[tuple[int, ...], int] = {}

    @property
    def least_loss(self) -> Nats:
        return self.epsilon

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction]:
        count, size = len(self.domain), self._size
        having = math.comb(count - 1, size - 1) * self._heavy
        total = having + math.comb(count - 1, size) * self._light
        # Of the subsets with another value, some have the true one too.
        both = math.comb(count - 2, size - 2) * self._heavy if size > 1 else 0
        alone = math.comb(count - 2, size - 1) * self._light
        return Fraction(having, total), Fraction(both + alone, total)

    def _indices(self, position: int) -> tuple[int, ...]:
        if position in self._indices_by_rank:
            return self._indices_by_rank[position]
        flags = members_of(position, self._size, len(self.domain))
        return tuple(i for i, flag in enumerate(flags) if flag)

    @property
    def bits(self) -> BitProbabilities:
        # A response with one of two values and not the other lists size - 1 further values.
        separating_count = math.comb(len(self.domain) - 2, self._size - 1)
        total = self.pmf(0).total
        return BitProbabilities(
            *self.support_probabilities,
            only_true=Fraction(separating_count * self._heavy, total),
            only_other=Fraction(separating_count * self._light, total),
            independent=False,
        )

    def position(self, response: Any) -> int | None:
        try:
            indices = read_list(response, number)
        except InvalidInput:
            return None
        ascending_indices = tuple(index for index in indices if isinstance(index, int))
        if ascending_indices in self._ranks:
            return self._ranks[ascending_indices]
        ascending = all(a < b for a, b in pairwise(ascending_indices))
        if not len(ascending_indices) == len(indices) == self._size or not ascending:
            return None
        if ascending_indices[0] < 0 or ascending_indices[-1] >= len(self.domain):
            return None
        if len(self._ranks) * self._size > _MOST_CACHED:
            self._indices_by_rank.clear()
            self._ranks.clear()
        self._ranks[ascending_indices] = rank = rank_of_indices(ascending_indices, len(self.domain))
        self._indices_by_rank[rank] = ascending_indices
        return rank

    def pmf(self, index: int) -> Pmf:
        return SpikedSubsets(len(self.domain), self._size, index, self._heavy, self._light)

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        supported = np.zeros(len(self.domain), dtype=np.bool_)
        supported[list(self._indices(position))] = True
        return supported

    def separating_response(self, value: int, other: int) -> int:
        # The value and those after it, around the end, without the other one.
        around = [(value + step) % len(self.domain) for step in range(self._size + 1)]
        chosen = [index for index in around if index != other][: self._size]
        return rank_of_indices(sorted(chosen), len(self.domain))


class SpikedSubsets(Pmf):
    """Subsets of one size, heavy with a certain element and light without it.

    A position is the rank in the combinatorial number system, the sum of binom(c_j, j) over the
    elements c_1 < c_2 < …. The subsets with the last element are the last ones in this order, and
    rotating all elements takes the last element to any other.
    """

    __slots__ = ("_count", "_heavy", "_light", "_rotation", "_size", "_without", "total")

    def __init__(self, count: int, size: int, spike: int, heavy: int, light: int) -> None:
        self._count, self._size = count, size
        self._heavy, self._light = heavy, light
        self._rotation = spike + 1
        self._without = math.comb(count - 1, size)
        self.total = self._without * light + math.comb(count - 1, size - 1) * heavy

    def pick(self, uniform: int) -> int:
        limit = self._without * self._light
        without = uniform // self._light
        having = self._without + (uniform - limit) // self._heavy
        # Products, not branches: both candidates are worked out.
        rank = (uniform < limit) * without + (uniform >= limit) * having
        flags = members_of(rank, self._size, self._count)
        start = self._count - self._rotation
        return rank_of(flags[start:] + flags[:start])

    def weight(self, position: int) -> int:
        flags = members_of(position, self._size, self._count)
        return self._heavy if flags[self._rotation - 1] else self._light


def members_of(rank: int, size: int, count: int) -> list[int]:
    """Return 1 for each of ``count`` elements that is in the subset of this rank, else 0."""
    flags = [0] * count
    # Among the subsets of the remaining elements, those without the largest come first.
    first = math.comb(count - 1, size)
    for element in range(count - 1, -1, -1):
        taken = int(rank >= first)
        flags[element] = taken
        rank -= taken * first
        # From binom(element, size) to binom(element - 1, size - taken).
        if element:
            first = first * (taken * size + (1 - taken) * (element - size)) // element
        size -= taken
    return flags


def rank_of(flags: Sequence[int]) -> int:
    """Return the rank of a subset among those of its size; the inverse of :func:`members_of`."""
    rank, size = 0, sum(flags)
    first = math.comb(len(flags) - 1, size)
    for element in range(len(flags) - 1, -1, -1):
        taken = flags[element]
        rank += taken * first
        if element:
            first = first * (taken * size + (1 - taken) * (element - size)) // element
        size -= taken
    return rank


def rank_of_indices(indices: Sequence[int], count: int) -> int:
    """Return the rank of a subset from its elements, which is faster if they are few."""
    if len(indices) <= _FEW_INDICES:
        return sum(math.comb(index, order) for order, index in enumerate(indices, start=1))
    flags = [0] * count
    for index in indices:
        flags[index] = 1
    return rank_of(flags)


def subset_selection(*, size: int, epsilon: ExactLike) -> SubsetSelection:
    """Ask for a subset of the values, by their indices; it more likely has the true value.

    Args:
        size: The number of values in a response; best near k / (e^epsilon + 1) for k values.
        epsilon: The guarantee of the query in nats, exact as written.

    >>> subset_selection(size=3, epsilon="1")
    SubsetSelection(3 values, epsilon=1)
    """
    return SubsetSelection(size, read_epsilon(epsilon))
