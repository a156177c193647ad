"""The queries of a transcript file, by content id or in place, and the work to set them up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput, at
from expost.files.reading import NumberText, ParseCache, members
from expost.queries import query_from_json
from expost.queries._query import Query

__all__ = ["REMEMBERED_EXCHANGES", "QueryTable", "SetupWork", "work_error", "work_limit"]

_ID = 64  # characters of a content id


class QueryTable:
    """The queries of a file, from its table by their ids, and from its exchanges.

    A query that is written several times is read once.
    """

    def __init__(self, table: Any) -> None:
        self._parsed: ParseCache[Query] = ParseCache()
        self._listed: dict[str, Query] = {}
        with at("queries"):
            for name, entry in members(table, optional=None).items():
                with at(name[:_ID]):
                    query = self._parsed.get(entry, query_from_json)
                    if query.content_id != name:
                        raise InvalidInput(f"differs from the id of its query, {query.content_id}")
                    self._listed[name] = query
        self._unused = set(self._listed)

    def query(self, value: Any) -> Query:
        """Return the query of an exchange, which is written out or referred to by its id."""
        if not isinstance(value, str) or isinstance(value, NumberText):
            return self._parsed.get(value, query_from_json)
        if value not in self._listed:
            raise InvalidInput(f'no query in "queries" has the id {value[:_ID]}')
        self._unused.discard(value)
        return self._listed[value]

    def check_all_used(self) -> None:
        """Refuse a table with queries that no exchange refers to."""
        for name in sorted(self._unused):
            raise InvalidInput("no exchange names this query", f"queries.{name}")


#: The number of exchanges after which a repeated query still takes no more work.
REMEMBERED_EXCHANGES = 1000

_PER_MEGABYTE = 1 << 22


class SetupWork:
    """The approximate time to set up the queries of a transcript, in microseconds."""

    def __init__(self, domain: Domain, *, closely: bool = False) -> None:
        self._domain = domain
        #: Whether queries are compared by content, instead of by identity, which is quick.
        self.closely = closely
        self._latest: dict[Hashable, int] = {}
        self._count = 0
        self.total = 0

    @classmethod
    def by_content(cls, domain: Domain, queries: Iterable[Query]) -> SetupWork:
        """Return the work of some queries, compared by content."""
        work = cls(domain, closely=True)
        for query in queries:
            work.plus(query)
        return work

    def plus(self, query: Query) -> int:
        """Add a query and return the total; one that was asked recently takes no more work."""
        self._count += 1
        work = query.work(self._domain)
        if work:
            key = query.content_id if self.closely else id(query)
            if self._count - self._latest.get(key, -REMEMBERED_EXCHANGES) > REMEMBERED_EXCHANGES:
                self.total += work
            self._latest[key] = self._count
        return self.total


def work_limit(length: int) -> int:
    """Return how much work a file of this length may take."""
    return int(_PER_MEGABYTE * max(1.0, length / 2**20))


def work_error(query: Query, work: int, most: int) -> InvalidInput:
    """Return the error for the query that exceeds the limit."""
    return InvalidInput(
        f"got {query.kind} queries that take {work:,} steps to set up; expected at most "
        f"{most:,} for a file of this size (repeated queries count once)"
    )
