"""What is answered for when a value changes more than its attribute allows.

The limits of a domain are fixed and public, and true values need not keep them. So a device answers
for the *frozen* sequence of records, which is a function of the true one, step by step: once an
attribute has used up its changes it keeps its value, and one with a largest step goes as far
towards the true value as it may. Frozen sequences are in the domain, and sequences in the domain
stay as they are. Proof: docs/theory/changing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from expost.domains._attributes import Attribute, Attributes

__all__ = ["Frozen", "freeze", "freeze_columns"]


@dataclass(frozen=True, slots=True, repr=False)
class Frozen:
    """The record that is answered for at a step. It is secret, so no repr shows it."""

    domain: Attributes
    places: tuple[int, ...]
    """Where its values are, attribute by attribute."""
    changes: tuple[int, ...]
    """How often each attribute has changed so far."""

    @classmethod
    def first(cls, domain: Attributes, places: Sequence[int]) -> Frozen:
        """At the first step, where everything is as it is."""
        return cls(domain, tuple(places), (0,) * len(domain.names))

    def next(self, wanted: Sequence[int]) -> Frozen:
        """At the next step, from the places of the true values there.

        Changes count at every step, asked about or not: nothing else is right when steps are
        asked about in any order.
        """
        each = zip(self.domain.kinds, self.places, self.changes, wanted, strict=True)
        places = tuple(_allowed(kind, place, used, want) for kind, place, used, want in each)
        moved = (new != old for new, old in zip(places, self.places, strict=True))
        changes = tuple(used + move for used, move in zip(self.changes, moved, strict=True))
        return Frozen(self.domain, places, changes)


def freeze(domain: Attributes, records: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """The frozen sequence of a true one; both are places of values, a record for each step."""
    result: list[Frozen] = []
    for places in records:
        result.append(result[-1].next(places) if result else Frozen.first(domain, places))
    return [frozen.places for frozen in result]


def freeze_columns(kind: Attribute, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The frozen sequences of one attribute, of many subjects: a row for each step, from the first.

    Attributes are frozen apart from each other, so this is what :func:`freeze` does.
    """
    size, limit = len(kind.values), None if kind.change is None else kind.change.times
    # Where an attribute may go next, while it has changes left.
    each = range(size)
    allowed = np.array([[_allowed(kind, old, 0, new) for new in each] for old in each])
    frozen = places.copy()
    used = np.zeros(places.shape[1], dtype=np.intp)
    for before, now in pairwise(frozen):
        now[:] = allowed[before, now]
        if limit is not None:
            np.copyto(now, before, where=used >= limit)
            used += now != before
    return frozen


def _allowed(kind: Attribute, place: int, used: int, wanted: int) -> int:
    """Where an attribute is next, if it has changed so often and its true value is as wanted."""
    change = kind.change
    if change is None:
        return place
    if change.times is not None:
        return wanted if used < change.times else place
    if change.max_step is None:
        return wanted
    numbers = kind.numbers
    near = [k for k, x in enumerate(numbers) if abs(x - numbers[place]) <= change.max_step]
    return min(near, key=lambda k: (abs(numbers[k] - numbers[wanted]), numbers[k]))
