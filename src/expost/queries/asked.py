"""The queries of a transcript file: written where they are asked, or listed once by their ids."""

from __future__ import annotations

from typing import Any

from expost.errors import InvalidInput, at
from expost.files.reading import AsWritten, NumberText, members
from expost.queries import query_from_json
from expost.queries.query import Query

__all__ = ["Asked"]

_ID = 64  # characters of a content id


class Asked:
    """The queries of a file: those of its table, by their ids, and those in exchanges.

    A query that is written several times is read once.
    """

    def __init__(self, table: Any) -> None:
        self._known: AsWritten[Query] = AsWritten()
        self._listed: dict[str, Query] = {}
        with at("queries"):
            for name, entry in members(table, optional=None).items():
                with at(name[:_ID]):
                    query = self._known.get(entry, query_from_json)
                    if query.content_id != name:
                        raise InvalidInput(
                            f"is not the id of its query, which is {query.content_id}"
                        )
                    self._listed[name] = query
        self._unused = set(self._listed)

    def query(self, value: Any) -> Query:
        """The query of an exchange, which is written out or given by its id."""
        if not isinstance(value, str) or isinstance(value, NumberText):
            return self._known.get(value, query_from_json)
        if value not in self._listed:
            raise InvalidInput(f'no query in "queries" has the id {value[:_ID]}')
        self._unused.discard(value)
        return self._listed[value]

    def check_all_used(self) -> None:
        """Refuse a table with queries that were not asked."""
        for name in sorted(self._unused):
            raise InvalidInput("no exchange names this query", f"queries.{name}")
