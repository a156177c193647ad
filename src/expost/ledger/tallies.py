"""Tallies in bytes: pairs of the number of a response and how often it was given.

Both are 32 bits, little-endian, and pairs are in the order of responses. A loss depends on nothing
else, so states of many subjects are built from these, without any exchange being read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expost.ledger.words import Words
from expost.panel.kernel import Kernel, groups
from expost.panel.state import State

__all__ = ["Tallies", "packed_tallies", "pairs_of"]

Ints = NDArray[np.int64]

_PAIR = 8
_SHIFT = 32
# Up to so many subjects, each by itself takes less than all together.
_FEW = 3
# The most counts that are written out as a table, over all subjects of a state.
_LARGEST_TABLE = 1 << 22


def pairs_of(tally: bytes) -> list[tuple[int, int]]:
    """The responses of one tally by their numbers, and how often each was given."""
    numbers = np.frombuffer(tally, dtype="<u4").reshape(-1, 2)
    return [(number, times) for number, times in numbers.tolist()]


def packed_tallies(responses: Ints, lengths: Ints) -> list[bytes]:
    """The tallies of subjects from their responses, in bytes."""
    whose = np.repeat(np.arange(len(lengths)), lengths)
    keys, times = np.unique(whose << _SHIFT | responses, return_counts=True)
    pairs = np.column_stack([keys & ((1 << _SHIFT) - 1), times]).astype("<u4")
    ends = np.searchsorted(keys >> _SHIFT, np.arange(len(lengths) + 1))
    packed = pairs.tobytes()
    return [packed[_PAIR * ends[n] : _PAIR * ends[n + 1]] for n in range(len(lengths))]


class Tallies:
    """Those of some subjects, in arrays: whose, which response, how often."""

    def __init__(self, packed: Sequence[bytes]) -> None:
        pairs = np.frombuffer(b"".join(packed), dtype="<u4").reshape(-1, 2).astype(np.int64)
        lengths = np.fromiter(map(len, packed), dtype=np.int64, count=len(packed)) // _PAIR
        self.count = len(packed)
        self.whose: Ints = np.repeat(np.arange(self.count), lengths)
        self.which: Ints = pairs[:, 0]
        self.times: Ints = pairs[:, 1]

    def plus(self, whose: NDArray[np.intp], which: Ints) -> list[bytes]:
        """The tallies of these subjects with one more response each, in bytes."""
        if len(whose) <= _FEW:
            return [
                self._one(place, response) for place, response in zip(whose, which, strict=True)
            ]
        own = np.isin(self.whose, whose) if len(whose) < self.count else slice(None)
        places = np.concatenate([self.whose[own], whose]) << _SHIFT
        keys = places | np.concatenate([self.which[own], which])
        times = np.concatenate([self.times[own], np.ones(len(whose), dtype=np.int64)])
        merged, place = np.unique(keys, return_inverse=True)
        pairs = np.empty((len(merged), 2), dtype="<u4")
        pairs[:, 0] = merged & ((1 << _SHIFT) - 1)
        pairs[:, 1] = np.bincount(place, weights=times).astype(np.int64)
        ends = np.searchsorted(merged >> _SHIFT, whose, side="right")
        starts = np.searchsorted(merged >> _SHIFT, whose, side="left")
        packed = pairs.tobytes()
        return [
            packed[_PAIR * start : _PAIR * end]
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def _one(self, place: int, response: int) -> bytes:
        own = self.whose == place
        times = dict(zip(self.which[own].tolist(), self.times[own].tolist(), strict=True))
        times[int(response)] = times.get(int(response), 0) + 1
        return np.array(sorted(times.items()), dtype="<u4").tobytes()

    def state(self, kernel: Kernel, words: Words) -> State:
        """What these subjects answered so far, as the kernel decides on it."""
        state = kernel.start(self.count)
        if not len(self.which):
            return state
        for number, own in groups(words.question_of(self.which)):
            which, place = np.unique(self.which[own], return_inverse=True)
            if len(which) * self.count > _LARGEST_TABLE:
                return self._by_turns(kernel, words)
            counts = np.zeros((len(which), self.count), dtype=np.int64)
            counts[place, self.whose[own]] = self.times[own]
            state.load(kernel.questions[number], words.positions_of(which), counts)
        return state

    def _by_turns(self, kernel: Kernel, words: Words) -> State:
        """The same one response after the other, where a query has very many of them."""
        state = kernel.start(self.count)
        whose, which = np.repeat(self.whose, self.times), np.repeat(self.which, self.times)
        turn = np.arange(len(whose)) - np.searchsorted(whose, whose)
        for each in range(int(turn.max(initial=-1)) + 1):
            own = np.flatnonzero(turn == each)
            numbers = words.question_of(which[own])
            kernel.fold(state, numbers, words.positions_of(which[own]), whose[own])
        return state
