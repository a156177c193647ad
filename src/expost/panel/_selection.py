"""Which of the subjects: all of them, or some by their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._types import Codes, Indices

__all__ = ["Chosen", "groups"]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Some of so many subjects, in the order of their places; ``places`` is None for all."""

    total: int
    places: Indices | None = None

    def __len__(self) -> int:
        return self.total if self.places is None else len(self.places)

    @property
    def index(self) -> slice | Indices:
        """What takes their entries out of an array: a view of it if they are all."""
        return slice(None) if self.places is None else self.places

    def of(self, numbers: Indices) -> Indices:
        """The places of some of them by their numbers."""
        return numbers if self.places is None else self.places[numbers]

    def some(self, numbers: Indices) -> Chosen:
        """Some of them by their numbers, in order."""
        return Chosen(self.total, self.of(numbers))

    def blocks(self, size: int) -> Iterator[tuple[slice, slice | Indices]]:
        """So many of them at a time: their numbers, and what takes their entries out."""
        for start in range(0, len(self), size):
            own = slice(start, min(start + size, len(self)))
            yield own, own if self.places is None else self.places[own]


def groups(numbers: Codes) -> Iterator[tuple[int, Indices]]:
    """Return the integers that occur, each with the indices where it does."""
    if len(numbers) == 0:
        return
    least, most = int(numbers.min()), int(numbers.max())
    if least == most:
        yield least, np.arange(len(numbers))
        return
    # Integers of 16 bits or less are sorted by counting.
    small = (numbers - least).astype(np.min_scalar_type(most - least))
    order = np.argsort(small, kind="stable")
    distinct, starts = np.unique(small[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    for number, start, end in zip(distinct.tolist(), starts.tolist(), ends, strict=True):
        yield number + least, order[start:end]
