"""What a log is audited against: a domain, the queries on it, and a filter."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from expost.answers import queries_from_json, queries_to_json
from expost.audits.filter_file import filter_file_from_json, filter_file_to_json
from expost.domains import Domain
from expost.errors import at, expect
from expost.filters import Filter
from expost.queries import Query
from expost.solver import Effort

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A domain, the queries on it by their ids, and the filter that was promised."""

    domain: Domain
    queries: Mapping[str, Query]
    guard: Filter
    effort: Effort

    def __post_init__(self) -> None:
        with at("filter"):
            expect(self.guard, Filter, "a filter, such as BayesianFilter(epsilon=1)")

    def texts(self) -> tuple[str, str, float, int | None]:
        """All of it as plain texts and numbers, which travel to other machines."""
        queries = queries_to_json(self.domain, self.queries)
        return queries, filter_file_to_json(self.guard), self.effort.gap, self.effort.nodes

    @classmethod
    def from_texts(cls, queries: str, filter_document: str, gap: float, nodes: int | None) -> Plan:
        """What :meth:`texts` wrote."""
        domain, by_id = queries_from_json(queries)
        return cls(domain, by_id, filter_file_from_json(filter_document), Effort(gap, nodes))

    @property
    def digest(self) -> str:
        """Equal only for equal plans."""
        return hashlib.sha256(repr(self.texts()).encode()).hexdigest()
