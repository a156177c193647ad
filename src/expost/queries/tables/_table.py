"""Tables of probabilities: reading them as integer weights, and their likelihood.

The rule for floats is in the docstring of :func:`expost.queries.tables.channel.channel`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_number, shorten
from expost.domains import FiniteSet, Scalar, Value
from expost.errors import InvalidInput
from expost.files.reading import NumberText, as_list, read_list, scalar
from expost.numbers import Nats, exact, read_only
from expost.queries._likelihood import BySufficientTerms
from expost.sampling import Categorical, Pmf
from expost.terms import Term, Weights, as_weights

__all__ = ["TableLikelihood", "in_lowest_terms", "read_labels", "read_table"]

# A sum of int64 that stays below cannot have wrapped around.
_WRAPS = 2**63


class TableLikelihood(BySufficientTerms):
    """A likelihood with few responses, from explicit columns of weights.

    The weights of all responses must have the same total for every value, or they would not be
    probabilities up to one common factor.
    """

    def __init__(
        self, domain: FiniteSet, responses: Sequence[Value], columns: Sequence[Weights]
    ) -> None:
        self.domain = domain
        largest = _largest(domain, responses, columns)
        # Responses that no value can give are not in the range of the query.
        possible = [i for i, most in enumerate(largest) if most]
        self.responses = tuple([responses[i] for i in possible])
        self._columns = [read_only(columns[i]) for i in possible]
        self._words_per_weight = 1 + max(largest).bit_length() // 64
        self._positions = {response: i for i, response in enumerate(self.responses)}

    @property
    def footprint(self) -> int:
        return len(self.domain) * self._words_per_weight

    def position(self, response: Any) -> int | None:
        if type(response) in (int, float):  # as it is read from a file
            return self._positions.get(response)
        try:
            return self._positions.get(scalar(response))
        except InvalidInput:
            return None

    def pmf(self, index: int) -> Pmf:
        return Categorical(tuple(int(column[index]) for column in self._columns))

    def weights(self, position: int) -> Weights:
        return self._columns[position]

    def term(self, position: int) -> Term:
        # All terms are stored, because the filter uses all of them every time.
        if position not in self._terms:
            self._terms[position] = Term.of(self.weights(position))
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
    """Return the largest weight of every column; refuse columns that are no likelihood."""
    if len(responses) != len(columns) or {len(column) for column in columns} != {len(domain)}:
        raise InvalidInput(
            f"expected {len(responses)} columns of weights, one for each response, with "
            f"{len(domain)} weights each, one for each value"
        )
    if min(int(np.minimum.reduce(column)) for column in columns) < 0:
        raise InvalidInput("a weight is negative")
    largest = [int(np.maximum.reduce(column)) for column in columns]
    wide = sum(largest) >= _WRAPS
    totals = reduce(add, (column.astype(object) if wide else column for column in columns))
    least, most = int(np.minimum.reduce(totals)), int(np.maximum.reduce(totals))
    if not 0 < least == most:
        raise InvalidInput(
            f"got weights that add up to {least} for one value and to {most} for another; "
            "expected the same total above 0 for every value"
        )
    return largest


# Quotients of weights to their geometric mean then stay within the range of doubles.
_MOST_BITS = 2000
_MISS = 1e-9
_SCALE = 10**15
_DECIMALS = re.compile(r"[01](\.[0-9]{1,15})?( [01](\.[0-9]{1,15})?)*")


def read_table(probabilities: Any) -> tuple[Weights, int]:
    """Read rows of probabilities that sum to one, as weights and denominator in lowest terms."""
    decimals = _short_decimals(probabilities)
    if decimals is not None:
        return in_lowest_terms(decimals, _SCALE)
    entries = _entries(probabilities)
    if entries.ndim != 2 or 0 in entries.shape:
        raise InvalidInput("must be rows of numbers, one row per value")
    read = _from_exact if entries.dtype == object else _from_floats
    return in_lowest_terms(*read(entries))


def in_lowest_terms(weights: Weights, denominator: int) -> tuple[Weights, int]:
    """Reduce weights and choose their type, so that equal channels have equal arrays."""
    common = math.gcd(denominator, int(np.gcd.reduce(weights, axis=None)))
    weights = as_weights(weights // common, denominator // common)
    return read_only(weights), denominator // common


def _short_decimals(table: Any) -> NDArray[np.int64] | None:
    """Read a table of decimals of at most 15 places in one go, as most files have it.

    Returns None for any other table, which has to be read entry by entry. Times 10^15, the double
    next to such a decimal is less than a quarter from that integer.
    """
    if type(table) is not list or set(map(type, table)) != {list}:
        return None
    flat = list(chain.from_iterable(table))
    kinds, lengths = set(map(type, flat)), set(map(len, table))
    if not kinds or not kinds <= {str, NumberText} or len(lengths) > 1:
        return None
    if not _DECIMALS.fullmatch(" ".join(flat)):
        return None
    weights = np.rint(np.array(list(map(float, flat))) * _SCALE).astype(np.int64)
    rows = weights.reshape(len(table), -1)
    sums = np.add.reduce(rows, axis=1).tolist()
    return rows if sums.count(_SCALE) == len(table) else None


def _entries(table: Any) -> NDArray[Any]:
    """Return an array of doubles, or of objects if the entries are exact."""
    if isinstance(table, np.ma.MaskedArray):
        raise InvalidInput("has masked entries, which are no probabilities")
    if isinstance(table, np.ndarray) and table.dtype.kind == "f":
        return _doubles(np.array(table))
    rows = [read_list(row, _entry, f"[{i}]") for i, row in enumerate(read_list(table, as_list))]
    width = len(rows[0]) if rows else 0
    for i, row in enumerate(rows):
        if len(row) != width:
            raise InvalidInput(f"has {len(row)} entries, the first row {width}", f"[{i}]")
    floats = {isinstance(p, (float, np.floating)) for row in rows for p in row if p not in (0, 1)}
    if floats == {True, False}:
        raise InvalidInput("mixes floats with exact numbers; write them all one way")
    result = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        result[i, :] = row
    return _doubles(result) if True in floats else result


def _entry(entry: Any) -> Any:
    if isinstance(entry, (bool, np.bool_)) or not isinstance(
        entry, (int, str, float, Decimal, Fraction, np.integer, np.floating)
    ):
        raise InvalidInput("must be a probability")
    return entry


def _doubles(entries: NDArray[Any]) -> NDArray[np.float64]:
    # A narrow float stands for its own shortest decimal, not for that of a double.
    texts = entries if entries.dtype == np.float64 else entries.astype("U")
    return texts.astype(np.float64)


def _from_exact(entries: NDArray[Any]) -> tuple[Weights, int]:
    rows: list[list[Fraction]] = []
    denominator = 1
    for i, row in enumerate(entries.tolist()):
        rows.append(read_list(row, _probability, f"[{i}]"))
        denominator = math.lcm(denominator, *(p.denominator for p in rows[-1]))
        if denominator.bit_length() > _MOST_BITS:
            raise InvalidInput(f"the common denominator has more than {_MOST_BITS} bits", f"[{i}]")
        if sum(p.numerator * (denominator // p.denominator) for p in rows[-1]) != denominator:
            raise InvalidInput(f"the row sums to {_shown(sum(rows[-1]))}, not to 1", f"[{i}]")
    weights = [[p.numerator * (denominator // p.denominator) for p in row] for row in rows]
    return as_weights(weights, denominator), denominator


def _probability(entry: Any) -> Fraction:
    value = exact(entry)
    if not 0 <= value.numerator <= value.denominator:
        raise InvalidInput(f"must be between 0 and 1, not {shorten(str(entry))}")
    return value


def _shown(total: Fraction | int) -> str:
    return (
        str(total) if Fraction(total).denominator < 10**6 else f"about {format_number(total, 12)}"
    )


def _from_floats(entries: NDArray[np.float64]) -> tuple[Weights, int]:
    # Not (0 <= p <= 1), so that NaN is bad.
    bad = np.argwhere(~((entries >= 0) & (entries <= 1)))
    if bad.size:
        row, column = bad[0]
        reason = f"must be between 0 and 1, not {entries[row, column]}"
        raise InvalidInput(reason, f"[{row}][{column}]")
    sums = entries.sum(axis=1)
    missing = np.flatnonzero(np.abs(sums - 1) > _MISS)
    if missing.size:
        raise InvalidInput(
            f"the row sums to {format_number(sums[missing[0]], 12)}, not to 1", f"[{missing[0]}]"
        )
    decimals = np.rint(entries * _SCALE)
    if (decimals / _SCALE == entries).all():
        weights = decimals.astype(np.int64)
        if (weights.sum(axis=1) == _SCALE).all():
            return weights, _SCALE
    bits = 62 if (np.ldexp(entries, 62) == np.rint(np.ldexp(entries, 62))).all() else 1074
    if bits == 62:
        weights = np.ldexp(entries, bits).astype(np.int64)
    else:
        scaled = [[int(Fraction(p) * 2**bits) for p in row] for row in entries.tolist()]
        weights = np.array(scaled, dtype=object)
    largest = entries.argmax(axis=1)
    weights[np.arange(len(weights)), largest] += 2**bits - weights.sum(axis=1)
    return weights, 2**bits


def read_labels(responses: Sequence[Any], width: int) -> tuple[Scalar, ...]:
    """Read the responses of a table, one for each column."""
    labels = tuple(read_list(responses, scalar, "responses"))
    if len(labels) != width:
        raise InvalidInput(f"{len(labels)} responses for {width} columns", "responses")
    if len(set(labels)) < len(labels):
        raise InvalidInput("a response is listed twice", "responses")
    return labels
