"""The columns of a table of answers: read strictly, and encoded as codes of distinct entries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from reprlib import Repr
from typing import Any, TypeVar

import numpy as np

from expost._format import shorten
from expost._types import Indices
from expost.domains import Domain
from expost.errors import InvalidInput, did_you_mean, read_at
from expost.files.reading import NumberText, as_list, number, parse, scalar
from expost.files.tables import as_array, column_names, separator_hint
from expost.queries import Likelihood, Query
from expost.transcript import no_such_response

__all__ = [
    "COLUMNS",
    "check_spelled",
    "column_values",
    "encode_column",
    "encode_parsed_column",
    "parse_spelling",
    "read_columns",
    "response_position",
]

COLUMNS = ("subject", "query", "response")

T = TypeVar("T", bound=Hashable)


def read_columns(
    table: Any, wanted: Sequence[str] = COLUMNS, optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the columns of a table, by default of answers: integer arrays, or else lists."""
    names = column_names(table)
    columns: dict[str, Any] = {}
    for name in (*wanted, *(name for name in optional if name in names)):
        if names.count(name) != 1:
            problem = "appears twice" if name in names else "is missing"
            present = ", ".join(repr(str(column_name)) for column_name in names)
            hint = separator_hint(names) or did_you_mean(name, map(str, names))
            raise InvalidInput(f"column {name!r} {problem}; there are {present}{hint}")
        columns[name] = read_at(name, _read_column, table[name])
    if len({len(column) for column in columns.values()}) > 1:
        raise InvalidInput("the columns have different lengths")
    if not len(columns[wanted[0]]):
        raise InvalidInput("there are no rows")
    return columns


def _read_column(values: Any) -> Any:
    values = as_array(values)
    if not isinstance(values, np.ndarray):
        return as_list(values)
    if values.ndim != 1:
        raise InvalidInput("must be a column")
    # Unsigned 64-bit integers do not fit into int64; they are rare, and a list will do.
    fits = values.dtype.kind in "iu" and values.dtype != np.uint64
    return values.astype(np.int64) if fits else values.tolist()


def column_values(column: Any) -> list[Any]:
    """Return a column as a list: an array, or one of a frame, or anything that has items."""
    values = as_array(column)
    column_like = isinstance(values, np.ndarray) and values.ndim > 0
    return values.tolist() if column_like else as_list(values)


def take_rows(column: Any, rows: Indices) -> Any:
    """Return the entries of a column in some rows."""
    if len(rows) == len(column):
        return column
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]


def encode_parsed_column(
    column: Any, read: Callable[[Any], T], name: str, rows: Indices | None = None
) -> tuple[Indices, list[T]]:
    """Return for each row the code of its entry, and the distinct entries as ``read`` returns them.

    Entries come in the order of their first rows. An error names the first row with the entry;
    ``rows`` are the row numbers in the table, from 0, if the column has only some of its rows.
    """
    codes, entries = encode_column(column, name, rows)
    code_of: dict[T, int] = {}
    merged: list[int] = []
    try:
        for value in entries:
            merged.append(code_of.setdefault(read(value), len(code_of)))
    except InvalidInput as error:
        row = int(np.argmax(codes == len(merged)))
        raise InvalidInput(error.reason, _locate(row, name, rows)) from None
    # Two spellings of one entry, such as 12 and "12.0", share a code.
    return (np.array(merged)[codes] if len(code_of) < len(merged) else codes), list(code_of)


def encode_column(column: Any, name: str, rows: Indices | None = None) -> tuple[Indices, list[Any]]:
    """Return for each row the code of its entry, and the distinct entries as they are written.

    A list is changed: an entry that is a list becomes a tuple.
    """
    if isinstance(column, np.ndarray):
        values, inverse = np.unique(column, return_inverse=True)
        first, rank = np.empty((2, len(values)), dtype=np.intp)
        # The last of several writes to an element wins, so going backwards leaves the first row.
        first[inverse[::-1]] = np.arange(len(column))[::-1]
        order = np.argsort(first)
        rank[order] = np.arange(len(order))
        return rank[inverse], values[order].tolist()
    if not set(map(type, column)) <= _HASHABLE_TYPES:
        for row, value in enumerate(column):
            column[row] = _to_hashable(value, _locate(row, name, rows))
    index = {value: code for code, value in enumerate(dict.fromkeys(column))}
    return np.fromiter(map(index.__getitem__, column), np.intp, len(column)), list(index)


_HASHABLE_TYPES = {int, float, str, NumberText}


def _to_hashable(value: Any, location: str) -> Any:
    """Return an entry as a dictionary key. Booleans are refused: True would equal 1."""
    entry = tuple(as_list(value)) if isinstance(value, (list, tuple, np.ndarray)) else value
    parts = entry if isinstance(entry, tuple) else (entry,)
    if any(isinstance(part, (bool, np.bool_)) for part in parts):
        raise InvalidInput("must be a label or a number, not true or false", location)
    try:
        hash(entry)
    except TypeError:
        raise InvalidInput("must be a label, a number or a list", location) from None
    return entry


def _locate(row: int, name: str, rows: Indices | None) -> str:
    return f"row {(row if rows is None else int(rows[row])) + 1}: {name}"


_SHORT_REPR = Repr()
_SHORT_REPR.maxstring = _SHORT_REPR.maxother = 30


def response_position(likelihood: Likelihood[Any], response: Any, query: str) -> int:
    """Return the position of a response from a table, or of the response that its text spells.

    ``query`` is the name of the query. An error shows the response, because responses are public.
    """
    candidates = [response, parse_spelling(response)] if isinstance(response, str) else [response]
    positions = {
        position for position in map(likelihood.position, candidates) if position is not None
    }
    if len(positions) > 1:
        raise InvalidInput(f"is a label of {query}, and also spells one of its numbers")
    if not positions and response == "":
        raise InvalidInput(f"is empty: there is no response to {query}")
    if not positions:
        reason = f"{_SHORT_REPR.repr(response)} {no_such_response(likelihood, shorten(query))}"
        is_fraction = isinstance(likelihood.responses, range) and isinstance(candidates[-1], float)
        raise InvalidInput(reason + ("; with a grid, count its steps" if is_fraction else ""))
    return positions.pop()


def check_spelled(domain: Domain, pairs: Iterable[tuple[Query, Any]]) -> None:
    """Refuse a string that only spells a response: in Python, unlike in a table, "1" is not 1."""
    checked: set[tuple[int, str]] = set()
    for row, (query, response) in enumerate(pairs, start=1):
        if not isinstance(response, str) or (id(query), response) in checked:
            continue
        checked.add((id(query), response))
        likelihood = query.on(domain)
        if likelihood.position(response) is None:
            reason = no_such_response(likelihood, f"this {query.kind}")
            raise InvalidInput(f"{_SHORT_REPR.repr(response)} {reason}", f"row {row}: response")


def parse_spelling(response: str) -> Any:
    """Return the number, or the tuple of numbers and labels, that a text spells; None if neither.

    >>> parse_spelling("12"), parse_spelling('["north", 34]'), parse_spelling("yes")
    (12, ('north', 34), None)
    """
    try:
        value = parse(response)
        if isinstance(value, list):
            return tuple(scalar(entry) for entry in value)
        return number(value) if isinstance(value, NumberText) else None
    except InvalidInput:
        return None
