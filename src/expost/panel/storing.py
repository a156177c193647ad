"""A panel in a file: its policy, and what everybody answered, in order.

Nothing that can be worked out is stored: losses are those of the responses, also after loading.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Ints
from expost.answers import Subject
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at
from expost.files.canonical import json_text, readable
from expost.files.reading import NumberText, members, parse, text
from expost.files.tables import parquet_bytes, read_parquet
from expost.filters import Filter, filter_from_json
from expost.queries import Query, query_from_json
from expost.transcript import VERSION, check_version

__all__ = ["Events", "Policy", "read_panel", "write_panel"]


_KEY = "expost"
_COLUMNS = ("subject", "closed", "order", "query", "response")
_INTRODUCED, _REFUSED, _NONE = 0, -1, -1


@dataclass(frozen=True, slots=True)
class Policy:
    """What was fixed before the first response, and the queries that are known by an id."""

    domain: Domain
    filter: Filter
    queries: Mapping[str, Query]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """What happened. A row for each response: whose, its number in the transcript, and so on."""

    subjects: tuple[Subject, ...]
    closed: NDArray[np.bool_]
    places: Ints
    orders: Ints
    queries: Ints
    """By their places among the ids."""
    responses: NDArray[Any]
    """Their positions among those of the query."""
    refused: tuple[Ints, Ints]
    """Whom, and which query."""


def write_panel(policy: Policy, events: Events) -> bytes:
    """The bytes of the file: a row for every subject, then its responses, then its refusals."""
    count, (whom, which) = len(events.subjects), events.refused
    places = np.concatenate([np.arange(count), events.places, whom])
    order = np.argsort(places, kind="stable")
    introduced, refused = np.full(count, _NONE), np.full(len(whom), _NONE)
    own = places[order]
    numbers = [np.full(count, _INTRODUCED), events.orders, np.full(len(whom), _REFUSED)]
    names = [events.subjects[place] for place in own.tolist()]
    # Strings, and integers that are written as strings, are told apart by their JSON.
    kinds = set(map(type, names))
    as_json = len(kinds) > 1 or (kinds == {int} and not _fits(names))
    columns = {
        "subject": list(map(json_text, names)) if as_json else _words(names),
        "closed": events.closed[own],
        "order": np.concatenate(numbers)[order],
        "query": np.concatenate([introduced, events.queries, which])[order],
        "response": _words(np.concatenate([introduced, events.responses, refused])[order].tolist()),
    }
    tree = {
        "version": VERSION,
        "domain": policy.domain.tree(),
        "filter": {"kind": policy.filter.kind, **policy.filter.tree()},
        "queries": {key: {"kind": q.kind, **q.tree()} for key, q in policy.queries.items()},
        "subjects": "json" if as_json else "plain",
    }
    said = json_text(readable(tree))
    return parquet_bytes(columns, _KEY, f"{_digest(said, columns)} {said}")


def read_panel(path: Path) -> tuple[Policy, Events]:
    """What a file says, strictly."""
    frame, found = read_parquet(path, _KEY)
    if tuple(frame.columns) != _COLUMNS or frame.null_count().sum_horizontal().item():
        raise InvalidInput(f"must have the columns {', '.join(_COLUMNS)}, and no gaps")
    columns = {name: _column(frame[name], name) for name in _COLUMNS}
    digest, _, said = found.partition(" ")
    if digest != _digest(said, columns):
        raise InvalidInput("is damaged: its digest is not that of what it says")
    fields = members(parse(said), required=("version", "domain", "filter", "queries", "subjects"))
    check_version(fields["version"])
    with at("domain"):
        domain = domain_from_json(fields["domain"])
    with at("filter"):
        guard = filter_from_json(fields["filter"])
    queries = {}
    with at("queries"):
        for key, value in members(fields["queries"], optional=None).items():
            with at(key):
                queries[key] = query_from_json(value)
    names: list[Any] = list(columns["subject"])
    if text(fields["subjects"]) == "json":
        names = [int(name) if isinstance(name, NumberText) else name for name in map(parse, names)]
    return Policy(domain, guard, queries), _events(columns, names)


def _events(columns: Mapping[str, Any], names: list[Any]) -> Events:
    order, query = columns["order"], columns["query"]
    responses = np.array(columns["response"], dtype=object)
    first = order == _INTRODUCED
    places = np.cumsum(first) - 1
    answered, refused = order > 0, order == _REFUSED
    subjects = [name for name, own in zip(names, first.tolist(), strict=True) if own]
    return Events(
        tuple(int(name) if isinstance(name, np.integer) else name for name in subjects),
        np.asarray(columns["closed"][first]),
        places[answered],
        order[answered],
        query[answered],
        np.array([int(position) for position in responses[answered].tolist()], dtype=object),
        (places[refused], query[refused]),
    )


def _words(column: list[Any]) -> Any:
    """Integers as an array of words if they fit, else as texts; texts as they are."""
    if column and isinstance(column[0], str):
        return column
    return np.array(column, dtype=np.int64) if _fits(column) else list(map(str, column))


def _fits(integers: Sequence[int]) -> bool:
    return all(-(2**63) <= entry < 2**63 for entry in integers)


def _column(series: Any, name: str) -> Any:
    if name in ("closed", "order", "query") or series.dtype.is_integer():
        return series.to_numpy()
    return series.to_list()


def _digest(said: str, columns: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(said.encode())
    for name, column in columns.items():
        digest.update(name.encode())
        texts = isinstance(column, list)
        digest.update(json_text(column).encode() if texts else np.ascontiguousarray(column).data)
    return digest.hexdigest()
