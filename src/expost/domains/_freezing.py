"""Frozen sequences: a device answers for them when a value changes more than is allowed.

The limits of a domain are fixed and public, and true values need not keep them. So a device answers
for the *frozen* sequence of records, which is a function of the true one, step by step: once an
attribute has used up its changes it keeps its value, and one with a largest step goes as far
towards the true value as it may. Frozen sequences are in the domain, and sequences in the domain
stay as they are. Proof: docs/theory/attributes.md.
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
    #: The positions of its values, attribute by attribute.
    positions: tuple[int, ...]
    #: The number of changes of each attribute so far.
    changes: tuple[int, ...]

    @classmethod
    def first(cls, domain: Attributes, positions: Sequence[int]) -> Frozen:
        """Start at the first step, where nothing has changed."""
        return cls(domain, tuple(positions), (0,) * len(domain.names))

    def next(self, true_positions: Sequence[int]) -> Frozen:
        """Advance to the next step, from the positions of the true values there.

        Changes count at every step, asked about or not: nothing else is right when steps are
        asked about in any order.
        """
        kinds = self.domain.kinds
        positions = tuple(map(_next_position, kinds, self.positions, self.changes, true_positions))
        moved = (new != old for new, old in zip(positions, self.positions, strict=True))
        changes = tuple(used + move for used, move in zip(self.changes, moved, strict=True))
        return Frozen(self.domain, positions, changes)


def freeze(domain: Attributes, records: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Freeze a true sequence; both sequences have the positions of a record for each step."""
    result: list[Frozen] = []
    for positions in records:
        result.append(result[-1].next(positions) if result else Frozen.first(domain, positions))
    return [frozen.positions for frozen in result]


def freeze_columns(kind: Attribute, positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Freeze one attribute of many subjects, given by a row of positions for each step.

    Attributes are frozen apart from each other, so this is what :func:`freeze` does.
    """
    size, limit = len(kind.values), None if kind.change is None else kind.change.times
    # Where an attribute may go next, while it has changes left.
    values = range(size)
    next_position = np.array(
        [[_next_position(kind, old, 0, new) for new in values] for old in values]
    )
    frozen = positions.copy()
    used = np.zeros(positions.shape[1], dtype=np.intp)
    for before, now in pairwise(frozen):
        now[:] = next_position[before, now]
        if limit is not None:
            np.copyto(now, before, where=used >= limit)
            used += now != before
    return frozen


def _next_position(kind: Attribute, position: int, used: int, true_position: int) -> int:
    """Return the next position of an attribute that has changed ``used`` times."""
    change = kind.change
    if change is None:
        return position
    if change.times is not None:
        return true_position if used < change.times else position
    if change.max_step is None:
        return true_position
    values = kind.fractions
    near = [k for k, x in enumerate(values) if abs(x - values[position]) <= change.max_step]
    return min(near, key=lambda k: (abs(values[k] - values[true_position]), values[k]))
