"""Who is asked what in one call: as the caller gives it, and in the order of subjects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.answers import Subject
from expost.panel.places import groups

__all__ = ["Asking"]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """Entries with a subject and a question each, in the order of the subjects' places."""

    names: tuple[Subject, ...]
    """The subjects as the caller gives them."""
    places: Indices | None
    """Where they are, in ascending order; None if they are all."""
    order: Indices | None
    """For each entry its row as the caller gives it; None if that is the same order."""
    numbers: int | NDArray[np.intp]
    """The number of the question for all of them, or for each; -1 for who is asked nothing."""

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, entries: Indices) -> Indices:
        """The rows of some entries."""
        return entries if self.order is None else self.order[entries]

    def at(self, entries: Indices) -> Indices:
        """The places of some entries."""
        return entries if self.places is None else self.places[entries]

    def as_given(self, column: NDArray[T]) -> NDArray[T]:
        """A column with an entry each, in the order of the rows."""
        if self.order is None:
            return column
        result = np.empty_like(column)
        result[self.order] = column
        return result

    @property
    def distinct(self) -> list[int]:
        """The numbers of the questions that are asked."""
        if isinstance(self.numbers, int):
            return [self.numbers]
        asked: list[int] = np.unique(self.numbers[self.numbers >= 0]).tolist()
        return asked

    def groups(self, entries: Indices) -> Iterator[tuple[int, Indices]]:
        """Some entries by the question that they are asked."""
        if isinstance(self.numbers, int):
            if len(entries):
                yield self.numbers, entries
            return
        for number, own in groups(self.numbers[entries]):
            if number >= 0:
                yield number, entries[own]

    def waves(self) -> Iterator[tuple[Indices, Asking]]:
        """Entries such that no subject is there twice, one such collection after the other."""
        if self.places is None or (np.diff(self.places) > 0).all():
            yield np.arange(len(self)), self
            return
        first = np.searchsorted(self.places, self.places)
        turn = np.arange(len(self)) - first
        for each in range(int(turn.max()) + 1):
            entries = np.flatnonzero(turn == each)
            yield entries, self._some(entries)

    def _some(self, entries: Indices) -> Asking:
        numbers: Any = self.numbers
        if not isinstance(numbers, int):
            numbers = numbers[entries]
        names = tuple(self.names[row] for row in self.rows(entries).tolist())
        return replace(self, names=names, places=self.at(entries), order=None, numbers=numbers)
