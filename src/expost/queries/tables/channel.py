"""An arbitrary channel: a row of probabilities per value, a column per response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from expost.domains import Domain, FiniteSet, Scalar
from expost.errors import InvalidInput, at
from expost.files.frames import as_array, column_names, is_frame
from expost.files.reading import array, each, members, scalar
from expost.numbers import INFINITE, ExactLike, Nats, decimal_text
from expost.queries.hockey_stick import least_ratio
from expost.queries.likelihood import FiniteLikelihood
from expost.queries.query import Query, read_delta
from expost.queries.tables.columns import Columns
from expost.queries.tables.probabilities import read_table
from expost.queries.words import listed
from expost.terms.on_set import Weights

__all__ = ["Channel", "channel"]


@dataclass(frozen=True, eq=False, repr=False)
class Channel(Query):
    """Any finite channel, with probabilities ``weights / denominator``."""

    kind: ClassVar[str] = "channel"
    epsilon: None
    responses: tuple[Scalar, ...]
    weights: Weights
    denominator: int
    delta: Fraction = Fraction(0)

    def __repr__(self) -> str:
        delta = f", delta={decimal_text(self.delta)}" if self.delta else ""
        return f"Channel({len(self.weights)} values, {len(self.responses)} responses{delta})"

    @property
    def asks(self) -> str:
        return f"a channel to {listed(self.responses, 'or')}"

    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {
            "responses": [r if isinstance(r, str) else float(r) for r in self.responses],
            "probabilities": [
                [Fraction(weight, self.denominator) for weight in row]
                for row in self.weights.tolist()
            ],
        }
        return {**tree, "delta": self.delta} if self.delta else tree

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Channel:
        fields = members(fields, required=("responses", "probabilities"), optional=("delta",))
        labels, rows = fields["responses"], fields["probabilities"]
        if not isinstance(labels, list):
            raise InvalidInput("must be a list", "responses")
        if not isinstance(rows, list) or set(map(type, rows)) != {list}:
            with at("probabilities"):
                rows = each(array(rows), array)
        delta = read_delta(fields["delta"]) if "delta" in fields else Fraction(0)
        try:
            weights, denominator = read_table(rows)
        except InvalidInput as error:
            raise error.within("probabilities") from None
        return cls(None, _labels(labels, weights), weights, denominator, delta)

    def with_epsilon(self, epsilon: Fraction) -> None:
        return None

    def charge(self, domain: Domain) -> Nats:
        """The least epsilon at ``delta``, exactly; without one, the worst case."""
        return self._least_epsilon if self.delta else super().charge(domain)

    def ceiling(self, domain: Domain) -> Nats:
        return super().charge(domain)

    @cached_property
    def _least_epsilon(self) -> Nats:
        ratio = least_ratio(self.weights, self.delta * self.denominator)
        return INFINITE if ratio is None else Nats(ratio=ratio)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) != len(self.weights):
            raise InvalidInput(
                f"{len(self.weights)} rows for a domain of {len(domain)} values", "probabilities"
            )
        columns = [np.ascontiguousarray(column) for column in self.weights.T]
        return Columns(domain, self.responses, columns)


def channel(
    probabilities: Any,
    *,
    responses: Sequence[Any] | None = None,
    delta: ExactLike | None = None,
) -> Channel:
    """A channel from nested lists, a NumPy array, or a pandas or polars frame.

    Rows follow the values of the domain, columns the responses (a frame's column names, or 0, 1,
    …). Integers, fractions, decimals and texts such as ``"2/5"`` are exact, and every row must
    sum to exactly one. Floats follow a rule of their own:

    - if every entry is a decimal of at most 15 places and every row of those decimals sums to
      exactly one, that is what was meant;
    - otherwise every entry is the double that it is, a row may miss one by up to 1e-9, and its
      largest entry (the first of them) becomes one minus the rest.

    With ``delta`` the channel is charged the least ε at which it is (ε, δ)-LDP.

    >>> channel([["2/5", "3/5"], ["1/2", "1/2"]])
    Channel(2 values, 2 responses)
    """
    framed = is_frame(probabilities)
    if responses is None and framed:
        responses = column_names(probabilities)
    with at("probabilities"):
        index = getattr(probabilities, "index", None) if framed else None
        if index is not None and list(index) != list(range(len(index))):
            # A named row would be taken for the value it names, but rows go by position.
            raise InvalidInput("has a row index; order the rows as the domain and reset it")
        if framed:
            probabilities = as_array(probabilities)
        weights, denominator = read_table(probabilities)
    if responses is None:
        responses = range(weights.shape[1])
    labels = _labels(responses, weights)
    spared = Fraction(0) if delta is None else read_delta(delta)
    return Channel(None, labels, weights, denominator, spared)


def _labels(responses: Sequence[Any], weights: Weights) -> tuple[Scalar, ...]:
    """The responses of a table, one for each of its columns."""
    labels = tuple(each(responses, scalar, "responses"))
    if len(labels) != weights.shape[1]:
        raise InvalidInput(f"{len(labels)} responses for {weights.shape[1]} columns", "responses")
    if len(set(labels)) < len(labels):
        raise InvalidInput("a response is listed twice", "responses")
    return labels
