"""What was answered about one part of a record: ℓ over its combinations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Part, Variable
from expost.loss.exact_table import ExactTable, rank
from expost.loss.on_set import SetLogLikelihood, finite
from expost.queries import PartLikelihood, Query

__all__ = ["Table"]


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
    def exactly(self) -> ExactTable:
        """The same in exact numbers."""
        return ExactTable(self.variables, self.part, self.on_part.tally)

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
