"""What was answered about one part of a record: ℓ over its combinations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Part, Variable
from expost.loss.on_set import SetLogLikelihood
from expost.queries import PartLikelihood, Query
from expost.transcript import Summand

__all__ = ["Table", "exponents", "rank"]


def rank(variable: Variable) -> tuple[str, float]:
    """The order of variables, which is that of their names and then of their steps."""
    name, step = variable
    return name, float("-inf") if step is None else step


@dataclass(frozen=True, eq=False)
class Table:
    """ℓ of all responses about the same variables, which are named in the same order."""

    variables: tuple[Variable, ...]
    on_part: SetLogLikelihood

    @classmethod
    def flat(cls, likelihood: PartLikelihood) -> Table:
        """Before anything is asked about these variables."""
        return cls(likelihood.variables, SetLogLikelihood.flat(likelihood.part))

    def add(self, query: Query, position: int) -> Table:
        """The table after one more response to a query about the part."""
        return Table(self.variables, self.on_part.uncharged(query, position))

    @property
    def part(self) -> Part:
        """The combinations of the variables."""
        assert isinstance(self.on_part.domain, Part)
        return self.on_part.domain

    @cached_property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return tuple(sorted(self.variables, key=rank))

    @property
    def _axes(self) -> list[int]:
        return [self.variables.index(variable) for variable in self.sorted]

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """The doubles and their negatives, with an axis for each variable in the order of axes."""
        values = self.on_part.values.reshape(self.part.sizes).transpose(self._axes)
        return np.stack([values, -values])

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.on_part.highest), abs(self.on_part.lowest))

    def places(self, axes: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Where combinations are in the part that are given by their places on sorted axes."""
        written: list[NDArray[np.intp]] = [axes[0]] * len(axes)
        for place, axis in zip(self._axes, axes, strict=True):
            written[place] = axis
        return np.asarray(np.ravel_multi_index(written, self.part.sizes), dtype=np.intp)


def exponents(
    summand: Summand, part: Part, places: NDArray[np.intp]
) -> tuple[list[Counter[int]], NDArray[np.intp]]:
    """Exact weights at some places as powers of integers: the different ones, and which is where.

    They are those of all the times that the response was given.
    """
    likelihood = summand.query.on(part)
    alike = likelihood.alike(summand.position)[places]
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    known = []
    for powers in likelihood.powers(summand.position, places[first].tolist()):
        counter: Counter[int] = Counter()
        for base, power in powers:
            if base != 1:
                counter[base] += power * summand.times
        known.append(counter)
    return known, which
