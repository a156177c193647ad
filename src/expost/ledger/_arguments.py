"""Arguments of a ledger's verbs: subjects, queries, messages, responses, and calls in parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from expost._types import Indices, Ints
from expost.answers import Subject, column_values, encode_parsed_column, response_position
from expost.domains import Domain
from expost.errors import ExpostError, InvalidInput, at, expect
from expost.ledger._reader import LedgerReader, Progress
from expost.numbers import blocks
from expost.panel._requests import subjects_of
from expost.queries import Query

__all__ = [
    "message_contents",
    "occurrences",
    "parts",
    "read_queries",
    "response_positions",
    "run_in_parts",
    "subject_names",
    "subject_to_json",
]

T = TypeVar("T")

# Rows of one commit, for calls that have more.
_ROWS_PER_COMMIT = 1 << 14


def subject_to_json(subject: Subject) -> str:
    """Return the JSON of a new subject's name; refuse a name that could not be read again."""
    if isinstance(subject, str) and not subject.isprintable():
        raise InvalidInput("a name has characters that cannot be printed", "subjects")
    if isinstance(subject, int) and abs(subject) > 1 << 53:
        raise InvalidInput("a number is above 2^53", "subjects")
    return json.dumps(subject)


def subject_names(
    reader: LedgerReader, subjects: Any, kind: str | None = None, *, repeated: bool = False
) -> list[str]:
    """Return the names of subjects (JSON); all, or all of one kind, if none are given."""
    if subjects is None:
        return reader.names(kind)
    names = [json.dumps(subject) for subject in subjects_of(subjects)]
    if not repeated and len(set(names)) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise InvalidInput(f"{name} appears twice", "subjects")
    return names


def read_queries(reader: LedgerReader, query: Any, count: int) -> tuple[list[Query], Ints]:
    """Return the distinct queries, and the index of the one each row is asked; -1 for none."""
    with at("query"):
        if isinstance(query, Query | str):
            return [reader.query(query)], np.zeros(count, dtype=np.int64)
        try:
            column = column_values(query)
        except InvalidInput:
            raise InvalidInput("must be a query, the name of one, or a column of names") from None
        if len(column) != count:
            raise InvalidInput(f"got {len(column):,} names for {count:,} subjects")
    codes, distinct = encode_parsed_column(
        column, lambda name: None if name is None else reader.query(name), "query"
    )
    indices = np.cumsum([query is not None for query in distinct], dtype=np.int64) - 1
    indices[[query is None for query in distinct]] = -1
    return [query for query in distinct if query is not None], indices[codes]


def message_contents(messages: Iterable[bytes | str]) -> list[bytes]:
    """Return messages in bytes."""
    if isinstance(messages, (str, bytes)):
        raise InvalidInput("must be a list of messages, not a single one")
    contents = [
        message.encode(errors="surrogatepass") if isinstance(message, str) else message
        for message in messages
    ]
    for content in contents:
        expect(content, bytes, "messages as bytes")
    return contents


def parts(count: int) -> Iterator[slice]:
    """Yield slices of rows that go into one commit each."""
    return blocks(count, _ROWS_PER_COMMIT)


def run_in_parts(
    rows: Indices, key: str, progress: Progress | None, run: Callable[[list[int]], Iterable[T]]
) -> list[T]:
    """Run rows in parts of one commit each, and return the result of each row.

    An error says how many are recorded.
    """
    results: list[T] = []
    for part in parts(len(rows)):
        try:
            results.extend(run(rows[part].tolist()))
        except ExpostError as error:
            if not part.start:
                raise
            raise _partial_error(error, part.start, len(rows), key) from None
        if progress is not None:
            progress(part.stop, len(rows))
    return results


def _partial_error(error: ExpostError, recorded: int, total: int, key: str) -> ExpostError:
    advice = f"; {recorded:,} of {total:,} rows are recorded. "
    advice += f"Repeat the call with the key {key!r}: nothing is recorded twice"
    if isinstance(error, InvalidInput):
        return type(error)(error.reason + advice, error.location)
    return type(error)(f"{error}{advice}")


def occurrences(names: Sequence[str]) -> Iterator[Indices]:
    """Yield the rows of first occurrences of names, then those of second ones, and so on."""
    counts: Counter[str] = Counter()
    occurrence = []
    for name in names:
        counts[name] += 1
        occurrence.append(counts[name])
    for count in range(1, max(occurrence, default=0) + 1):
        yield np.flatnonzero(np.array(occurrence) == count)


def response_positions(
    domain: Domain, queries: list[Query], query_indices: Ints, responses: Any
) -> list[int]:
    """Return the positions of responses among those of their queries."""
    column = column_values(responses)
    if len(column) != len(query_indices):
        raise InvalidInput(f"got {len(column):,} for {len(query_indices):,} subjects", "responses")
    if (query_indices < 0).any():
        row = int(np.argmin(query_indices)) + 1
        raise InvalidInput("has a response but no query", f"query: row {row}")
    likelihoods, positions = [query.on(domain) for query in queries], []
    for row, (index, response) in enumerate(zip(query_indices.tolist(), column, strict=True), 1):
        with at(f"row {row}: response"):
            position = response_position(likelihoods[index], response, queries[index].kind)
        positions.append(position)
    return positions
