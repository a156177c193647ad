"""A log of all responses in order: a compact round for each query that was asked.

The tally of a subject is what its rounds hold, whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._grouping import group_pairs
from expost._types import Bools, Codes, Indices, Ints
from expost.panel._compiled_query import CompiledQuery
from expost.panel._selection import Selection, groups

__all__ = ["Counted", "ResponseLog", "ResponseRound"]


# With fewer subjects than one in so many, a round lists them.
_LISTED_SHARE = 8
# Up to so many codes, comparing with each of them takes less than counting all at once.
_COMPARED = 32
# Amounts that are added up at once stay in the second-level cache.
_BLOCK = 1 << 16
# As many ones as a byte can count.
_BYTE = 255
# Of few subjects and more rounds, it is worth knowing who is in which.
_MANY_ROUNDS = 32
_MANY_SUBJECTS = 64
#: An index that no subject has.
_ALL_SUBJECTS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class ResponseRound:
    """The responses of some subjects to one query, by their codes."""

    compiled: CompiledQuery
    #: Of those who are listed; else of all subjects, where the largest number is for none.
    codes: NDArray[np.unsignedinteger]
    indices: NDArray[np.unsignedinteger] | None

    @classmethod
    def build(cls, compiled: CompiledQuery, codes: Indices, selection: Selection) -> ResponseRound:
        """Return the round of some subjects' responses."""
        least = np.min_scalar_type(len(compiled.positions))  # one number is free
        if selection.indices is None:
            return cls(compiled, codes.astype(least), None)
        if len(selection) * _LISTED_SHARE < selection.total:
            return cls(compiled, codes.astype(least), selection.indices.astype(np.uint32))
        all_answers = np.full(selection.total, np.iinfo(least).max, dtype=least)
        all_answers[selection.indices] = codes
        return cls(compiled, all_answers, None)

    @property
    def none(self) -> int:
        """The code that stands for no answer."""
        return int(np.iinfo(self.codes.dtype).max)

    def at(self, indices: Indices) -> NDArray[np.unsignedinteger]:
        """Return the codes of some subjects, in their order."""
        if self.indices is None:
            return self.codes.take(indices)
        counts_by_query = np.minimum(np.searchsorted(self.indices, indices), len(self.indices) - 1)
        codes = self.codes[counts_by_query]
        codes[self.indices[counts_by_query] != indices] = self.none
        return codes

    @property
    def all_answers(self) -> tuple[Indices, Indices]:
        """The indices of all subjects who answered, and their codes."""
        if self.indices is not None:
            return self.indices.astype(np.intp), self.codes.astype(np.intp)
        indices = np.flatnonzero(self.codes != self.none)
        return indices, self.codes.take(indices).astype(np.intp)


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of the responses that subjects gave, in no order."""

    #: For each distinct response, its query.
    compiled_queries: Sequence[CompiledQuery]
    #: For each distinct response, its code.
    codes: Indices
    #: For each row, the index of a distinct response.
    responses: Codes
    #: The first row of each subject; the last entry is the number of rows.
    starts: Indices
    #: For each row, how often.
    times: Ints

    def subset(self, mask: Bools) -> Counted:
        """Return the counts of some of the distinct responses."""
        rows = np.flatnonzero(mask[self.responses])
        columns = self.responses[rows], np.searchsorted(rows, self.starts), self.times[rows]
        return Counted(self.compiled_queries, self.codes, *columns)

    def sums(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Add up amounts of distinct responses, a row for each: a column for each subject.

        A sum depends on the rows of its subject alone, in the last digit too.
        """
        subjects = np.flatnonzero(np.diff(self.starts))
        starts, ends = self.starts[subjects], self.starts[subjects + 1]
        sums = np.empty((*amounts.shape[1:], len(subjects)), amounts.dtype)
        size, repeated = max(1, _BLOCK // math.prod(amounts.shape[1:])), (self.times != 1).any()
        first = 0
        while first < len(subjects):
            last = max(first + 1, int(np.searchsorted(ends, starts[first] + size, side="right")))
            rows = slice(starts[first], ends[last - 1])
            summands = amounts.take(self.responses[rows], axis=0)
            if repeated:
                summands = (summands.T * self.times[rows]).T
            within = np.add.reduceat(summands, starts[first:last] - rows.start, axis=0)
            sums[..., first:last] = within.T
            first = last
        if len(subjects) == len(self.starts) - 1:
            return sums
        all_sums = np.zeros((*amounts.shape[1:], len(self.starts) - 1), amounts.dtype)
        all_sums[..., subjects] = sums
        return all_sums

    @property
    def exchanges(self) -> Ints:
        """The number of responses of each subject."""
        if (self.times == 1).all():
            return np.diff(self.starts)
        return self.sums(np.ones(len(self.codes), dtype=np.int64))

    @property
    def single_responses(self) -> Iterator[tuple[CompiledQuery, Indices, Indices]]:
        """One response of some subjects after the other: to what, who gave one, and which."""
        query_index = np.array([compiled.index for compiled in self.compiled_queries])
        responses = np.repeat(self.responses, self.times)
        counts = self.exchanges
        starts = np.cumsum(counts) - counts
        for turn in range(int(counts.max(initial=0))):
            owners = np.flatnonzero(counts > turn)
            answered = responses[starts[owners] + turn]
            for _, members in groups(query_index[answered]):
                compiled = self.compiled_queries[int(answered[members[0]])]
                yield compiled, owners[members], self.codes[answered[members]]

    def responses_of(self, subject_index: int) -> Iterator[tuple[CompiledQuery, int, int]]:
        """Return the queries, codes and counts of one subject."""
        for row in range(*self.starts[subject_index : subject_index + 2].tolist()):
            response = int(self.responses[row])
            compiled, code = self.compiled_queries[response], int(self.codes[response])
            yield compiled, code, int(self.times[row])


class ResponseLog:
    """All rounds so far, perhaps after counts of earlier responses."""

    def __init__(self) -> None:
        #: Responses before the first round, in no known order.
        self.counted: Counted | None = None
        self.rounds: list[ResponseRound] = []
        self._round_index = _RoundIndex(
            0, np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint32)
        )

    @property
    def single_responses(self) -> Iterator[tuple[CompiledQuery, Indices, Indices]]:
        """One response of some subjects after the other: to what, who gave one, and which."""
        if self.counted is not None:
            yield from self.counted.single_responses
        for response_round in self.rounds:
            yield response_round.compiled, *response_round.all_answers

    def add(self, compiled: CompiledQuery, codes: Indices, selection: Selection) -> None:
        """Add a round."""
        if len(selection):
            self.rounds.append(ResponseRound.build(compiled, codes, selection))

    def tallies(self, indices: Indices) -> dict[CompiledQuery, NDArray[np.int64]]:
        """Count the responses of some subjects to each query: a row for each code."""
        by_query = group_pairs(
            ((response_round.compiled, response_round.none), response_round.at(indices))
            for response_round in self._rounds_of(indices)
        )
        counts_by_query: dict[CompiledQuery, NDArray[np.int64]] = {}
        for column, subject_index in enumerate(indices.tolist() if self.counted else ()):
            assert self.counted is not None
            for compiled, code, times in self.counted.responses_of(subject_index):
                counts = counts_by_query.setdefault(compiled, _zero_counts(compiled, indices))
                counts[code, column] += times
        for (compiled, none), rows in by_query.items():
            counts = counts_by_query.setdefault(compiled, _zero_counts(compiled, indices))
            # There may be more codes by now than there were.
            _count(rows, counts[: min(none, len(counts))])
        return counts_by_query

    def exchanges(self, subject_index: int) -> list[tuple[CompiledQuery, int]]:
        """Return the queries that a subject answered, in order, and the positions of responses."""
        row = np.array([subject_index])
        answered: list[tuple[CompiledQuery, int]] = []
        for compiled, code, times in (
            self.counted.responses_of(subject_index) if self.counted else ()
        ):
            answered += [(compiled, code)] * times
        answered += [
            (response_round.compiled, code)
            for response_round in self._rounds_of(row)
            if (code := int(response_round.at(row)[0])) != response_round.none
        ]
        return [(compiled, compiled.positions[code]) for compiled, code in answered]

    def _rounds_of(self, indices: Indices) -> list[ResponseRound]:
        """List the rounds in which some of these subjects may have answered, in order."""
        if len(self.rounds) <= _MANY_ROUNDS or len(indices) > _MANY_SUBJECTS:
            return self.rounds
        if self._round_index.upto != len(self.rounds):
            self._round_index = _RoundIndex.build(self.rounds)
        return [self.rounds[row_count] for row_count in self._round_index.rounds_of(indices)]


