"""An arbitrary channel: a row of probabilities per value or class, a column per response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
from expost.domains import Domain, FiniteSet, Scalar
from expost.errors import InvalidInput, at, make_printable, read_at
from expost.files.reading import array, array_at, members, read_integer, read_list, text
from expost.files.tables import as_array, column_names, is_frame
from expost.numbers import INFINITE, ExactLike, Nats, decimal_text, positive, read_only
from expost.queries._about import lift_to_classes
from expost.queries._divergences import least_ratio
from expost.queries._likelihood import FiniteLikelihood
from expost.queries._query import LARGEST_EPSILON, Query, read_delta
from expost.queries.tables._table import TableLikelihood, in_lowest_terms, read_labels, read_table
from expost.terms import Weights, as_weights

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
    #: The class of each value, if there is a row per class and not one per value.
    of: NDArray[np.intp] | None = None
    cap: Fraction | None = None
    question: str | None = None

    def __repr__(self) -> str:
        delta = f", delta={decimal_text(self.delta)}" if self.delta else ""
        rows = f"{len(self.weights)} values"
        if self.of is not None:
            rows = f"{len(self.of)} values in {len(self.weights)} classes"
        return f"Channel({rows}, {len(self.responses)} responses{delta})"

    @property
    def asks(self) -> str:
        if self.question is not None:
            return f"a saturating query about {self.question}"
        classes = "" if self.of is None else f" over {len(self.weights)} classes of values"
        return f"a channel{classes} to {format_list(self.responses, 'or')}"

    @classmethod
    def of_weights(
        cls,
        rows: Sequence[Sequence[int]],
        denominator: int,
        of: NDArray[np.intp] | None = None,
        *,
        cap: Fraction | None = None,
        question: str | None = None,
    ) -> Channel:
        """Make a channel with responses 0, 1, … from rows of integers with this sum."""
        assert all(sum(row) == denominator for row in rows), "rows are probabilities"
        weights, denominator = in_lowest_terms(as_weights(rows, denominator), denominator)
        responses = tuple(range(weights.shape[1]))
        return cls(None, responses, weights, denominator, of=of, cap=cap, question=question)

    def tree(self) -> dict[str, Any]:
        distinct_weights = set(self.weights.reshape(-1).tolist())
        entries = {weight: Fraction(weight, self.denominator) for weight in distinct_weights}
        tree: dict[str, Any] = {
            "responses": [r if isinstance(r, str) else float(r) for r in self.responses],
            "probabilities": [[entries[weight] for weight in row] for row in self.weights.tolist()],
        }
        if self.of is not None:
            tree["of"] = self.of.astype(np.float64).tolist()
        return {**tree, "delta": self.delta} if self.delta else tree

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Channel:
        optional = ("delta", "of", "question", "cap")
        fields = members(fields, required=("responses", "probabilities"), optional=optional)
        labels = array_at(fields, "responses")
        with at("probabilities"):
            rows = read_list(array(fields["probabilities"]), array)
        delta = read_delta(fields["delta"]) if "delta" in fields else Fraction(0)
        weights, denominator = read_at("probabilities", read_table, rows)
        of = _classes(fields["of"], len(weights)) if "of" in fields else None
        responses = read_labels(labels, weights.shape[1])
        cap = question = None
        if "cap" in fields:
            cap = read_at("cap", positive, fields["cap"], at_most=LARGEST_EPSILON)
        if "question" in fields:
            question = make_printable(read_at("question", text, fields["question"]))
        return cls(None, responses, weights, denominator, delta, of, cap, question)

    def with_epsilon(self, epsilon: Fraction) -> None:
        return None

    def charge(self, domain: Domain) -> Nats:
        """Return the least epsilon at ``delta``, exactly; without a delta, the worst case."""
        return self._least_epsilon if self.delta else super().charge(domain)

    def ceiling(self, domain: Domain) -> Nats:
        return super().charge(domain)

    @cached_property
    def _least_epsilon(self) -> Nats:
        ratio = least_ratio(self.weights, self.delta * self.denominator)
        return INFINITE if ratio is None else Nats(ratio=ratio)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        rows = len(self.weights if self.of is None else self.of)
        if len(domain) != rows:
            unit, field_name = ("rows", "probabilities") if self.of is None else ("classes", "of")
            raise InvalidInput(f"{rows} {unit} for a domain of {len(domain)} values", field_name)
        columns = [np.ascontiguousarray(column) for column in self.weights.T]
        if self.of is None:
            return TableLikelihood(domain, self.responses, columns)
        classes = FiniteSet(range(len(self.weights)))
        return lift_to_classes(TableLikelihood(classes, self.responses, columns), domain, self.of)


def channel(
    probabilities: Any,
    *,
    responses: Sequence[Any] | None = None,
    delta: ExactLike | None = None,
    of: Any = None,
) -> Channel:
    """Make a channel from nested lists, a NumPy array, or a pandas or polars frame.

    Rows follow the values of the domain, columns the responses (a frame's column names, or 0, 1,
    …). Integers, fractions, decimals and texts such as ``"2/5"`` are exact, and every row must
    sum to exactly one. Floats follow a rule of their own:

    - if every entry is a decimal of at most 15 places and every row of those decimals sums to
      exactly one, that is what was meant;
    - otherwise every entry is the double that it is, a row may miss one by up to 1e-9, and its
      largest entry (the first of them) becomes one minus the others.

    With ``delta`` the channel is charged the least ε at which it is (ε, δ)-LDP. If many values
    have equal rows, give a row for each class of values, and with ``of`` the class of each value.

    Args:
        probabilities: A row for each value, a column for each response.
        responses: The responses; by default a frame's column names, or 0, 1, ….
        delta: The channel is charged the least ε at which it is (ε, δ)-LDP.
        of: The class of each value, if there is a row for each class of values.

    Raises:
        InvalidInput: A row does not sum to one, or an entry is not a probability.

    >>> channel([["2/5", "3/5"], ["1/2", "1/2"]])
    Channel(2 values, 2 responses)
    >>> channel([["2/5", "3/5"], ["1/2", "1/2"]], of=[0, 0, 1, 0])
    Channel(4 values in 2 classes, 2 responses)
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
    labels = read_labels(responses, weights.shape[1])
    spared = Fraction(0) if delta is None else read_delta(delta)
    classes = None if of is None else _classes(of, len(weights))
    return Channel(None, labels, weights, denominator, spared, classes)


def _classes(of: Any, rows: int) -> NDArray[np.intp]:
    """Read the class of each value: indices of rows, all of which occur."""
    with at("of"):
        listed = of.tolist() if isinstance(of, np.ndarray) and of.ndim == 1 else of
        class_of = np.array(read_list(listed, read_integer), dtype=np.int64)
        outside = np.flatnonzero((class_of < 0) | (class_of >= rows))
        if outside.size:
            raise InvalidInput(f"must be one of {rows} classes, from 0", f"[{outside[0]}]")
        empty = np.flatnonzero(np.bincount(class_of, minlength=rows) == 0)
        if empty.size:
            raise InvalidInput(f"no value is in class {empty[0]}")
    return read_only(class_of.astype(np.intp))
