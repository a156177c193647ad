"""Likelihoods that are given as a table, a column for each response."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from expost.domains import FiniteSet, Value
from expost.errors import InvalidInput
from expost.files.reading import scalar
from expost.numbers import Nats
from expost.queries.likelihood import BySufficientTerms
from expost.sampling import Categorical, Pmf
from expost.terms.on_set import Term, Weights

__all__ = ["Columns"]


class Columns(BySufficientTerms):
    """A likelihood with few responses, whose columns of weights are written out."""

    def __init__(
        self, domain: FiniteSet, responses: Sequence[Value], columns: Sequence[Weights]
    ) -> None:
        self.domain = domain
        # A response that no value can give is not one of the query.
        possible = [i for i, column in enumerate(columns) if column.any()]
        self.responses = tuple(responses[i] for i in possible)
        self._columns = [columns[i] for i in possible]
        for column in self._columns:
            assert (column >= 0).all(), "a weight is never negative"
            column.setflags(write=False)
        self._positions = {response: i for i, response in enumerate(self.responses)}

    @property
    def footprint(self) -> int:
        largest = max(int(column.max()) for column in self._columns)
        return len(self.domain) * (1 + largest.bit_length() // 64)

    def position(self, response: Any) -> int | None:
        try:
            return self._positions.get(scalar(response))
        except InvalidInput:
            return None

    def pmf(self, place: int) -> Pmf:
        return Categorical(tuple(int(column[place]) for column in self._columns))

    def weights(self, position: int) -> Weights:
        return self._columns[position]

    def term(self, position: int) -> Term:
        # All are kept, because the filter goes through all of them every time.
        if position not in self._terms:
            self._terms[position] = Term(self.weights(position))
        return self._terms[position]

    @property
    def sufficient(self) -> Sequence[int]:
        return range(len(self.responses))

    @cached_property
    def least_loss(self) -> Nats:
        return min(self.term(position).loss for position in self.sufficient)
