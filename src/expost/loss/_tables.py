"""Tables of the responses about one part of a record, in doubles and exactly.

A table has ℓ for every combination of the part. Exactly, it has integer weights and how often each
occurs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.domains import Part, Variable
from expost.loss._elimination import rank
from expost.loss._exponents import Combination, DistinctLikelihoods
from expost.loss._on_set import SetLogLikelihood, finite
from expost.queries import PartLikelihood, Query
from expost.tally import Summand

__all__ = ["ExactResponseTable", "ResponseTable"]


# So few are not sorted into classes first.
_SMALL_BATCH = 8

# Classes are renumbered before their numbers could be larger than an integer holds.
_LARGE = 1 << 62


@dataclass(frozen=True, eq=False)
class ExactResponseTable:
    """The exact likelihoods of some responses, for every combination of a part.

    They are computed on demand and cached, because most tables are the same before and after an
    exchange.
    """

    #: In the order in which queries name them.
    variables: tuple[Variable, ...]
    part: Part
    summands: Iterable[Summand]

    @cached_property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return tuple(sorted(self.variables, key=rank))

    @cached_property
    def axes(self) -> list[int]:
        """The axis of each sorted variable in the order of the names."""
        return [self.variables.index(variable) for variable in self.sorted]

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.part.sizes[k] for k in self.axes]

    @cached_property
    def _part_index(self) -> Indices:
        """The index in the part of each combination in the order of axes."""
        return np.arange(len(self.part)).reshape(self.part.sizes).transpose(self.axes).reshape(-1)

    @cached_property
    def _computed(self) -> _KnownLikelihoods:
        return _KnownLikelihoods(len(self.part))

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        """Return the exact likelihoods at some combinations, in the order of axes."""
        likelihood_index = self._computed.where[indices]
        if likelihood_index.min(initial=0) < 0:
            self._compute(np.unique(indices[likelihood_index < 0]))
            likelihood_index = self._computed.where[indices]
        present = np.bincount(likelihood_index).nonzero()[0]
        different = [self._computed.different[k] for k in present.tolist()]
        return DistinctLikelihoods(different, present.searchsorted(likelihood_index))

    def trace(self, index: int, sign: int) -> Combination:
        """Return the values of one combination."""
        return dict(zip(self.sorted, map(int, np.unravel_index(index, self._sizes)), strict=True))

    def at(self, combination: Combination) -> Counter[int]:
        """Return the exact likelihood at one combination."""
        index = np.ravel_multi_index(
            [combination[variable] for variable in self.sorted], self._sizes
        )
        (powers,), _ = self.powers(np.array([index]), 1)
        return powers

    def _compute(self, missing: Indices) -> None:
        """Compute the likelihoods of some combinations.

        Many combinations have few different likelihoods, so one per class is computed.
        """
        part_indices = self._part_index[missing]
        representatives = class_index = np.arange(len(part_indices))
        if len(part_indices) > _SMALL_BATCH:
            _, representatives, class_index = np.unique(
                self._classes(part_indices), return_index=True, return_inverse=True
            )
        total = [Counter[int]() for _ in representatives]
        first = part_indices[representatives].tolist()
        for summand in self.summands:
            summand_powers = summand.query.on(self.part).powers(summand.position, first)
            for counter, powers in zip(total, summand_powers, strict=True):
                for base, power in powers:
                    counter[base] += power * summand.times
        self._computed.add(missing, total, class_index)

    def _classes(self, part_indices: Indices) -> Indices:
        """Return class numbers, equal only for combinations that no response distinguishes."""
        classes, count = np.zeros(len(part_indices), dtype=np.intp), 1
        for summand in self.summands:
            labels = summand.query.on(self.part).weight_labels(summand.position)[part_indices]
            if labels.dtype != np.bool_:
                labels = np.unique(labels, return_inverse=True)[1]
            size = int(labels.max()) + 1
            if count * size > _LARGE:
                classes = np.unique(classes, return_inverse=True)[1]
                count = int(classes.max()) + 1
            classes, count = classes * size + labels, count * size
        return classes


class _KnownLikelihoods:
    """The exact likelihoods of a table so far; the index is -1 where none is computed."""

    def __init__(self, size: int) -> None:
        self.different: list[Counter[int]] = []
        self.where = np.full(size, -1, dtype=np.intp)
        self._index_of: dict[frozenset[tuple[int, int]], int] = {}

    def add(self, indices: Indices, powers: Sequence[Counter[int]], class_index: Indices) -> None:
        likelihood_indices = []
        for counter in powers:
            index = self._index_of.setdefault(frozenset(counter.items()), len(self.different))
            if index == len(self.different):
                self.different.append(counter)
            likelihood_indices.append(index)
        self.where[indices] = np.array(likelihood_indices)[class_index]


@dataclass(frozen=True, eq=False)
class ResponseTable:
    """ℓ of all responses about some variables that queries name in one order."""

    variables: tuple[Variable, ...]
    on_part: SetLogLikelihood

    @classmethod
    def flat(cls, likelihood: PartLikelihood) -> ResponseTable:
        """Return the table of no responses."""
        return cls(likelihood.variables, SetLogLikelihood.flat(likelihood.part))

    def add(self, query: Query, position: int) -> ResponseTable:
        """Return the table after one more response to a query about the part."""
        return ResponseTable(self.variables, self.on_part.uncharged(query, position))

    @property
    def part(self) -> Part:
        """The combinations of the variables."""
        assert isinstance(self.on_part.domain, Part)
        return self.on_part.domain

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        """The number of values of each variable."""
        return dict(zip(self.variables, self.part.sizes, strict=True))

    @cached_property
    def step(self) -> int | None:
        """The step that the table is about, if any of the variables changes."""
        return next((step for _, step in self.variables if step is not None), None)

    @cached_property
    def order(self) -> list[tuple[str, float]]:
        """The sort key of tables."""
        return [rank(variable) for variable in self.variables]

    @cached_property
    def exact(self) -> ExactResponseTable:
        """The table in exact numbers."""
        return ExactResponseTable(self.variables, self.part, self.on_part.tally)

    @property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return self.exact.sorted

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """The doubles and their negatives, with an axis for each variable in the order of axes."""
        values = self.on_part.values.reshape(self.part.sizes).transpose(self.exact.axes)
        return np.stack([values, -values])

    @cached_property
    def magnitude(self) -> float:
        """The largest absolute value, except for combinations that are ruled out."""
        lowest = self.on_part.lowest
        if lowest == -math.inf:
            return float(np.abs(finite(self.on_part.values)).max(initial=0.0))
        return max(abs(self.on_part.highest), abs(lowest))
