"""Audit plans: a domain, the queries on it, and the filter that was promised, which has a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from expost._types import PathLike
from expost.answers import queries_from_json, queries_to_json
from expost.domains import Domain
from expost.errors import at, expect, read_at
from expost.files.canonical import json_text, readable_tree
from expost.files.durable import save
from expost.files.kinds import FILTER_FILE, explain_wrong_kind, read_replaceable
from expost.files.reading import members, parse
from expost.files.regular import read_file
from expost.filters import FILTERS, Filter, filter_from_json
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import VERSION, check_version

__all__ = [
    "Plan",
    "filter_file_from_json",
    "filter_file_to_json",
    "filter_to_json",
    "load_filter",
    "save_filter",
]


#: What the policy of a ledger has next to its version and its filter.
_OF_POLICY = ("study", "nonce", "domain")


@dataclass(frozen=True, slots=True)
class Plan:
    """A domain, the queries on it by their ids, and the filter that was promised."""

    domain: Domain
    queries: Mapping[str, Query]
    filter: Filter
    effort: Effort

    def __post_init__(self) -> None:
        expect(self.filter, Filter, "a filter, such as BayesianFilter(epsilon=1)", "filter")

    def texts(self) -> tuple[str, str, float, int | None]:
        """Write the plan as plain texts and numbers, which travel to other machines."""
        queries = queries_to_json(self.domain, self.queries)
        return queries, filter_file_to_json(self.filter), self.effort.gap, self.effort.nodes

    @classmethod
    def from_texts(cls, queries: str, filter_document: str, gap: float, nodes: int | None) -> Plan:
        """Read what :meth:`texts` wrote."""
        domain, by_id = queries_from_json(queries)
        return cls(domain, by_id, filter_file_from_json(filter_document), Effort(gap, nodes))

    @property
    def digest(self) -> str:
        """Equal only for equal plans."""
        return hashlib.sha256(repr(self.texts()).encode()).hexdigest()


def filter_file_from_json(document: str) -> Filter:
    """Read a filter file strictly: a versioned document, a bare filter, or a ledger's policy.

    >>> filter_file_from_json('{"version": 1, "filter": {"kind": "bayesian", "epsilon": "1"}}')
    BayesianFilter(epsilon=1)
    >>> filter_file_from_json('{"kind": "bayesian", "epsilon": "1"}')
    BayesianFilter(epsilon=1)
    """
    with explain_wrong_kind(FILTER_FILE, document):
        tree = parse(document)
    if isinstance(tree, dict) and "version" not in tree and tree.get("kind") in FILTERS:
        return filter_from_json(tree)
    with explain_wrong_kind(FILTER_FILE, document):
        is_policy = isinstance(tree, dict) and tree.keys() >= set(_OF_POLICY)
        optional = _OF_POLICY if is_policy else ()
        fields = members(tree, required=("version", "filter"), optional=optional)
    check_version(fields["version"])
    return read_at("filter", filter_from_json, fields["filter"])


def filter_file_to_json(filter_: Filter) -> str:
    """Return the versioned document of a filter."""
    return json_text({"version": VERSION, "filter": filter_to_json(filter_)}, indent=1) + "\n"


def filter_to_json(filter_: Filter) -> Any:
    """Return the filter as a tree, as in a transcript file."""
    return readable_tree({"kind": filter_.kind, **filter_.tree()})


def load_filter(path: PathLike) -> Filter:
    """Read a filter file.

    It has ``{"version": 1, "filter": {…}}``, with the filter as in a transcript, or that filter
    alone; or it is the policy of a ledger.
    """
    return read_file(path, filter_file_from_json)


def save_filter(filter_: Filter, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the file that :func:`load_filter` reads, durably.

    Unless ``overwrite``, an existing file is replaced only if it is a filter file.
    """
    text = filter_file_to_json(filter_)
    with at(os.fspath(path), ": "):
        if not overwrite:
            read_replaceable(path, FILTER_FILE)
        save(path, lambda: text)
