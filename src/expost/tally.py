"""Tallies: multisets of (query, response), which are all that a realized loss depends on.

:class:`Tally` is the immutable tally of one transcript. :class:`TallyIndex` has the tallies of many
subjects: each distinct one is stored once, packed to bytes, and has an index, under which results
are remembered.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from expost._types import Codes, Indices, Ints
from expost.queries import Query

__all__ = [
    "Summand",
    "Tally",
    "TallyIndex",
    "add_response",
    "distinct_integers",
    "pack_counts",
    "unpack_counts",
]


class Summand(NamedTuple):
    """A response of a query by its position, and how often it was given."""

    query: Query
    position: int
    times: int = 1


class Response(Protocol):
    """A query and the position of a response, as an exchange has them."""

    @property
    def query(self) -> Query: ...
    @property
    def position(self) -> int: ...


_Summands = dict[tuple[int, int], Summand]


class Tally:
    """Counts of the responses to each query, in any order. Immutable.

    Queries are compared by identity, which is fast. ``counts`` and ``summands`` compare them by
    content, so they are equal for equal tallies.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        # Summands keep their queries alive, so no identity is reused.
        self._state: _Summands | tuple[Tally, Summand] = {}

    @classmethod
    def of(cls, exchanges: Iterable[Response]) -> Tally:
        """Count the responses of some exchanges."""
        tally, counts = cls(), dict[tuple[int, int], int]()
        queries: dict[tuple[int, int], Query] = {}
        for exchange in exchanges:
            key = id(exchange.query), exchange.position
            queries[key] = exchange.query
            counts[key] = counts.get(key, 0) + 1
        tally._state = {key: Summand(queries[key], key[1], times) for key, times in counts.items()}
        return tally

    def extended(self, query: Query, position: int, times: int = 1) -> Tally:
        """Return the tally after a response was given so many more times.

        Nothing is counted before the counts are read: copying them for each of n different
        responses would take n² steps.
        """
        tally = Tally()
        tally._state = self, Summand(query, position, times)
        return tally

    @property
    def _summands(self) -> _Summands:
        added, state = list[Summand](), self._state
        while isinstance(state, tuple):
            added.append(state[1])
            state = state[0]._state
        if added:
            state = dict(state)
            for summand in reversed(added):
                key = id(summand.query), summand.position
                times = summand.times + (state[key].times if key in state else 0)
                state[key] = Summand(summand.query, summand.position, times)
            self._state = state  # at once, because threads share tallies
        return state

    def __iter__(self) -> Iterator[Summand]:
        """Return the summands in no order; equal queries may have separate summands."""
        return iter(self._summands.values())

    def __len__(self) -> int:
        return len(self._summands)

    @property
    def summands(self) -> list[Summand]:
        """The summands, sorted by the content ids of queries, then by positions."""
        by_content: dict[tuple[str, int], Summand] = {}
        for summand in self:
            key = (summand.query.content_id, summand.position)
            known = by_content.get(key)
            times = summand.times + (known.times if known else 0)
            by_content[key] = Summand(summand.query, summand.position, times)
        return [by_content[key] for key in sorted(by_content)]

    @property
    def counts(self) -> dict[tuple[str, int], int]:
        """The counts by the content id of the query and the position of the response."""
        return {(part.query.content_id, part.position): part.times for part in self.summands}

    def __repr__(self) -> str:
        return f"Tally({len(self)} different responses)"


def pack_counts(counts: Mapping[int, int]) -> bytes:
    """Return counts of numbered responses as bytes; counts of zero are left out.

    Each is a pair of 32-bit integers, little-endian, a number and its count, sorted by number.
    """
    numbers = [number for pair in sorted(counts.items()) if pair[1] for number in pair]
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpack_counts(packed: bytes) -> dict[int, int]:
    """Return how often each response was given, by its number."""
    return dict(struct.iter_unpack("<II", packed))


def add_response(packed: bytes, response: int) -> bytes:
    """Return packed counts with one more response."""
    counts = unpack_counts(packed)
    counts[response] = counts.get(response, 0) + 1
    return pack_counts(counts)


