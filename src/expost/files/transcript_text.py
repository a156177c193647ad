"""The text of a transcript file, which grows by an exchange at a time.

Encoded exchanges are cached, so an additional exchange costs only its own encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from expost.files.canonical import json_text

__all__ = ["TranscriptText"]


@dataclass(slots=True)
class _QueryText:
    """A query's text, as it stands in an exchange, and in which exchanges."""

    text: str
    indices: list[int] = field(default_factory=list)
    listed: bool = False


class TranscriptText:
    """A file with some fixed fields, a table of queries, and a list of exchanges.

    A query goes into the table as soon as that makes the file shorter. One that is asked once, or
    is shorter than its id, is easier to read where it is asked. So a text never becomes shorter by
    one more exchange, and what it looks like depends on nothing but its content.
    """

    def __init__(self, fixed: dict[str, Any]) -> None:
        self._head = json_text(fixed, indent=1).removesuffix("\n}")
        self._queries: dict[str, _QueryText] = {}
        self._responses: list[str] = []
        self._exchanges: list[str] = []

    def __len__(self) -> int:
        return len(self._exchanges)

    def add(self, key: str, query: Callable[[], Any], response: Any) -> None:
        """Add an exchange: the id of its query, the query's tree if it is new, the response."""
        entry = self._queries.get(key)
        if entry is None:
            entry = self._queries[key] = _QueryText(_indent_json(query(), 3))
        entry.indices.append(len(self))
        self._responses.append(_indent_json(response, 3))
        self._exchanges.append(self._exchange(f'"{key}"' if entry.listed else entry.text, -1))
        if not entry.listed and _is_shorter_listed(len(entry.text), len(entry.indices), len(key)):
            entry.listed = True
            for index in entry.indices:
                self._exchanges[index] = self._exchange(f'"{key}"', index)

    def _exchange(self, query: str, index: int) -> str:
        return f'\n  {{\n   "query": {query},\n   "response": {self._responses[index]}\n  }}'

    def text(self) -> str:
        """Return the text of the file."""
        # In the table a query is indented by one space less than in an exchange.
        listed = ",".join(
            f'\n  "{key}": {entry.text}'.replace("\n   ", "\n  ")
            for key, entry in self._queries.items()
            if entry.listed
        )
        table = f',\n "queries": {{{listed}\n }}' if listed else ""
        exchanges = f"{','.join(self._exchanges)}\n " if self._exchanges else ""
        return f'{self._head}{table},\n "exchanges": [{exchanges}]\n}}\n'


def _indent_json(tree: Any, depth: int) -> str:
    # No line break is inside of a text: there it is written as \n.
    return json_text(tree, indent=1).replace("\n", "\n" + " " * depth)


def _is_shorter_listed(query: int, times: int, key: int) -> bool:
    """Return whether listing a query and using its id is shorter than repeating it."""
    return query + (times + 1) * (key + 2) < times * query
