"""Histories as chains of states, so that a sum over all that are allowed is one over states.

A state is a value, and where changes are counted, how often it has changed so far. Every history
that is allowed is exactly one chain of states. Proof: docs/theory/knowledge.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attribute
from expost.knowledge.factors import Factor, Integers

__all__ = ["allowed", "copies", "over_states", "over_values"]


def copies(attribute: Attribute, steps: Sequence[int]) -> int:
    """How many states there are for each value: one for each number of changes so far."""
    change = attribute.change
    if change is None or change.times is None:
        return 1
    return 1 + min(change.times, max(0, len(steps) - 1))


def over_states(weights: Integers, counts: Sequence[int]) -> Integers:
    """A table of values as one of states, which are values in the order of their changes."""
    for axis, count in enumerate(counts):
        weights = weights.repeat(count, axis)
    return weights


def over_values(weights: Integers, counts: Sequence[int]) -> Integers:
    """The sum over all states of the same values."""
    for axis, count in enumerate(counts):
        shape = weights.shape
        split = weights.reshape(*shape[:axis], -1, count, *shape[axis + 1 :])
        weights = np.asarray(split.sum(axis=axis + 1), dtype=object)
    return weights


def allowed(name: str, attribute: Attribute, steps: Sequence[int]) -> list[Factor]:
    """Ones for what may happen at the first step and between steps, and zeros for what may not."""
    count = copies(attribute, steps)
    start = np.zeros((len(attribute.values), count), dtype=np.int64)
    start[:, 0] = 1
    factors = [Factor(((name, steps[0]),), _exact(start.ravel()))]
    for earlier, later in pairwise(steps):
        moves = _moves(attribute, later - earlier, count)
        factors.append(Factor(((name, earlier), (name, later)), _exact(moves)))
    return factors


def _moves(attribute: Attribute, gap: int, count: int) -> NDArray[np.int64]:
    """From which states to which, between two steps that are so far apart."""
    size, change = len(attribute.values), attribute.change
    assert change is not None, "only what changes has histories"
    same = np.eye(size, dtype=np.int64)
    if change.times is not None:
        stay, go = np.eye(count, dtype=np.int64), np.eye(count, k=1, dtype=np.int64)
        return np.kron(same, stay) + np.kron(1 - same, go)
    assert change.max_step is not None, "without a limit there is nothing between steps"
    numbers, most = attribute.numbers, change.max_step * gap
    near = [[int(abs(a - b) <= most) for b in numbers] for a in numbers]
    return np.array(near, dtype=np.int64)


def _exact(ones: NDArray[np.int64]) -> Integers:
    return ones.astype(object)