@dataclass(frozen=True, slots=True)
class _RoundIndex:
    """The first rounds by the subjects they list; other rounds are about all subjects."""

    upto: int
    #: Of all rounds that list some, ascending.
    indices: NDArray[np.uint32]
    #: The round of each. A round of all subjects has an index that no subject has.
    rounds: NDArray[np.uint32]

    @classmethod
    def build(cls, rounds: Sequence[ResponseRound]) -> _RoundIndex:
        all_answers = np.array([_ALL_SUBJECTS], dtype=np.uint32)
        indices = [
            all_answers if response_round.indices is None else response_round.indices
            for response_round in rounds
        ]
        subject_indices = np.concatenate(indices).astype(np.uint32)
        round_indices = np.repeat(
            np.arange(len(rounds), dtype=np.uint32), [len(listed) for listed in indices]
        )
        order = np.argsort(subject_indices, kind="stable")
        return cls(len(rounds), subject_indices[order], round_indices[order])

    def rounds_of(self, indices: Indices) -> list[int]:
        """List the numbers of the rounds that list one of these, or are about all subjects."""
        sought = np.append(indices, _ALL_SUBJECTS).astype(np.uint32)
        first = np.searchsorted(self.indices, sought, side="left")
        last = np.searchsorted(self.indices, sought, side="right")
        counts_by_query = np.zeros(self.upto, dtype=np.bool_)
        for start, end in zip(first.tolist(), last.tolist(), strict=True):
            counts_by_query[self.rounds[start:end]] = True
        return np.flatnonzero(counts_by_query).tolist()


def _zero_counts(compiled: CompiledQuery, indices: Indices) -> NDArray[np.int64]:
    return np.zeros((len(compiled.positions), len(indices)), dtype=np.int64)


def _count(rows: list[NDArray[np.unsignedinteger]], counts: NDArray[np.int64]) -> None:
    """Add up how often each code, which has a row of counts, is in each column of some rows."""
    row_count, width = counts.shape
    if row_count > _COMPARED:
        cells = np.concatenate([row.astype(np.intp) * width + np.arange(width) for row in rows])
        # What stands for no answer is above all codes.
        cells = cells[cells < row_count * width]
        counts += np.bincount(cells, minlength=row_count * width).reshape(row_count, width)
        return
    for start in range(0, len(rows), _BYTE):
        some = np.array(rows[start : start + _BYTE])
        for code, members in enumerate(counts):
            members += np.add.reduce(some == code, axis=0, dtype=np.uint8)
