"""What was answered about one part of a record: ℓ over its combinations."""

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
_FEW = 8

# Classes are numbered anew before their numbers could be larger than an integer holds.
_LARGE = 1 << 62


@dataclass(frozen=True, eq=False)
class ExactResponseTable:
    """The exact likelihoods of some responses, for every combination of a part.

    They are worked out where they are asked for, and kept: most tables are the same before and
    after an exchange.
    """

    variables: tuple[Variable, ...]
    """In the order in which queries name them."""
    part: Part
    summands: Iterable[Summand]

    @cached_property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return tuple(sorted(self.variables, key=rank))

    @cached_property
    def axes(self) -> list[int]:
        """Where these are among the variables as they are named."""
        return [self.variables.index(variable) for variable in self.sorted]

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.part.sizes[k] for k in self.axes]

    @cached_property
    def _written(self) -> Indices:
        """For each combination in the order of axes, where it is in the part."""
        places = np.arange(len(self.part)).reshape(self.part.sizes)
        return places.transpose(self.axes).reshape(-1)

    @cached_property
    def _known(self) -> _Known:
        return _Known(len(self.part))

    def powers(self, places: Indices, sign: int) -> DistinctLikelihoods:
        """The exact likelihoods at some combinations, in the order of axes."""
        which = self._known.where[places]
        if which.min(initial=0) < 0:
            self._look(np.unique(places[which < 0]))
            which = self._known.where[places]
        present = np.bincount(which).nonzero()[0]
        different = [self._known.different[k] for k in present.tolist()]
        return DistinctLikelihoods(different, present.searchsorted(which))

    def traced(self, place: int, sign: int) -> Combination:
        """One combination."""
        found = map(int, np.unravel_index(place, self._sizes))
        return dict(zip(self.sorted, found, strict=True))

    def at(self, found: Combination) -> Counter[int]:
        """The exact likelihood at one combination."""
        place = np.ravel_multi_index([found[variable] for variable in self.sorted], self._sizes)
        (powers,), _ = self.powers(np.array([place]), 1)
        return powers

    def _look(self, missing: Indices) -> None:
        """Work out what is not known yet.

        There can be many combinations and many responses, but few that these tell apart.
        """
        places = self._written[missing]
        some = which = np.arange(len(places))
        if len(places) > _FEW:
            _, some, which = np.unique(
                self._classes(places), return_index=True, return_inverse=True
            )
        total = [Counter[int]() for _ in some]
        first = places[some].tolist()
        for summand in self.summands:
            found = summand.query.on(self.part).powers(summand.position, first)
            for counter, powers in zip(total, found, strict=True):
                for base, power in powers:
                    counter[base] += power * summand.times
        self._known.add(missing, total, which)

    def _classes(self, places: Indices) -> Indices:
        """Numbers that are equal only for combinations that no response tells apart."""
        classes, count = np.zeros(len(places), dtype=np.intp), 1
        for summand in self.summands:
            alike = summand.query.on(self.part).weight_labels(summand.position)[places]
            if alike.dtype != np.bool_:
                alike = np.unique(alike, return_inverse=True)[1]
            size = int(alike.max()) + 1
            if count * size > _LARGE:
                classes = np.unique(classes, return_inverse=True)[1]
                count = int(classes.max()) + 1
            classes, count = classes * size + alike, count * size
        return classes


class _Known:
    """The exact likelihoods of a table that were worked out so far; -1 where none was."""

    def __init__(self, size: int) -> None:
        self.different: list[Counter[int]] = []
        self.where = np.full(size, -1, dtype=np.intp)
        self._numbers: dict[frozenset[tuple[int, int]], int] = {}

    def add(self, places: Indices, powers: Sequence[Counter[int]], which: Indices) -> None:
        numbers = []
        for counter in powers:
            number = self._numbers.setdefault(frozenset(counter.items()), len(self.different))
            if number == len(self.different):
                self.different.append(counter)
            numbers.append(number)
        self.where[places] = np.array(numbers)[which]


@dataclass(frozen=True, eq=False)
class ResponseTable:
    """ℓ of all responses about the same variables, which are named in the same order."""

    variables: tuple[Variable, ...]
    on_part: SetLogLikelihood

    @classmethod
    def flat(cls, likelihood: PartLikelihood) -> ResponseTable:
        """Before anything is asked about these variables."""
        return cls(likelihood.variables, SetLogLikelihood.flat(likelihood.part))

    def add(self, query: Query, position: int) -> ResponseTable:
        """The table after one more response to a query about the part."""
        return ResponseTable(self.variables, self.on_part.uncharged(query, position))

    @property
    def part(self) -> Part:
        """The combinations of the variables."""
        assert isinstance(self.on_part.domain, Part)
        return self.on_part.domain

    @cached_property
    def sizes(self) -> dict[Variable, int]:
        """How many values each variable has."""
        return dict(zip(self.variables, self.part.sizes, strict=True))

    @cached_property
    def step(self) -> int | None:
        """The step that it is about, if any of the variables changes."""
        return next((step for _, step in self.variables if step is not None), None)

    @cached_property
    def order(self) -> list[tuple[str, float]]:
        """Where it is among other tables."""
        return [rank(variable) for variable in self.variables]

    @cached_property
    def exactly(self) -> ExactResponseTable:
        """The same in exact numbers."""
        return ExactResponseTable(self.variables, self.part, self.on_part.tally)

    @property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return self.exactly.sorted

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """The doubles and their negatives, with an axis for each variable in the order of axes."""
        values = self.on_part.values.reshape(self.part.sizes).transpose(self.exactly.axes)
        return np.stack([values, -values])

    @cached_property
    def magnitude(self) -> float:
        """The largest absolute value; combinations that are ruled out have none."""
        lowest = self.on_part.lowest
        if lowest == -math.inf:
            return float(np.abs(finite(self.on_part.values)).max(initial=0.0))
        return max(abs(self.on_part.highest), abs(lowest))
