"""Tallies in bytes: pairs of the number of a response and how often it was given.

Both are 32 bits, little-endian, and pairs are in the order of responses. A loss depends on nothing
else, so states of many subjects are built from these, without any exchange being read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from expost.ledger.words import Words
from expost.panel.kernel import Kernel, groups
from expost.panel.state import State

__all__ = ["Tallies", "last_response", "packed_tallies", "pairs_of", "plus"]

Ints = NDArray[np.int64]

_PAIR = 8
_SHIFT = 32
_LOW = (1 << _SHIFT) - 1
_LARGEST = np.iinfo(np.int64).max
# Up to so many subjects, each by itself takes less than all together.
_FEW = 24
# Numbers of responses up to this one are looked up in a table, however few there are.
_SMALL = 1 << 12
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
    pairs = np.column_stack([keys & _LOW, times]).astype("<u4")
    ends = np.searchsorted(keys >> _SHIFT, np.arange(len(lengths) + 1))
    packed = pairs.tobytes()
    return [packed[_PAIR * ends[n] : _PAIR * ends[n + 1]] for n in range(len(lengths))]


def last_response(packed: Sequence[bytes]) -> int:
    """The largest number of a response in some tallies; 0 if there is none."""
    if len(packed) <= _FEW:
        return max([int.from_bytes(tally[-_PAIR:-4], "little") for tally in packed], default=0)
    return int(np.frombuffer(b"".join(packed), dtype="<u4")[::2].max(initial=0))


def plus(packed: Sequence[bytes], responses: Sequence[int]) -> list[bytes]:
    """Some tallies with one more response each."""
    if len(packed) <= _FEW:
        return [_plus_one(*each) for each in zip(packed, responses, strict=True)]
    old = Tallies(packed)
    keys = np.append(old.whose << _SHIFT | old.which, _LARGEST)
    given = np.array(responses, dtype=np.int64)
    new = np.arange(old.count) << _SHIFT | given
    places = np.searchsorted(keys, new)  # both are in the order of subjects, then of responses
    first = keys[places] != new
    pairs = old.pairs.copy()
    pairs[places[~first]] += 1 << _SHIFT
    if first.any():
        pairs = np.insert(pairs, places[first], given[first] | 1 << _SHIFT)
    whole = pairs.tobytes()
    stops = (_PAIR * np.cumsum(old.lengths + first)).tolist()
    return [whole[start:stop] for start, stop in pairwise((0, *stops))]


def _plus_one(tally: bytes, response: int) -> bytes:
    times = dict(struct.iter_unpack("<II", tally))
    times[response] = times.get(response, 0) + 1
    numbers = [number for pair in sorted(times.items()) for number in pair]
    return struct.pack(f"<{len(numbers)}I", *numbers)


class Tallies:
    """Those of some subjects, in arrays: whose, which response, how often."""

    def __init__(self, packed: Sequence[bytes]) -> None:
        self._packed = packed
        self.count = len(packed)
        self.pairs: Ints = np.frombuffer(b"".join(packed), dtype="<i8")
        """How often, and which response, in one word."""

    @cached_property
    def which(self) -> Ints:
        return self.pairs & _LOW

    @cached_property
    def times(self) -> Ints:
        return self.pairs >> _SHIFT

    @cached_property
    def lengths(self) -> Ints:
        """How many different responses each of them has."""
        return np.fromiter(map(len, self._packed), np.int64, self.count) // _PAIR

    @cached_property
    def whose(self) -> Ints:
        return np.repeat(np.arange(self.count), self.lengths)

    def state(self, kernel: Kernel, words: Words) -> State:
        """What these subjects answered so far, as the kernel decides on it."""
        state = kernel.start(self.count)
        if not len(self.which):
            return state
        for number, places in groups(words.question_of(self.which)):
            own = slice(None) if len(places) == len(self.which) else places
            if self.count == 1:  # each response is there once, in order
                which, table = self.which[own], self.times[own][:, None]
            else:
                which, place = _distinct(self.which[own])
                if len(which) * self.count > _LARGEST_TABLE:
                    return self._by_turns(kernel, words)
                counts = np.zeros(len(which) * self.count, dtype=np.int64)
                counts[place * self.count + self.whose[own]] = self.times[own]
                table = counts.reshape(len(which), self.count)
            state.load(kernel.questions[number], words.positions_of(which), table)
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


def _distinct(numbers: Ints) -> tuple[Ints, NDArray[np.intp]]:
    """The different numbers in order, and which each is; without sorting, unless they are large."""
    last = int(numbers.max())
    if last > _SMALL + len(numbers):
        return np.unique(numbers, return_inverse=True)
    place = np.zeros(last + 1, dtype=np.intp)
    place[numbers] = 1
    which = place.nonzero()[0]
    place[which] = np.arange(len(which))
    return which, place[numbers]
