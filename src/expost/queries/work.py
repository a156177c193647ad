"""How much work it is to read a file: the time that its queries take to set up, and its limit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.queries.query import Query

__all__ = ["LATELY", "Work", "most_work", "too_much"]

LATELY = 1000
"""So many exchanges later a query is still remembered, and takes no more."""

_PER_MEGABYTE = 1 << 22


class Work:
    """What queries take to set up that are asked one after another, in microseconds, about."""

    def __init__(self, domain: Domain, *, closely: bool = False) -> None:
        self._domain = domain
        self.closely = closely
        """Whether queries are told apart by content, not by being one object, which is quick."""
        self._latest: dict[Hashable, int] = {}
        self._count = 0
        self.total = 0

    @classmethod
    def by_content(cls, domain: Domain, queries: Iterable[Query]) -> Work:
        """The work of some queries, which are equal if their content is."""
        work = cls(domain, closely=True)
        for query in queries:
            work.plus(query)
        return work

    def plus(self, query: Query) -> int:
        """The total after one more query; what was asked lately takes no more."""
        self._count += 1
        more = query.work(self._domain)
        if more:
            key = query.content_id if self.closely else id(query)
            if self._count - self._latest.get(key, -LATELY) > LATELY:
                self.total += more
            self._latest[key] = self._count
        return self.total


def most_work(length: int) -> int:
    """What a file of this length may take."""
    return int(_PER_MEGABYTE * max(1.0, length / 2**20))


def too_much(query: Query, work: int, most: int) -> InvalidInput:
    """What to raise at the query with which it is more than that."""
    return InvalidInput(
        f"its {query.kind} queries take {work:,} steps to set up, and at most {most:,} are taken "
        "for a file of this size; queries that were asked before take no more"
    )
