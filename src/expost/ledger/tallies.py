"""Tallies in bytes: pairs of the number of a response and how often it was given.

Both are 32 bits, little-endian, and pairs are in the order of responses. A loss depends on nothing
else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from expost.ledger.packed import Packed

__all__ = ["Tallies", "pairs_of"]

Ints = NDArray[np.int64]

_PAIR = 8
_SHIFT = 32
_LOW = (1 << _SHIFT) - 1
_LARGEST = np.iinfo(np.int64).max
# Up to so many subjects, each by itself takes less than all together.
_FEW = 24


def pairs_of(tally: bytes) -> list[tuple[int, int]]:
    """The responses of one tally by their numbers, and how often each was given."""
    return list(struct.iter_unpack("<II", tally))


class Tallies(Packed):
    """Those of some subjects, also in arrays: whose, which response, how often."""

    @classmethod
    def counted(cls, responses: Ints, given: Ints) -> Tallies:
        """Of subjects who gave so many responses each, one subject's after the other's."""
        whose = np.repeat(np.arange(len(given)), given)
        keys, times = np.unique(whose << _SHIFT | responses, return_counts=True)
        sizes = np.bincount(keys >> _SHIFT, minlength=len(given))
        return cls._cut(times << _SHIFT | keys & _LOW, sizes)

    @classmethod
    def _cut(cls, pairs: Ints, sizes: Ints) -> Tallies:
        """Of subjects who have so many pairs each."""
        whole, lengths = pairs.astype("<i8", copy=False).tobytes(), _PAIR * sizes
        stops = lengths.cumsum().tolist()
        result = cls([whole[start:stop] for start, stop in pairwise((0, *stops))])
        result.whole, result.lengths = whole, lengths
        return result

    @cached_property
    def pairs(self) -> Ints:
        """How often, and which response, in one word."""
        return np.frombuffer(self.whole, dtype="<i8")

    @cached_property
    def which(self) -> Ints:
        return self.pairs & _LOW

    @cached_property
    def times(self) -> Ints:
        return self.pairs >> _SHIFT

    @cached_property
    def sizes(self) -> Ints:
        """How many different responses each of them has."""
        return self.lengths // _PAIR

    @cached_property
    def whose(self) -> Ints:
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def last_response(self) -> int:
        """The largest number of a response; 0 if there is none."""
        if len(self) <= _FEW:
            return max([int.from_bytes(tally[-_PAIR:-4], "little") for tally in self], default=0)
        return int(self.which.max(initial=0))

    def plus(self, responses: Sequence[int]) -> Tallies:
        """These with one more response each."""
        if len(self) <= _FEW:
            return Tallies([_plus_one(*each) for each in zip(self, responses, strict=True)])
        keys = np.append(self.whose << _SHIFT | self.which, _LARGEST)
        given = np.array(responses, dtype=np.int64)
        new = np.arange(len(self)) << _SHIFT | given
        places = np.searchsorted(keys, new)  # both are in the order of subjects, then of responses
        first = keys[places] != new
        pairs = self.pairs.copy()
        pairs[places[~first]] += 1 << _SHIFT
        if first.any():
            pairs = np.insert(pairs, places[first], given[first] | 1 << _SHIFT)
        return self._cut(pairs, self.sizes + first)


def _plus_one(tally: bytes, response: int) -> bytes:
    times = dict(pairs_of(tally))
    times[response] = times.get(response, 0) + 1
    numbers = [number for pair in sorted(times.items()) for number in pair]
    return struct.pack(f"<{len(numbers)}I", *numbers)
