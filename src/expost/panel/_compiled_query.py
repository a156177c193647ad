"""Queries as arrays: the terms of their responses, and exact draws for many subjects.

A uniform number is a word of 64 bits followed by as many more as it takes. A response is the index
of cumulative weights, as shares of the total, that are not above it. A word decides that for each
of these shares except one whose own first 64 bits it equals: then more bits are drawn, exactly. All
subjects take the same passes, whatever their values. Proof: docs/theory/audits.md.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.numbers import UNIT
from expost.panel._differences import Differences, differences, fixed_logs, wrapped
from expost.panel._query_costs import Charge, Grid
from expost.queries import (
    FiniteLikelihood,
    LiftedLikelihood,
    Likelihood,
    Query,
    check_query,
    count_responses,
)
from expost.sampling import Source, draw, uniform_bytes
from expost.tally import unpack_counts
from expost.transcript import Transcript

__all__ = [
    "TERM_ERROR",
    "TINY",
    "CompiledFiniteQuery",
    "CompiledQuery",
    "Drawing",
    "QueryRegistry",
    "as_finite",
    "position_column",
]


# Up to this many responses, where each is known is a table.
_LISTED = 1 << 16
#: A bound on the error of a logarithm, in units of roundoff relative to epsilon.
TERM_ERROR = 40
#: A bound on the error of a logarithm where doubles are not normal.
TINY = 2.0**-1069
# Doubles next to epsilon are not above it.
_ABOVE = 1 + 2.0**-40


#: Responses to all queries, by their position.
Responses = list[tuple["CompiledQuery", int]]


class CompiledQuery:
    """A query, and those of its responses that occurred.

    Responses go by *codes*: 0 for the first one that occurred, and so on. Positions can be too
    many for arrays, and too large for words.
    """

    def __init__(
        self,
        index: int,
        query: Query,
        likelihood: Likelihood[Any],
        charge: Charge,
        all_responses: Responses,
    ) -> None:
        self.index = index
        #: What basic composition charges for the query.
        self.charge = charge
        self._all_responses = all_responses
        #: For each code, the index of the response among those to all queries.
        self.response_indices = np.zeros(0, dtype=np.intp)
        self.query = query
        self.likelihood: Likelihood[Any] = likelihood
        self.responses = likelihood.responses
        self.positions: list[int] = []
        self._codes: dict[int, int] = {}
        count = count_responses(likelihood.responses)
        self._lookup = np.full(count if count <= _LISTED else 0, -1, dtype=np.intp)

    def codes(self, positions: NDArray[Any]) -> Indices:
        """Return the codes of responses by their positions."""
        if len(self._lookup):
            positions = np.asarray(positions, dtype=np.intp)
            assert positions.min(initial=0) >= 0, "positions count from 0"
            codes = self._lookup.take(positions)
            if codes.size and codes.min() < 0:
                for position in np.flatnonzero(np.bincount(positions[codes < 0])).tolist():
                    self._lookup[position] = self.code(position)
                self._grow()
                codes = self._lookup.take(positions)
            return codes
        codes = np.array([self.code(position) for position in positions.tolist()], dtype=np.intp)
        self._grow()
        return codes

    def code(self, position: int) -> int:
        """Return the code of one response."""
        code = self._codes.setdefault(position, len(self.positions))
        if code == len(self.positions):
            self.positions.append(position)
        return code

    def _grow(self) -> None:
        """Compute what new codes need."""
        new = self.positions[len(self.response_indices) :]
        if new:
            start = len(self._all_responses)
            self._all_responses += [(self, position) for position in new]
            indices = np.arange(start, start + len(new))
            self.response_indices = np.append(self.response_indices, indices)

    def draw(self, value_indices: Any, source: Source) -> NDArray[Any]:
        """Draw positions of fresh responses, one for each value index."""
        pmfs = map(self.likelihood.pmf, value_indices)
        return position_column([draw(pmf, source) for pmf in pmfs])


class CompiledFiniteQuery(CompiledQuery):
    """A query on a finite set, with a column of doubles for each response that occurred."""

    def __init__(
        self,
        index: int,
        query: Query,
        likelihood: FiniteLikelihood,
        charge: Charge,
        all_responses: Responses,
    ) -> None:
        super().__init__(index, query, likelihood, charge, all_responses)
        self.likelihood: FiniteLikelihood = likelihood
        #: The logarithms of responses in doubles: a row for each value, a column for each code.
        self.logs = np.empty((len(likelihood.domain), 0))
        #: For each code, whether some value cannot give that response.
        self.impossible = np.empty(0, dtype=np.bool_)
        self._fixed: dict[int, NDArray[np.int64]] = {}

    def draw(self, value_indices: Any, source: Source) -> NDArray[Any]:
        return self._drawing.positions(value_indices, source)

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self.likelihood)

    @cached_property
    def infinite(self) -> bool:
        """Whether some response tells two values apart for certain."""
        return self.likelihood.epsilon.is_infinite

    @cached_property
    def size(self) -> float:
        """An upper bound on |log-weight| after centering, over responses every value can give."""
        if not self.infinite:
            return self.likelihood.epsilon.enclosure.upper * _ABOVE
        positions_range = range(len(self.likelihood.responses))
        losses = (
            self.likelihood.term(position).loss.enclosure.upper for position in positions_range
        )
        return max((loss for loss in losses if loss < math.inf), default=0.0) * _ABOVE

    @cached_property
    def differences(self) -> Differences:
        """The largest log-ratios between values. An infinite query has no table."""
        return differences(self.likelihood)

    def _grow(self) -> None:
        super()._grow()
        new = self.positions[self.logs.shape[1] :]
        if not new:
            return
        terms = [self.likelihood.term(position) for position in new]
        columns = np.array([term.logs for term in terms]).T
        impossible = np.isneginf(columns).any(axis=0)
        # Whatever else was answered, the loss is infinite then, and no logarithm is looked at.
        columns[:, impossible] = 0.0
        largest = np.abs(columns).max(axis=0)
        errors = np.array([term.error for term in terms])
        allowed = impossible | (errors <= TERM_ERROR * UNIT * self.size + TINY)
        assert ((largest <= self.size) & allowed).all(), "no term is larger than epsilon"
        self.logs = np.hstack([self.logs, columns])
        self.impossible = np.append(self.impossible, impossible)

    def fixed(self, codes: Indices) -> NDArray[np.int64]:
        """Return the logarithms of responses that all values can give, as words: a column each."""
        for code in codes.tolist():
            if code not in self._fixed:
                self._fixed[code] = wrapped(fixed_logs(self.likelihood, self.positions[code]))
        return np.array([self._fixed[code] for code in codes.tolist()]).T


def as_finite(compiled: CompiledQuery) -> CompiledFiniteQuery:
    """Return a query that is known to be on a finite domain."""
    assert isinstance(compiled, CompiledFiniteQuery)
    return compiled


class QueryRegistry:
    """Queries on one domain, numbered as they come."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.grid = Grid()
        #: All responses that occurred, each with its query.
        self.responses: Responses = []
        self._compiled: list[CompiledQuery] = []
        self._lock = threading.Lock()
        self._by_identity: dict[int, CompiledQuery] = {}
        self._by_content: dict[str, CompiledQuery] = {}

    def __len__(self) -> int:
        return len(self._compiled)

    def __getitem__(self, index: int) -> CompiledQuery:
        return self._compiled[index]

    def of(self, query: Query) -> CompiledQuery:
        """Return the compiled form of a query; equal queries share one."""
        compiled = self._by_identity.get(id(query))
        if compiled is not None and compiled.query is query:
            return compiled
        check_query(query)
        with self._lock:  # two threads must not give one number to two queries
            compiled = self._by_content.get(query.content_id)
            if compiled is None:
                compiled = self._compile(query)
                self._compiled.append(compiled)
                self._by_content[query.content_id] = compiled
                self._by_identity[id(query)] = compiled
        return compiled

    def _compile(self, query: Query) -> CompiledQuery:
        domain, index, responses = self.domain, len(self._compiled), self.responses
        likelihood: Any = query.on(domain)  # which refuses queries that are not about the domain
        ceiling = query.ceiling(domain)
        charge = Charge(ceiling, self.grid.admit(ceiling))
        match domain:
            case FiniteSet():
                return CompiledFiniteQuery(index, query, likelihood, charge, responses)
            case Attributes():
                return CompiledFiniteQuery(index, query, likelihood.on_part, charge, responses)
            case Box():
                return CompiledQuery(index, query, likelihood, charge, responses)
            case _:
                assert_never(domain)

    def in_order(self, packed: bytes) -> list[tuple[CompiledQuery, int, int]]:
        """Return the responses of a tally and their counts, sorted by query and position."""
        counted = [
            (*self.responses[response], times) for response, times in unpack_counts(packed).items()
        ]
        return sorted(counted, key=lambda row: (row[0].index, row[1]))

    def transcript(self, packed: bytes) -> Transcript:
        """Return a transcript with the responses of a tally, sorted by query and position."""
        transcript = Transcript(self.domain)
        for compiled, position, times in self.in_order(packed):
            for _ in range(times):
                transcript = transcript.add_position(compiled.query, position)
        return transcript


