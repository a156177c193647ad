"""Selections of subjects: all of them, or some by their indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._types import Codes, Indices
from expost.numbers import blocks

__all__ = ["Selection", "groups"]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Some of so many subjects, by ascending indices; ``indices`` is None for all."""

    total: int
    indices: Indices | None = None

    @classmethod
    def of(cls, total: int, indices: Indices | None) -> Selection:
        """Return the selection of these ascending indices, or of all if there are none."""
        return cls(total, None if indices is None or len(indices) == total else indices)

    def __len__(self) -> int:
        return self.total if self.indices is None else len(self.indices)

    @property
    def subscript(self) -> slice | Indices:
        """The subscript that selects their entries of an array: a slice if they are all."""
        return slice(None) if self.indices is None else self.indices

    def indices_of(self, rows: Indices) -> Indices:
        """Return the indices of some of them, by their rows."""
        return rows if self.indices is None else self.indices[rows]

    def subset(self, rows: Indices) -> Selection:
        """Return a selection of some of them, by their rows in this one."""
        return Selection(self.total, self.indices_of(rows))

    def blocks(self, size: int) -> Iterator[tuple[slice, slice | Indices]]:
        """Split them into blocks: the rows of each block, and its subscript."""
        for rows in blocks(len(self), size):
            yield rows, rows if self.indices is None else self.indices[rows]


def groups(integers: Codes) -> Iterator[tuple[int, Indices]]:
    """Return the integers that occur, each with the indices where it does."""
    if len(integers) == 0:
        return
    least, most = int(integers.min()), int(integers.max())
    if least == most:
        yield least, np.arange(len(integers))
        return
    # Integers of 16 bits or less are sorted by counting.
    small = (integers - least).astype(np.min_scalar_type(most - least))
    order = np.argsort(small, kind="stable")
    distinct, starts = np.unique(small[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    for integer, start, end in zip(distinct.tolist(), starts.tolist(), ends, strict=True):
        yield integer + least, order[start:end]
