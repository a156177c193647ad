"""Likelihoods that are given as a table, a column for each response."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from expost.domains import FiniteSet, Value
from expost.errors import InvalidInput
from expost.files.reading import scalar
from expost.numbers import Nats
from expost.queries.likelihood import BySufficientTerms
from expost.sampling import Categorical, Pmf
from expost.terms import Term, Weights

__all__ = ["Columns"]


# A sum of int64 that stays below cannot have wrapped around.
_WRAPS = 2**63


class Columns(BySufficientTerms):
    """A likelihood with few responses, whose columns of weights are written out.

    The weights of all responses must have the same total for every value, or they would not be
    probabilities up to one common factor.
    """

    def __init__(
        self, domain: FiniteSet, responses: Sequence[Value], columns: Sequence[Weights]
    ) -> None:
        self.domain = domain
        largest = _largest(domain, responses, columns)
        # What no value can give is not in the range of the query.
        possible = [i for i, most in enumerate(largest) if most]
        self.responses = tuple([responses[i] for i in possible])
        self._columns = [columns[i] for i in possible]
        for column in self._columns:
            column.setflags(write=False)
        self._words = 1 + max(largest).bit_length() // 64
        self._positions = {response: i for i, response in enumerate(self.responses)}

    @property
    def footprint(self) -> int:
        return len(self.domain) * self._words

    def position(self, response: Any) -> int | None:
        if type(response) in (int, float):  # as it is read from a file
            return self._positions.get(response)
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


def _largest(
    domain: FiniteSet, responses: Sequence[Value], columns: Sequence[Weights]
) -> list[int]:
    """The largest weight of every column, if these are the weights of a likelihood."""
    if len(responses) != len(columns) or {len(column) for column in columns} != {len(domain)}:
        raise InvalidInput(
            f"a likelihood of {len(responses)} responses on {len(domain)} values needs a column of "
            "weights for each response, with a weight for each value"
        )
    if min(int(np.minimum.reduce(column)) for column in columns) < 0:
        raise InvalidInput("a weight is negative")
    largest = [int(np.maximum.reduce(column)) for column in columns]
    wide = sum(largest) >= _WRAPS
    totals = reduce(add, (column.astype(object) if wide else column for column in columns))
    least, most = int(np.minimum.reduce(totals)), int(np.maximum.reduce(totals))
    if not 0 < least == most:
        raise InvalidInput(
            f"the weights of all responses add up to {least} for one value and to {most} for "
            "another, and must have one total that is greater than 0"
        )
    return largest
