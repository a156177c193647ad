"""Queries and responses by their numbers, which the rows of a ledger have instead of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost._types import Ints
from expost.answers import no_such_query
from expost.errors import InvalidInput
from expost.files.canonical import json_text, readable_tree, value_tree
from expost.files.reading import parse
from expost.ledger._digests import chain_prefix
from expost.ledger.backend import Backend
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import MAX_SIZE, QueryRow, ResponseRow
from expost.panel._compiled_query import position_column
from expost.panel._kernel import Kernel
from expost.queries import Likelihood, Query, query_from_json
from expost.transcript import response_from_json

__all__ = ["Catalog", "ResponseEntry", "query_document"]


class ResponseEntry(NamedTuple):
    """A response: the query it answers, and where it is among that query's responses."""

    query: int
    position: int
    #: As JSON.
    text: str
    #: See :func:`expost.ledger._digests.chain_prefix`.
    chain_prefix: bytes


class Catalog:
    """All queries and responses of a ledger, in memory. Numbers count from 1 and never change.

    New ones are pending until the commit that adds them is durable; :meth:`discard` removes them.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        #: Queries by their names, in the order of their numbers.
        self.queries: dict[str, Query] = {}
        self._query_rows: list[QueryRow] = []
        #: The kernel's number of each query.
        self._kernel_indices: list[int] = []
        self._by_id: dict[str, int] = {}
        self._entries: list[ResponseEntry] = []
        self._by_position: dict[tuple[int, int], int] = {}
        #: Rows that the next commit adds.
        self.pending_rows: list[QueryRow | ResponseRow] = []
        #: Counts how often numbers were taken back, so that other rows may get them.
        self.revision = 0

    def refresh(self, backend: Backend) -> None:
        """Load what was added since the last call."""
        # The responses first: then the query of a response is there when the response is.
        responses = _rows_after(backend, ResponseRow, len(self._entries))
        try:
            for query_row in _rows_after(backend, QueryRow, len(self._query_rows)):
                self._load_query(query_row)
            for response_row in responses:
                self._load_response(response_row)
        except TypeError:  # a flipped bit can change the type of a column
            raise LedgerDamaged("a query or a response is not what was recorded") from None

    def _load_query(self, row: QueryRow) -> None:
        try:
            query = query_from_json(parse(row.document))
        except InvalidInput:
            query = None
        if query is None or query.content_id != row.content_id:
            raise LedgerDamaged(f"query {row.number} is not what was recorded")
        self._append_query(row, query)

    def _append_query(self, row: QueryRow, query: Query) -> None:
        self._kernel_indices.append(self._kernel.query_index(query))
        self.queries[row.name] = query
        self._by_id[row.content_id] = row.number
        self._query_rows.append(row)

    def _load_response(self, row: ResponseRow) -> None:
        position = None
        if 1 <= row.query <= len(self._query_rows):
            with suppress(InvalidInput):
                response = response_from_json(parse(row.response))
                position = self.likelihood(row.query).position(response)
        if position is None:
            raise LedgerDamaged(f"response {row.number} is not what was recorded")
        self._append_response(row, position)

    def _append_response(self, row: ResponseRow, position: int) -> None:
        response = self.likelihood(row.query).responses[position]
        prefix = chain_prefix(self.query_id(row.query), value_tree(response))
        self._entries.append(ResponseEntry(row.query, position, row.response, prefix))
        self._by_position[row.query, position] = len(self._entries)

    # -- queries

    def query(self, query_number: int) -> Query:
        return self.queries[self.query_name(query_number)]

    def query_id(self, query_number: int) -> str:
        return self._query_row(query_number).content_id

    def query_name(self, query_number: int) -> str:
        return self._query_row(query_number).name

    def _query_row(self, query_number: int) -> QueryRow:
        if not 1 <= query_number <= len(self._query_rows):
            raise LedgerDamaged(f"there is no query number {query_number}")
        return self._query_rows[query_number - 1]

    def query_number(self, content_id: str) -> int:
        """Return the number of a query; 0 if it has none."""
        return self._by_id.get(content_id, 0)

    def likelihood(self, query_number: int) -> Likelihood[Any]:
        return self.query(query_number).on(self._kernel.domain)

    def query_named(self, name: Any) -> Query:
        """Return a query by its name."""
        key = str(name) if isinstance(name, (str, int)) else ""
        if key not in self.queries:
            raise no_such_query(key, self.queries)
        return self.queries[key]

    def add_query(self, query: Query, name: str = "") -> int:
        """Return the number of a query, adding it if it has none."""
        query_number = self.query_number(query.content_id)
        if query_number:
            return query_number
        self._kernel.query_index(query)  # refuses a query that cannot be asked on this domain
        document = json_text(readable_tree(query.labeled_tree()))
        if len(document.encode()) > MAX_SIZE:
            raise InvalidInput(f"has more than {MAX_SIZE:,} bytes", "query")
        name = name or query.content_id
        if name in self.queries:
            raise InvalidInput("is the name of another query", name)
        row = QueryRow(len(self._query_rows) + 1, query.content_id, name, document)
        self.pending_rows.append(row)
        self._append_query(row, query)
        return row.number

    # -- responses

    @property
    def size(self) -> int:
        """The number of responses."""
        return len(self._entries)

    def response(self, response_number: int) -> ResponseEntry:
        if not 1 <= response_number <= len(self._entries):
            raise LedgerDamaged(f"there is no response number {response_number}")
        return self._entries[response_number - 1]

    def add_response(self, query: int, position: int) -> int:
        """Return the number of a response, adding it if it has none."""
        response_number = self._by_position.get((query, position))
        if response_number is not None:
            return response_number
        text = json_text(readable_tree(value_tree(self.likelihood(query).responses[position])))
        row = ResponseRow(len(self._entries) + 1, query, text)
        self.pending_rows.append(row)
        self._append_response(row, position)
        return row.number

    # -- arrays

    def kernel_indices(self, queries: Ints) -> Ints:
        """Return the kernel's numbers of some queries."""
        if len(queries) and not 1 <= queries.min() <= queries.max() <= len(self._kernel_indices):
            raise LedgerDamaged("a request has a query that was never recorded")
        return np.array(self._kernel_indices, dtype=np.int64)[queries - 1]

    def positions_of(self, responses: Ints) -> NDArray[Any]:
        """Return the positions of some responses; they may exceed 64 bits."""
        return position_column([entry.position for entry in map(self.response, responses.tolist())])

    # -- pending rows

    def mark_durable(self) -> None:
        """Note that the pending rows are durable."""
        self.pending_rows = []

    def discard(self) -> None:
        """Remove pending rows."""
        self.revision += bool(self.pending_rows)
        while self.pending_rows:
            row = self.pending_rows.pop()
            if isinstance(row, QueryRow):
                self._query_rows.pop()
                self._kernel_indices.pop()
                del self.queries[row.name], self._by_id[row.content_id]
            else:
                entry = self._entries.pop()
                del self._by_position[entry.query, entry.position]


def _rows_after(backend: Backend, row: Any, loaded: int) -> Sequence[Any]:
    """Return the rows of a numbered table after the first ``loaded`` ones, without gaps."""
    rows: list[Any] = []
    while True:
        wanted = range(loaded + len(rows) + 1, loaded + len(rows) + 257)
        batch = backend.find(row, [(row_number,) for row_number in wanted])
        for row_number in wanted:
            if (row_number,) not in batch:
                return rows
            rows.append(batch[row_number,])


def query_document(query: Query) -> str:
    """Return a query as JSON, without labels, as devices take it."""
    return json_text(readable_tree(query.tagged_tree()))
