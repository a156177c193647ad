"""The file of queries: a domain, and what was asked on it, by ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expost.answers._answers import likelihoods_of
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import json_text, readable_tree
from expost.files.kinds import QUERIES, explain_wrong_kind
from expost.files.reading import members, parse
from expost.queries import Query, query_from_json
from expost.transcript import VERSION, check_version

__all__ = ["UNKNOWN", "queries_from_json", "queries_to_json"]

#: Stands in a file of queries for what a table does not show.
UNKNOWN = "?"


def queries_from_json(document: str) -> tuple[Domain, dict[str, Query]]:
    """Read a file of queries: a domain, and the queries on it by their ids. Unknown fields fail.

    >>> domain, queries = queries_from_json(
    ...     '{"version": 1, "domain": {"values": ["no", "yes"]},'
    ...     ' "queries": {"smokes": {"kind": "randomized_response", "epsilon": "1"}}}'
    ... )
    >>> domain, list(queries)
    (FiniteSet(2 values: 'no', 'yes'), ['smokes'])
    """
    with explain_wrong_kind(QUERIES, document):
        fields = members(parse(document), required=("version", "domain", "queries"))
    check_version(fields["version"])
    with at("queries"):
        trees = members(fields["queries"], optional=None)
        _check_queries_complete(trees)
    _check_values_complete(fields["domain"])
    domain = read_at("domain", domain_from_json, fields["domain"])
    queries = {}
    with at("queries"):
        for key, value in trees.items():
            queries[key] = read_at(key, query_from_json, value)
    likelihoods_of(domain, queries)
    return domain, queries


def _check_queries_complete(trees: Mapping[str, Any]) -> None:
    """Refuse queries that ``expost import`` wrote and nobody has completed."""
    for key, tree in trees.items():
        for name in ("kind", "variant", "epsilon"):
            if isinstance(tree, Mapping) and tree.get(name) == UNKNOWN:
                reason = f"got {UNKNOWN!r}; complete the query of {key!r} in this file"
                raise InvalidInput(reason, f"{key}.{name}")


def _check_values_complete(domain: Any) -> None:
    """Refuse values that ``expost import`` counted and nobody has named."""
    attributes = domain.get("attributes", domain) if isinstance(domain, Mapping) else None
    for key, values in attributes.items() if isinstance(attributes, Mapping) else ():
        if isinstance(values, list) and values.count(UNKNOWN) > 1:
            path = "domain" if attributes is domain else "domain.attributes"
            reason = f"got {UNKNOWN!r} as values; name them in the order of the bits"
            raise InvalidInput(reason, f"{path}.{key}")


def queries_to_json(domain: Domain, queries: Mapping[str, Query]) -> str:
    """Return the text of such a file; every query must work on the domain."""
    expect(domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
    likelihoods_of(domain, queries)
    trees = {key: query.labeled_tree() for key, query in queries.items()}
    document = {"version": VERSION, "domain": domain.tree(), "queries": trees}
    return json_text(readable_tree(document), indent=1) + "\n"
