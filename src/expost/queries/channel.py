"""An arbitrary channel: a row of probabilities per value, a column per response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet, Scalar
from expost.errors import InvalidInput, at
from expost.queries.base import Columns, Likelihood, Query
from expost.queries.term import Weights, as_weights
from expost.reading import array, each, members, scalar
from expost.rounding import exact

__all__ = ["Channel", "channel"]

# Quotients of weights to their geometric mean then stay within the range of doubles.
_MOST_BITS = 2000
_MISS = 1e-9
_PLACES = 10**15


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

    def _on(self, domain: FiniteSet) -> Likelihood:
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
    if responses is None and hasattr(probabilities, "columns"):
        responses = list(probabilities.columns)
    if hasattr(probabilities, "to_numpy"):
        probabilities = probabilities.to_numpy()
    with at("probabilities"):
        weights, denominator = _reduced(*_read(probabilities))
    if responses is None:
        responses = range(weights.shape[1])
    labels = tuple(each(responses, scalar, "responses"))
    if len(labels) != weights.shape[1]:
        raise InvalidInput(f"{len(labels)} responses for {weights.shape[1]} columns", "responses")
    if len(set(labels)) < len(labels):
        raise InvalidInput("a response is listed twice", "responses")
    weights.setflags(write=False)
    return Channel(None, labels, weights, denominator)


def _read(probabilities: Any) -> tuple[Weights, int]:
    if not isinstance(probabilities, np.ndarray):
        probabilities = _rectangle(each(probabilities, _row))
    if probabilities.ndim != 2 or 0 in probabilities.shape:
        raise InvalidInput("must be rows of numbers, one row per value")
    if probabilities.dtype == object:
        floats = {
            isinstance(entry, (float, np.floating))
            for entry in probabilities.flat
            if not isinstance(entry, (int, np.integer))
        }
        if floats == {True, False}:
            raise InvalidInput("mixes floats with exact numbers; write them all one way")
        if floats == {True}:
            return _from_floats(probabilities.astype(np.float64))
        return _from_exact(probabilities)
    if probabilities.dtype.kind == "f":
        if probabilities.dtype != np.float64:
            # A narrow float means its own shortest decimal, not that of the wider one.
            probabilities = probabilities.astype("U")
        return _from_floats(probabilities.astype(np.float64))
    return _from_exact(probabilities.astype(object))


def _reduced(weights: Weights, denominator: int) -> tuple[Weights, int]:
    """In lowest terms, so that equal channels have equal weights, however they were given."""
    common = math.gcd(denominator, int(np.gcd.reduce(weights, axis=None)))
    return weights // common, denominator // common


def _row(row: Any) -> list[Any]:
    if not isinstance(row, (list, tuple, np.ndarray)):
        raise InvalidInput("must be a row of numbers")
    return list(row)


def _rectangle(rows: list[list[Any]]) -> NDArray[Any]:
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
        reason = f"has {len(rows[odd])} entries, the first row {len(rows[0])}"
        raise InvalidInput(reason, f"[{odd}]")
    result = np.empty((len(rows), widths.pop() if widths else 0), dtype=object)
    for i, row in enumerate(rows):
        result[i, :] = row
    return result


def _from_exact(entries: NDArray[Any]) -> tuple[Weights, int]:
    rows: list[list[Fraction]] = []
    denominator = 1
    for i, row in enumerate(entries):
        rows.append(each(row, _probability, f"[{i}]"))
        denominator = math.lcm(denominator, *(p.denominator for p in rows[-1]))
        if denominator.bit_length() > _MOST_BITS:
            raise InvalidInput(f"the common denominator has more than {_MOST_BITS} bits", f"[{i}]")
        if sum(rows[-1]) != 1:
            raise InvalidInput(f"the row sums to {_shown(sum(rows[-1]))}, not to 1", f"[{i}]")
    weights = [[p.numerator * (denominator // p.denominator) for p in row] for row in rows]
    return as_weights(weights, denominator), denominator


def _probability(entry: Any) -> Fraction:
    if not isinstance(entry, (int, str, Decimal, Fraction, np.integer)):
        raise InvalidInput("must be a probability")
    value = exact(entry)
    if not 0 <= value <= 1:
        raise InvalidInput("must be between 0 and 1")
    return value


def _shown(total: Fraction | int) -> str:
    return str(total) if Fraction(total).denominator < 10**6 else f"about {float(total):.12g}"


def _from_floats(entries: NDArray[np.float64]) -> tuple[Weights, int]:
    # Not (0 <= p <= 1), so that NaN is bad.
    bad = np.argwhere(~((entries >= 0) & (entries <= 1)))
    if bad.size:
        raise InvalidInput("must be between 0 and 1", "[{}][{}]".format(*bad[0]))
    sums = entries.sum(axis=1)
    missing = np.flatnonzero(np.abs(sums - 1) > _MISS)
    if missing.size:
        place = f"[{missing[0]}]"
        raise InvalidInput(f"the row sums to {sums[missing[0]]:.12g}, not to 1", place)
    decimals = np.rint(entries * _PLACES)
    if (decimals / _PLACES == entries).all():
        weights = decimals.astype(np.int64)
        if (weights.sum(axis=1) == _PLACES).all():
            return weights, _PLACES
    bits = 62 if (np.ldexp(entries, 62) == np.rint(np.ldexp(entries, 62))).all() else 1074
    if bits == 62:
        weights = np.ldexp(entries, bits).astype(np.int64)
    else:
        scaled = [[int(Fraction(p) * 2**bits) for p in row] for row in entries.tolist()]
        weights = np.array(scaled, dtype=object)
    largest = entries.argmax(axis=1)
    index = np.arange(len(weights))
    weights[index, largest] += 2**bits - weights.sum(axis=1)
    return weights, 2**bits
