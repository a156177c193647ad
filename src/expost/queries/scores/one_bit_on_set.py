"""One bit about an affine score on a finite set: the weights of all values, when they are needed.

A pass of NumPy takes its time however few the values are, and a curve takes dozens of them. So the
queries of a transcript work their weights out together, with the same bits as one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.queries.scores.aligned import SetScore, alike
from expost.queries.scores.one_bit import Ends, Grid, one_bit_weights
from expost.queries.tables.columns import Columns
from expost.terms import Term, Weights

__all__ = ["Curve", "OneBitOnSet"]

Curve = Callable[..., NDArray[np.float64]]
"""The shares of scores, elementwise; of those of many queries by their parameters, as columns."""


class OneBitOnSet(Columns):
    """Two responses; the high one is likelier the higher the score. Both are always possible."""

    def __init__(
        self, score: SetScore, domain: FiniteSet, responses: Ends, epsilon: Fraction,
        curve: Curve, *parameters: float,
    ) -> None:  # fmt: skip
        self.domain = domain
        self.responses = responses
        self._positions = {response: i for i, response in enumerate(responses)}
        self._score = score
        self._curve = curve
        self._parameters = parameters
        self._epsilon = epsilon
        self._words = 1 + Grid.at(epsilon).total.bit_length() // 64

    @cached_property
    def _columns(self) -> Sequence[Weights]:  # type: ignore[override]
        columns = one_bit_weights(self._curve(self._score.values, *self._parameters), self._epsilon)
        for column in columns:
            column.setflags(write=False)
        return columns

    @classmethod
    def prepare(cls, asked: Iterable[tuple[OneBitOnSet, int]]) -> None:
        waiting = {
            (id(one), position): (one, position)
            for one, position in asked
            if position not in one._terms and one._words == 1
        }
        for group in alike(waiting.values(), lambda pair: pair[0]._kind):
            first, _ = group[0]
            scores = SetScore.values_of([one._score for one, _ in group])
            parameters = np.array([one._parameters for one, _ in group], dtype=np.float64)
            shares = first._curve(scores, *parameters.T[..., None])
            both = np.stack(one_bit_weights(shares, first._epsilon))
            if both.dtype == object:  # too large for passes
                continue
            terms = Term.of_rows(both[[position for _, position in group], range(len(group))])
            for place, ((one, position), term) in enumerate(zip(group, terms, strict=True)):
                one._terms[position] = term
                if "_columns" not in one.__dict__:
                    columns = both[:, place].copy()  # a part would keep all others
                    columns.setflags(write=False)
                    one.__dict__["_columns"] = tuple(columns)

    @property
    def _kind(self) -> Hashable:
        """Those of which this is equal are worked out together."""
        return id(self.domain), self._curve, self._epsilon.as_integer_ratio()
