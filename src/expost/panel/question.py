"""A query on a finite set, in arrays: what each of its responses says of each value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats, Indices
from expost.numbers import UNIT
from expost.panel.differences import Differences, differences
from expost.panel.drawing import Drawing, one_by_one
from expost.panel.fixed import fixed_logs, wrapped
from expost.queries import FiniteLikelihood, Likelihood, Query
from expost.sampling import Source

__all__ = ["TERM_ERROR", "TINY", "FiniteQuestion", "Question"]


# Up to this many responses, where each is known is a table.
_LISTED = 1 << 16
TERM_ERROR = 40
"""What a logarithm may be off, in units of roundoff relative to epsilon."""
TINY = 2.0**-1069
"""And a little besides, where doubles are not normal."""
# Doubles next to epsilon are not above it.
_ABOVE = 1 + 2.0**-40


Responses = list[tuple["Question", int]]
"""Responses to all queries, by their position."""


class Question:
    """A query, and those of its responses that occurred.

    Responses go by *codes*: 0 for the first one that occurred, and so on. Positions can be too
    many for arrays, and too large for words.
    """

    def __init__(
        self, number: int, query: Query, likelihood: Likelihood[Any], all_responses: Responses
    ) -> None:
        self.number = number
        self._all_responses = all_responses
        self.response_indices = np.zeros(0, dtype=np.intp)
        """For each code, the index of the response among those to all queries."""
        self.query = query
        self.likelihood: Likelihood[Any] = likelihood
        self.responses = likelihood.responses
        self.positions: list[int] = []
        self._codes: dict[int, int] = {}
        count = _size(likelihood.responses)
        listed = count if count <= _LISTED else 0
        self._lookup = np.full(listed, -1, dtype=np.intp)

    def codes(self, positions: NDArray[Any]) -> Indices:
        """The codes of responses by their positions."""
        if len(self._lookup):
            positions = np.asarray(positions, dtype=np.intp)
            assert positions.min(initial=0) >= 0, "positions count from 0"
            codes = self._lookup.take(positions)
            if codes.size and codes.min() < 0:
                new = np.flatnonzero(np.bincount(positions[codes < 0])).tolist()
                for position in new:
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

    def draw(self, places: Any, source: Source) -> NDArray[Any]:
        """Positions of fresh responses, one for each place of a value."""
        return one_by_one(self.likelihood, places, source)


class FiniteQuestion(Question):
    """The same on a finite set, with a column of doubles for each response that occurred."""

    def __init__(
        self, number: int, query: Query, likelihood: FiniteLikelihood, all_responses: Responses
    ) -> None:
        super().__init__(number, query, likelihood, all_responses)
        self.likelihood: FiniteLikelihood = likelihood
        self._logs = np.empty((len(likelihood.domain), 0))
        self._impossible = np.empty(0, dtype=np.bool_)
        self._fixed: dict[int, NDArray[np.int64]] = {}

    def draw(self, places: Any, source: Source) -> NDArray[Any]:
        return self._drawing.positions(places, source)

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self.likelihood)

    @cached_property
    def infinite(self) -> bool:
        """Whether some response tells two values apart for certain."""
        return self.likelihood.epsilon.is_infinite

    @cached_property
    def size(self) -> float:
        """What no logarithm of a response that all values can give exceeds, once it is centred."""
        epsilon = self.likelihood.epsilon
        if not self.infinite:
            return epsilon.enclosure.upper * _ABOVE
        every = range(len(self.likelihood.responses))
        losses = (self.likelihood.term(position).loss.enclosure.upper for position in every)
        return max((loss for loss in losses if loss < math.inf), default=0.0) * _ABOVE

    @cached_property
    def differences(self) -> Differences:
        """How far it tells two values apart. Of a query that is infinite there is no table."""
        return differences(self.likelihood)

    def _grow(self) -> None:
        super()._grow()
        new = self.positions[self._logs.shape[1] :]
        if not new:
            return
        terms = [self.likelihood.term(position) for position in new]
        columns = np.array([term.logs for term in terms]).T
        impossible = np.isneginf(columns).any(axis=0)
        # Whatever else was answered, the loss is infinite then, and no logarithm is looked at.
        columns[:, impossible] = 0.0
        most = np.abs(columns).max(axis=0)
        errors = np.array([term.error for term in terms])
        allowed = impossible | (errors <= TERM_ERROR * UNIT * self.size + TINY)
        assert ((most <= self.size) & allowed).all(), "no term is larger than epsilon"
        self._logs = np.hstack([self._logs, columns])
        self._impossible = np.append(self._impossible, impossible)

    @property
    def logs(self) -> Floats:
        """The logarithms of responses in doubles: a row for each value, a column for each code."""
        return self._logs

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """For each code, whether some value cannot give that response."""
        return self._impossible

    def fixed(self, codes: Indices) -> NDArray[np.int64]:
        """The logarithms of some responses, which all values can give, as words: a column each."""
        for code in codes.tolist():
            if code not in self._fixed:
                self._fixed[code] = wrapped(fixed_logs(self.likelihood, self.positions[code]))
        return np.array([self._fixed[code] for code in codes.tolist()]).T


def _size(responses: Sequence[Any]) -> int:
    """How many there are, also if they are more than fit into a word."""
    size: int = getattr(responses, "size", None) or len(responses)
    return size
