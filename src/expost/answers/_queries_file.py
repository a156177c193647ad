"""The file of queries: a domain, and what was asked on it, by ids."""

from __future__ import annotations

from collections.abc import Mapping

from expost.answers._answers import likelihoods_of
from expost.domains import Domain, domain_from_json
from expost.errors import at, expect, read_at
from expost.files.canonical import json_text, readable_tree
from expost.files.kinds import QUERIES, explain_wrong_kind
from expost.files.reading import members, parse
from expost.queries import Query, query_from_json
from expost.transcript import VERSION, check_version

__all__ = ["queries_from_json", "queries_to_json"]


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
    domain = read_at("domain", domain_from_json, fields["domain"])
    queries = {}
    with at("queries"):
        for key, value in members(fields["queries"], optional=None).items():
            queries[key] = read_at(key, query_from_json, value)
    likelihoods_of(domain, queries)
    return domain, queries


def queries_to_json(domain: Domain, queries: Mapping[str, Query]) -> str:
    """Return the text of such a file; every query must work on the domain."""
    expect(domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
    likelihoods_of(domain, queries)
    trees = {key: query.labeled_tree() for key, query in queries.items()}
    document = {"version": VERSION, "domain": domain.tree(), "queries": trees}
    return json_text(readable_tree(document), indent=1) + "\n"