Words = NDArray[np.uint64]

_BLOCK = 1 << 15
_WORD = 64
# The most weights that are written out, over all values.
_LARGEST_TABLE = 1 << 16
# With more responses than this, subjects are sorted by their values instead.
_FEW = 32


class Drawing:
    """The tables from which one query draws on a finite set."""

    def __init__(self, likelihood: FiniteLikelihood) -> None:
        # Values that it sees as one have one row of weights.
        self._where = likelihood.indices if isinstance(likelihood, LiftedLikelihood) else None
        self._likelihood = (
            likelihood.original if isinstance(likelihood, LiftedLikelihood) else likelihood
        )
        self._shares: Words | None = None
        self._cumulative: list[list[int]] = []
        self._kind = np.dtype(np.intp)

    def positions(self, value_indices: NDArray[np.intp], source: Source) -> NDArray[Any]:
        """Draw the position of a response for each subject, from where its value is."""
        if self._where is not None:
            value_indices = self._where[value_indices]
        if self._shares is None and not self._write():
            pmfs = {
                value_index: self._likelihood.pmf(value_index)
                for value_index in np.unique(value_indices).tolist()
            }
            return position_column(
                [draw(pmfs[value_index], source) for value_index in value_indices.tolist()]
            )
        assert self._shares is not None
        result = np.empty(len(value_indices), dtype=self._kind)
        below = _count_below if len(self._shares) < _FEW else _below_sorted
        for start in range(0, len(value_indices), _BLOCK):
            block_values = value_indices[start : start + _BLOCK]
            words = np.frombuffer(uniform_bytes(source, 8 * len(block_values)), dtype="<u8")
            drawn, equal = below(self._shares, block_values, words)
            for row in equal.nonzero()[0].tolist():
                drawn[row] = self._draw_exactly(int(block_values[row]), int(words[row]), source)
            result[start : start + _BLOCK] = drawn
        return result

    def _write(self) -> bool:
        """Write all weights out, unless they are too many."""
        values, count = len(self._likelihood.domain), count_responses(self._likelihood.responses)
        if values * count > _LARGEST_TABLE:
            return False
        pmfs = [self._likelihood.pmf(value_index) for value_index in range(values)]
        self._cumulative = [list(accumulate(map(pmf.weight, range(count)))) for pmf in pmfs]
        shares = [
            [min((end << _WORD) // ends[-1], (1 << _WORD) - 1) for end in ends[:-1]]
            for ends in self._cumulative
        ]
        self._shares = np.array(shares, dtype=np.uint64).reshape(values, -1).T.copy()
        self._kind = np.min_scalar_type(count)
        return True

    def _draw_exactly(self, value_index: int, word: int, source: Source) -> int:
        """Draw with as many more bits as it takes, for a word that does not decide."""
        ends, bits = self._cumulative[value_index], _WORD
        while True:
            least = word * ends[-1] >> bits
            most = (word + 1) * ends[-1] - 1 >> bits
            first, last = bisect_right(ends, least), bisect_right(ends, most)
            if first == last:
                return first
            word, bits = word << _WORD | source.below(1 << _WORD), bits + _WORD


def _count_below(
    shares: Words, value_indices: NDArray[np.intp], words: Words
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Count the shares below each word, and return whether one of them equals it."""
    block_values = shares.take(value_indices, axis=1)
    return (words > block_values).sum(axis=0), (words == block_values).any(axis=0)


def _below_sorted(
    shares: Words, value_indices: NDArray[np.intp], words: Words
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Count shares value by value, which is faster for many shares."""
    below = np.zeros(len(value_indices), dtype=np.intp)
    equal = np.zeros(len(value_indices), dtype=np.bool_)
    for value in range(shares.shape[1]):
        block_values, column = np.flatnonzero(value_indices == value), shares[:, value]
        below[block_values] = np.searchsorted(column, words[block_values])
        equal[block_values] = (
            column[np.minimum(below[block_values], len(column) - 1)] == words[block_values]
        )
    return below, equal


def position_column(positions: list[int]) -> NDArray[Any]:
    """Return positions as an array: of words, unless some are too large."""
    wide = any(position >= 1 << 63 for position in positions)
    return np.array(positions, dtype=object if wide else np.int64)
