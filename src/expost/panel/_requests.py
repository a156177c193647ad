"""Names of subjects and queries, and the requests that calls make with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._grouping import group_pairs
from expost._types import Indices
from expost.answers import (
    REFUSED,
    Answers,
    Subject,
    column_values,
    encode_column,
    encode_parsed_column,
    no_such_query,
    response_position,
)
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.reading import text
from expost.panel._kernel import Kernel
from expost.panel._log import ResponseLog
from expost.panel._selection import groups
from expost.queries import Query

__all__ = ["NameTable", "QueryRequest", "check_name", "column_values", "subjects_of"]


_CONTENT_ID = re.compile("[0-9a-f]{64}")


def check_name(name: Any, query: Query) -> None:
    """Refuse a name that queries without a name could need as their content id."""
    expect(name, str, "a string")
    with at(name):
        expect(query, Query, "a query")
        if name == "":
            raise InvalidInput("a query's name must not be empty")
        if _CONTENT_ID.fullmatch(name) and name != query.content_id:
            raise InvalidInput("has the form of a content id; choose another name")


class NameTable:
    """The names of subjects and queries, and their indices."""

    def __init__(self, subjects: Any, queries: Mapping[str, Query], kernel: Kernel) -> None:
        self._kernel = kernel
        self.subjects = subjects_of(subjects)
        with at("subjects"):
            text("".join(name for name in self.subjects if isinstance(name, str)))
        self._subject_indices = {
            subject: subject_index for subject_index, subject in enumerate(self.subjects)
        }
        if len(self._subject_indices) < len(self.subjects):
            raise InvalidInput(f"{_find_repeated(self.subjects)!r} appears twice", "subjects")
        self.queries: dict[str, Query] = {}
        self._ids: dict[int, str] = {}
        with at("queries"):
            expect(queries, Mapping, "queries by their ids")
            for key, query in queries.items():
                check_name(key, query)
                read_at(key, self._name, key, query)

    def _name(self, key: str, query: Query) -> int:
        query_index = self._kernel.query_index(query)
        first_codes = self._ids.setdefault(query_index, key)
        if first_codes != key:
            raise InvalidInput(
                f"is a second name: this query is called {first_codes!r}; ask it again by that name"
            )
        self.queries[key] = query
        return query_index

    def ids(self, request: QueryRequest) -> tuple[str | None, ...]:
        """Return the id of the query that is asked, for each row; None if none is."""
        if isinstance(request.query_indices, int):
            return (self._ids[request.query_indices],) * len(request)
        return tuple(map(self._ids.get, request.in_caller_order(request.query_indices).tolist()))

    def id_of(self, query: Query) -> str:
        """Return the id of a query, which is its content id if it has no other."""
        return self._ids[self._named_index(query)]

    def subject_index(self, subject: Any) -> int:
        """Return the index of a subject."""
        try:
            return self._subject_indices[subject]
        except (KeyError, TypeError):
            raise InvalidInput(f"no subject {subject!r} in this panel", "subject") from None

    def request(self, query: Any, subjects: Any, *, repeated: bool = False) -> QueryRequest:
        """Resolve the names of a request; with ``repeated``, subjects may be named repeatedly."""
        names = self.subjects if subjects is None else subjects_of(subjects)
        query_indices = self._query_indices(query, len(names))
        if subjects is None:
            return QueryRequest(names, None, None, query_indices)
        subject_indices = self.subject_indices(names)
        order = None
        if (np.diff(subject_indices) <= 0).any():
            order = np.argsort(subject_indices, kind="stable")
            subject_indices = subject_indices[order]
            if not repeated and (np.diff(subject_indices) == 0).any():
                raise InvalidInput(f"{_find_repeated(names)!r} appears twice", "subjects")
        if order is not None and not isinstance(query_indices, int):
            query_indices = query_indices[order]
        return QueryRequest(names, subject_indices, order, query_indices)

    def subject_indices(self, subjects: Any) -> Indices:
        """Return the indices of some subjects, in their order."""
        names = subjects_of(subjects)
        indices = [self._subject_indices.get(name, -1) for name in names]
        if -1 in indices:
            row = indices.index(-1)
            reason = f"no subject {names[row]!r} in this panel"
            raise InvalidInput(reason, f"subjects: row {row + 1}")
        return np.array(indices, dtype=np.intp)

    def _named_index(self, query: Query) -> int:
        query_index = self._kernel.query_index(query)
        return query_index if query_index in self._ids else self._name(query.content_id, query)

    def _query_indices(self, query: Any, count: int) -> int | NDArray[np.intp]:
        """Return the number of a query, or of one for each row; -1 where there is none."""
        if isinstance(query, Query):
            return self._named_index(query)
        if isinstance(query, str):
            return read_at("query", self._query_index, query)
        with at("query"):
            try:
                column = column_values(query)
            except InvalidInput:
                raise InvalidInput("must be a query, the id of one, or a column of ids") from None
            if len(column) != count:
                raise InvalidInput(f"got {len(column):,} ids for {count:,} subjects")
        index_of, query_indices = encode_parsed_column(column, self._query_index, "query")
        return np.array(query_indices, dtype=np.intp)[index_of]

    def _query_index(self, key: Any) -> int:
        if key is None:
            return -1
        name = str(key) if isinstance(key, (str, int)) else ""
        if name not in self.queries:
            raise no_such_query(name, self.queries)
        return self._kernel.query_index(self.queries[name])

    def positions(self, request: QueryRequest, responses: Any) -> NDArray[Any]:
        """Return the positions of responses; both are in the order of rows."""
        column = column_values(responses)
        if len(column) != len(request):
            raise InvalidInput(f"got {len(column):,} for {len(request):,} subjects", "responses")
        unasked = np.flatnonzero(np.atleast_1d(request.query_indices) < 0)
        if len(unasked):
            row = int(request.rows(unasked).min())
            raise InvalidInput("has a response but no query", f"query: row {row + 1}")
        indices = np.empty(len(request), dtype=object)
        for query_index, entries in request.groups(np.arange(len(request))):
            rows, compiled = request.rows(entries), self._kernel.registry[query_index]
            codes, distinct_responses = encode_column(
                [column[row] for row in rows.tolist()], "response"
            )
            likelihood = compiled.query.on(self._kernel.domain)
            positions = []
            for code, response in enumerate(distinct_responses):
                row = int(rows[np.argmax(codes == code)])
                with at(f"row {row + 1}: response"):
                    positions.append(
                        response_position(likelihood, response, self._ids[query_index])
                    )
            indices[entries] = np.array(positions, dtype=object)[codes]
        return indices

    def answers(self, log: ResponseLog, refusals: Iterable[tuple[int, Indices]]) -> Answers:
        """Return all answers and refusals by their names."""
        rounds = [(index_of.compiled, *index_of.all_answers) for index_of in log.rounds]
        compiled_queries = list(dict.fromkeys(compiled for compiled, _, _ in rounds))
        first_codes, response_keys = {}, list[tuple[str, int]]()
        for compiled in compiled_queries:
            first_codes[compiled] = len(response_keys)
            key = self._ids[compiled.index]
            response_keys += [(key, position) for position in compiled.positions]
        subject_indices = np.concatenate(
            [np.zeros(0, dtype=np.intp), *(index_of for _, index_of, _ in rounds)]
        )
        codes = [first_codes[compiled] + rows for compiled, _, rows in rounds]
        order = np.argsort(subject_indices, kind="stable")
        answering, starts = np.unique(subject_indices[order], return_index=True)
        refused = frozenset(
            (self.subjects[subject_index], self._ids[query_index])
            for query_index, indices_refused in group_pairs(refusals).items()
            for subject_index in np.unique(np.concatenate(indices_refused)).tolist()
        )
        return Answers.of_codes(
            self._kernel.domain,
            self.queries,
            tuple(self.subjects[subject_index] for subject_index in answering.tolist()),
            response_keys,
            np.concatenate([np.zeros(0, dtype=np.intp), *codes])[order],
            np.append(starts, len(order)),
            filters=(self._kernel.filter,),
            unanswered={REFUSED: refused},
        )


def subjects_of(subjects: Any) -> tuple[Subject, ...]:
    """Read the names of subjects, which are texts or integers."""
    with at("subjects"):
        names: Sequence[Any] = subjects if isinstance(subjects, range) else column_values(subjects)
        if not set(map(type, names)) <= {str, int} or "" in names:
            raise InvalidInput("must be non-empty strings or integers")
        return tuple(names)


def _find_repeated(names: Sequence[Subject]) -> Subject:
    return Counter(names).most_common(1)[0][0]


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class QueryRequest:
    """Entries with a subject and a query each, in the order of subject indices."""

    #: The subjects as the caller gives them.
    names: tuple[Subject, ...]
    #: Their indices, ascending; None for all subjects.
    subject_indices: Indices | None
    #: For each entry its row as the caller gives it; None if that is the same order.
    order: Indices | None
    #: The index of the query for all of them, or for each; -1 for who is asked nothing.
    query_indices: int | NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, entries: Indices) -> Indices:
        """Return the rows of some entries."""
        return entries if self.order is None else self.order[entries]

    def at(self, entries: Indices) -> Indices:
        """Return the subject indices of some entries."""
        return entries if self.subject_indices is None else self.subject_indices[entries]

    def in_caller_order(self, column: NDArray[T]) -> NDArray[T]:
        """Put a column with an entry each into the order of the rows."""
        if self.order is None:
            return column
        result = np.empty_like(column)
        result[self.order] = column
        return result

    @property
    def distinct(self) -> list[int]:
        """The indices of the queries that are asked."""
        if isinstance(self.query_indices, int):
            return [self.query_indices]
        compiled_queries: list[int] = np.unique(
            self.query_indices[self.query_indices >= 0]
        ).tolist()
        return compiled_queries

    def groups(self, entries: Indices) -> Iterator[tuple[int, Indices]]:
        """Group some entries by their query."""
        if isinstance(self.query_indices, int):
            if len(entries):
                yield self.query_indices, entries
            return
        for query_index, rows in groups(self.query_indices[entries]):
            if query_index >= 0:
                yield query_index, entries[rows]

    def without_repeats(self) -> Iterator[tuple[Indices, QueryRequest]]:
        """Yield collections of entries in which no subject appears twice, one after the other."""
        if self.subject_indices is None or (np.diff(self.subject_indices) > 0).all():
            yield np.arange(len(self)), self
            return
        first_codes = np.searchsorted(self.subject_indices, self.subject_indices)
        repeat_of = np.arange(len(self)) - first_codes
        for index_of in range(int(repeat_of.max()) + 1):
            entries = np.flatnonzero(repeat_of == index_of)
            yield entries, self._subset(entries)

    def _subset(self, entries: Indices) -> QueryRequest:
        query_indices: Any = self.query_indices
        if not isinstance(query_indices, int):
            query_indices = query_indices[entries]
        return replace(
            self,
            names=tuple(self.names[row] for row in self.rows(entries).tolist()),
            subject_indices=self.at(entries),
            order=None,
            query_indices=query_indices,
        )
