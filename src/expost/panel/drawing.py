r"""Responses of many subjects, each drawn with exactly its probabilities.

A uniform number is a word of 64 bits followed by as many more as it takes. A response is the number
of cumulative weights, as shares of the total, that are not above it. A word tells that for each
of these shares but one whose own first 64 bits it equals: then more bits are drawn, exactly. All
subjects take the same passes, whatever their values. Proof: docs/theory/panels.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.queries import FiniteLikelihood, LiftedLikelihood, Likelihood
from expost.sampling import Source, draw, uniform_bytes

__all__ = ["Drawing", "one_by_one"]

Words = NDArray[np.uint64]

_BLOCK = 1 << 15
_WORD = 64
# The most weights that are written out, over all values.
_LARGEST_TABLE = 1 << 16
# With more responses than this, subjects are sorted by their values instead.
_FEW = 32


class Drawing:
    """How one query draws, on a finite set."""

    def __init__(self, likelihood: FiniteLikelihood) -> None:
        # Values that it sees as one have one row of weights.
        self._where = likelihood.where if isinstance(likelihood, LiftedLikelihood) else None
        self._likelihood = (
            likelihood.seen if isinstance(likelihood, LiftedLikelihood) else likelihood
        )
        self._shares: Words | None = None
        self._cumulative: list[list[int]] = []
        self._kind = np.dtype(np.intp)

    def positions(self, places: NDArray[np.intp], source: Source) -> NDArray[Any]:
        """The position of a response for each subject, from where its value is."""
        if self._where is not None:
            places = self._where[places]
        if self._shares is None and not self._write():
            pmfs = {place: self._likelihood.pmf(place) for place in np.unique(places).tolist()}
            return _column([draw(pmfs[place], source) for place in places.tolist()])
        assert self._shares is not None
        result = np.empty(len(places), dtype=self._kind)
        below = _below if len(self._shares) < _FEW else _below_sorted
        for start in range(0, len(places), _BLOCK):
            own = places[start : start + _BLOCK]
            words = np.frombuffer(uniform_bytes(source, 8 * len(own)), dtype="<u8")
            drawn, equal = below(self._shares, own, words)
            for number in equal.nonzero()[0].tolist():
                drawn[number] = self._exactly(int(own[number]), int(words[number]), source)
            result[start : start + _BLOCK] = drawn
        return result

    def _write(self) -> bool:
        """Write all weights out, unless they are too many."""
        values, count = len(self._likelihood.domain), _count_of(self._likelihood)
        if values * count > _LARGEST_TABLE:
            return False
        pmfs = [self._likelihood.pmf(place) for place in range(values)]
        self._cumulative = [list(accumulate(map(pmf.weight, range(count)))) for pmf in pmfs]
        shares = [
            [min((end << _WORD) // ends[-1], (1 << _WORD) - 1) for end in ends[:-1]]
            for ends in self._cumulative
        ]
        self._shares = np.array(shares, dtype=np.uint64).reshape(values, -1).T.copy()
        self._kind = np.min_scalar_type(count)
        return True

    def _exactly(self, place: int, word: int, source: Source) -> int:
        """The same for a word that does not decide, with as many more bits as it takes."""
        ends, bits = self._cumulative[place], _WORD
        while True:
            least = word * ends[-1] >> bits
            most = (word + 1) * ends[-1] - 1 >> bits
            first, last = bisect_right(ends, least), bisect_right(ends, most)
            if first == last:
                return first
            word, bits = word << _WORD | source.below(1 << _WORD), bits + _WORD


def one_by_one(likelihood: Likelihood[Any], places: Sequence[Any], source: Source) -> NDArray[Any]:
    """The same where there are no tables, as on a box."""
    return _column([draw(likelihood.pmf(place), source) for place in places])


def _below(
    shares: Words, places: NDArray[np.intp], words: Words
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """How many shares are below each word, and whether one of them equals it."""
    own = shares.take(places, axis=1)
    return (words > own).sum(axis=0), (words == own).any(axis=0)


def _below_sorted(
    shares: Words, places: NDArray[np.intp], words: Words
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The same value by value, for many shares."""
    below = np.zeros(len(places), dtype=np.intp)
    equal = np.zeros(len(places), dtype=np.bool_)
    for value in range(shares.shape[1]):
        own, column = np.flatnonzero(places == value), shares[:, value]
        below[own] = np.searchsorted(column, words[own])
        equal[own] = column[np.minimum(below[own], len(column) - 1)] == words[own]
    return below, equal


def _column(positions: list[int]) -> NDArray[Any]:
    """Positions as an array: of words, unless some are too large."""
    wide = any(position >= 1 << 63 for position in positions)
    return np.array(positions, dtype=object if wide else np.int64)


def _count_of(likelihood: FiniteLikelihood) -> int:
    try:
        return len(likelihood.responses)
    except OverflowError:  # there are more than fit into a word
        return _LARGEST_TABLE + 1
