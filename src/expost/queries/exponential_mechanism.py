"""The exponential mechanism: responses that are the likelier the more useful they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from expost.domains import FiniteSet, Scalar
from expost.errors import InvalidInput, at
from expost.queries.base import Columns, FiniteLikelihood, Query, read_epsilon
from expost.queries.term import as_weights
from expost.reading import array, each, items, members, scalar
from expost.rounding import ExactLike, Nats, decimal_text, exact, positive, scaled_exp

__all__ = ["ExponentialMechanism", "exponential_mechanism"]

_LARGEST_SENSITIVITY = 10**300

# So that weights stay below some eight thousand bits, whatever epsilon is.
_MOST_SPREAD = 20

Utility = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialMechanism(Query):
    r"""A response y with odds that grow with its utility (McSherry and Talwar 2007).

    .. math:: P[y \mid x] \propto e^{\varepsilon u(x, y) / 2\Delta}

    The sensitivity Δ bounds how much the utility of a response differs between values. A larger
    epsilon may tell some values apart less.
    """

    kind: ClassVar[str] = "exponential_mechanism"
    responses: tuple[Scalar, ...]
    utility: Utility
    """A row per value, a column per response."""
    sensitivity: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def __repr__(self) -> str:
        shown = f"{len(self.utility)} values, {len(self.responses)} responses"
        sensitivity, epsilon = decimal_text(self.sensitivity), decimal_text(self.epsilon)
        return f"ExponentialMechanism({shown}, sensitivity={sensitivity}, epsilon={epsilon})"

    @property
    def steepness(self) -> Fraction:
        return 1 + max(max(row) - min(row) for row in self.utility) / self.sensitivity / 2

    def tree(self) -> dict[str, Any]:
        return {
            "responses": [r if isinstance(r, str) else float(r) for r in self.responses],
            "utility": [list(row) for row in self.utility],
            "sensitivity": self.sensitivity,
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> ExponentialMechanism:
        required = ("responses", "utility", "sensitivity", "epsilon")
        fields = members(fields, required=required)
        with at("responses"):
            array(fields["responses"])
        with at("utility"):
            each(array(fields["utility"]), array)
        return exponential_mechanism(**fields)

    def with_epsilon(self, epsilon: Fraction) -> ExponentialMechanism:
        return replace(self, epsilon=epsilon)

    def _on(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) != len(self.utility):
            raise InvalidInput(
                f"{len(self.utility)} rows for a domain of {len(domain)} values", "utility"
            )
        factor = self.epsilon / (2 * self.sensitivity)
        rows = [[factor * utility for utility in row] for row in self.utility]
        weights, total = exponential_weights(rows, self.epsilon)
        columns = [as_weights(column, total) for column in zip(*weights, strict=True)]
        likelihood = Columns(domain, self.responses, columns)
        if not likelihood.epsilon <= Nats(self.epsilon):
            raise AssertionError("mixing makes up for all rounding")
        return likelihood


def exponential_weights(
    exponents: Sequence[Sequence[Fraction]], epsilon: Fraction
) -> tuple[list[list[int]], int]:
    """Integer weights near e^exponent in every row, and their sum, which is that of every row.

    No ratio of two weights in a column exceeds e^epsilon if none does before rounding: what
    rounding may do is made up for by one small weight that is added to all of them. Proof:
    docs/theory/weights.md.
    """
    width = len(exponents[0])
    error = width + 2
    mixed = error * (1 + math.ceil(2 / epsilon))
    spread = max(max(row) - min(row) for row in exponents)
    # The smallest probability is at least e^-spread/width, and 2^bits times that is to dwarf mixed.
    bits = 40 + (mixed * width).bit_length() + math.ceil(spread * Fraction(3, 2))
    finer = bits + (width + 1).bit_length()
    known = {Fraction(0): 1 << finer}
    rows = []
    for row in exponents:
        largest = max(row)
        for exponent in row:
            below = exponent - largest
            if below not in known:
                known[below] = scaled_exp(below, finer)
        scaled = [known[exponent - largest] for exponent in row]
        whole = sum(scaled)
        weights = [(weight << bits) // whole for weight in scaled]
        weights[row.index(largest)] += (1 << bits) - sum(weights)
        rows.append([weight + mixed for weight in weights])
    return rows, (1 << bits) + width * mixed


def exponential_mechanism(
    utility: Any,
    *,
    responses: Sequence[Any] | None = None,
    sensitivity: ExactLike,
    epsilon: ExactLike,
) -> ExponentialMechanism:
    """A response by its utility: a row per value of the domain, a column per response.

    Utilities are exact: ``0.1`` is 1/10. Without names the responses are 0, 1, ….

    >>> exponential_mechanism([[1, 0], [0, 1]], sensitivity=1, epsilon="1")
    ExponentialMechanism(2 values, 2 responses, sensitivity=1, epsilon=1)
    """
    with at("sensitivity"):
        bound = positive(sensitivity, at_most=_LARGEST_SENSITIVITY)
    with at("utility"):
        rows = _read_utility(utility, bound)
    width = len(rows[0])
    labels = tuple(each(range(width) if responses is None else responses, scalar, "responses"))
    if len(labels) != width:
        raise InvalidInput(f"{len(labels)} responses for {width} columns", "responses")
    if len(set(labels)) < len(labels):
        raise InvalidInput("a response is listed twice", "responses")
    return ExponentialMechanism(labels, rows, bound, read_epsilon(epsilon))


def _read_utility(utility: Any, sensitivity: Fraction) -> Utility:
    rows = [tuple(each(row, exact, f"[{i}]")) for i, row in enumerate(each(utility, items))]
    if not rows or not rows[0]:
        raise InvalidInput("must be rows of numbers, one row per value")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidInput(f"has {len(row)} entries, the first row {len(rows[0])}", f"[{i}]")
        if max(row) - min(row) > _MOST_SPREAD * sensitivity:
            raise InvalidInput(
                f"the utilities of a value reach over more than {_MOST_SPREAD} sensitivities",
                f"[{i}]",
            )
    for j, column in enumerate(zip(*rows, strict=True)):
        excess = max(column) - min(column) - sensitivity
        if excess > 0:
            by = f"{float(excess):.6g} more than the sensitivity"
            raise InvalidInput(f"column {j} differs between values by {by}")
    return tuple(rows)
