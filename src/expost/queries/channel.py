"""An arbitrary channel: a row of probabilities per value, a column per response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from expost.domains import FiniteSet, Scalar
from expost.errors import InvalidInput, at
from expost.queries.base import Columns, FiniteLikelihood, Query
from expost.queries.table import read_table
from expost.queries.term import Weights
from expost.reading import array, each, members, scalar

__all__ = ["Channel", "channel"]


@dataclass(frozen=True, eq=False, repr=False)
class Channel(Query):
    """Any finite channel, with probabilities ``weights / denominator``."""

    kind: ClassVar[str] = "channel"
    epsilon: None
    responses: tuple[Scalar, ...]
    weights: Weights
    denominator: int

    def __repr__(self) -> str:
        return f"Channel({len(self.weights)} values, {len(self.responses)} responses)"

    def tree(self) -> dict[str, Any]:
        return {
            "responses": [r if isinstance(r, str) else float(r) for r in self.responses],
            "probabilities": [
                [Fraction(weight, self.denominator) for weight in row]
                for row in self.weights.tolist()
            ],
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Channel:
        fields = members(fields, required=("responses", "probabilities"))
        with at("responses"):
            responses = array(fields["responses"])
        with at("probabilities"):
            rows = each(array(fields["probabilities"]), array)
        return channel(rows, responses=responses)

    def with_epsilon(self, epsilon: Fraction) -> None:
        return None

    def _on(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) != len(self.weights):
            raise InvalidInput(
                f"{len(self.weights)} rows for a domain of {len(domain)} values", "probabilities"
            )
        columns = [np.ascontiguousarray(column) for column in self.weights.T]
        return Columns(domain, self.responses, columns)


def channel(probabilities: Any, *, responses: Sequence[Any] | None = None) -> Channel:
    """A channel from nested lists, a NumPy array, or a pandas or polars frame.

    Rows follow the values of the domain, columns the responses (a frame's column names, or 0, 1,
    …). Integers, fractions, decimals and texts such as ``"2/5"`` are exact, and every row must
    sum to exactly one. Floats follow a rule of their own:

    - if every entry is a decimal of at most 15 places and every row of those decimals sums to
      exactly one, that is what was meant;
    - otherwise every entry is the double that it is, a row may miss one by up to 1e-9, and its
      largest entry (the first of them) becomes one minus the rest.

    >>> channel([["2/5", "3/5"], ["1/2", "1/2"]])
    Channel(2 values, 2 responses)
    """
    is_frame = hasattr(probabilities, "columns") and hasattr(probabilities, "to_numpy")
    if responses is None and is_frame:
        responses = list(probabilities.columns)
    with at("probabilities"):
        index = getattr(probabilities, "index", None) if is_frame else None
        if index is not None and list(index) != list(range(len(index))):
            # A named row would be taken for the value it names, but rows go by position.
            raise InvalidInput("has a row index; order the rows as the domain and reset it")
        if is_frame:
            probabilities = probabilities.to_numpy()
        weights, denominator = read_table(probabilities)
    if responses is None:
        responses = range(weights.shape[1])
    labels = tuple(each(responses, scalar, "responses"))
    if len(labels) != weights.shape[1]:
        raise InvalidInput(f"{len(labels)} responses for {weights.shape[1]} columns", "responses")
    if len(set(labels)) < len(labels):
        raise InvalidInput("a response is listed twice", "responses")
    return Channel(None, labels, weights, denominator)