class TallyIndex:
    """The distinct tallies of many subjects, and which of them each subject has.

    Responses are integers below 2^32, numbered by the caller. Tally 0 is the empty one, and all
    subjects begin with it.

    >>> index = TallyIndex(3)
    >>> index.extend(np.array([0, 2]), np.array([7, 7]))
    >>> index.extend(np.array([0, 1, 2]), np.array([5, 5, 5]))
    >>> index.of_subject.tolist(), index.responses(index.of_subject[0]).tolist()
    ([3, 2, 3], [5, 7])
    """

    def __init__(self, subjects: int = 0) -> None:
        #: For each subject, the index of its tally.
        self.of_subject: Indices = np.zeros(subjects, dtype=np.intp)
        #: The distinct tallies, as :func:`pack_counts` writes them.
        self.packed: list[bytes] = [b""]
        #: For each tally that was first reached by one more response, from which and by which.
        self.parents: list[tuple[int, int]] = [(0, 0)]
        self._indices = {b"": 0}
        self._extensions: dict[tuple[int, int], int] = {}
        self._results: dict[Hashable, dict[int, Any]] = {}

    @classmethod
    def of_rows(cls, responses: Codes, starts: Indices) -> TallyIndex:
        """Count the responses of each subject: ``starts[i]`` to ``starts[i + 1]`` are of i."""
        index = cls(len(starts) - 1)
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.lexsort((responses, owners))
        owners, responses = owners[order], responses[order]
        first = np.ones(len(responses), dtype=np.bool_)
        first[1:] = (owners[1:] != owners[:-1]) | (responses[1:] != responses[:-1])
        rows = np.flatnonzero(first)
        pairs = np.empty((len(rows), 2), dtype="<u4")
        pairs[:, 0], pairs[:, 1] = responses[rows], np.diff(np.append(rows, len(responses)))
        packed, width = pairs.tobytes(), pairs.itemsize * 2
        ends = np.searchsorted(owners[rows], np.arange(len(starts))) * width
        index.of_subject[:] = [
            index.intern(packed[start:end]) for start, end in pairwise(ends.tolist())
        ]
        return index

    def __len__(self) -> int:
        return len(self.packed)

    def intern(self, packed: bytes) -> int:
        """Return the index of a tally, which is added if it is new."""
        tally = self._indices.setdefault(packed, len(self.packed))
        if tally == len(self.packed):
            self.packed.append(packed)
            self.parents.append((0, 0))
        return tally

    def extended(self, tallies: Indices, responses: Ints | Indices | int) -> Indices:
        """Return the indices of tallies with one more response each."""
        elements, element_of = np.unique(responses, return_inverse=True)
        keys, key_of = distinct_integers(tallies * len(elements) + element_of.reshape(-1))
        following = [
            self._extend(key // len(elements), int(elements[key % len(elements)]))
            for key in keys.tolist()
        ]
        return np.array(following, dtype=np.intp)[key_of]

    def _extend(self, tally: int, response: int) -> int:
        following = self._extensions.get((tally, response))
        if following is None:
            count = len(self.packed)
            following = self.intern(add_response(self.packed[tally], response))
            if following == count:
                self.parents[following] = tally, response
            self._extensions[tally, response] = following
        return following

    def extend(self, subjects: slice | Indices, responses: Ints | Indices | int) -> None:
        """Record one more response of some subjects."""
        self.of_subject[subjects] = self.extended(self.of_subject[subjects], responses)

    def counts(self, tally: int) -> dict[int, int]:
        """Return how often each response is in a tally."""
        return unpack_counts(self.packed[tally])

    def responses(self, tally: int) -> Indices:
        """Return the responses of a tally in ascending order, repeated as often as counted."""
        pairs = np.frombuffer(self.packed[tally], dtype="<u4").reshape(-1, 2)
        return np.repeat(pairs[:, 0].astype(np.intp), pairs[:, 1])

    def results(self, key: Hashable) -> dict[int, Any]:
        """Return what was computed under a key so far, by tally; add to it what is new."""
        return self._results.setdefault(key, {})


def distinct_integers(column: Codes) -> tuple[Indices, Indices]:
    """Return the distinct integers of a column, and for each entry the index of its integer.

    Integers in a small range are counted, which is faster than sorting them.
    """
    least, most = int(column.min(initial=0)), int(column.max(initial=0))
    if most - least >= max(1 << 16, 4 * len(column)):
        distinct, index_of = np.unique(column, return_inverse=True)
        return distinct.astype(np.intp), index_of
    above = np.subtract(column, least, dtype=np.intp)
    distinct = np.flatnonzero(np.bincount(above))
    index = np.zeros(most - least + 1, dtype=np.intp)
    index[distinct] = np.arange(len(distinct))
    return distinct + least, index.take(above)
