"""A query from a file of its own, or one of a file of queries: ``queries.json#smokes``."""

from __future__ import annotations

from pathlib import Path

from expost.answers import no_such_query, queries_from_json
from expost.domains import Domain
from expost.errors import InvalidInput, at
from expost.files.kinds import QUERY, needed
from expost.files.reading import parse
from expost.files.regular import read_text
from expost.queries import Query

__all__ = ["read_query"]


def read_query(path: Path, domain: Domain) -> Query:
    """The query that a file holds, or that one of a file of queries has as its id."""
    file, key = path, None
    if not path.exists() and "#" in path.name:
        name, _, key = path.name.partition("#")
        file = path.with_name(name)
    with at(str(file), ": "):
        text = read_text(file)
        with needed(QUERY, text):
            tree = parse(text)
        if not (isinstance(tree, dict) and "queries" in tree):
            if key is not None:
                raise InvalidInput(f"is no file of queries, so there is no {key!r} in it")
            query = Query.from_json(text)
            query.on(domain)
            return query
        own, queries = queries_from_json(text)
        if key is None:
            known = ", ".join(f"{file}#{each}" for each in list(queries)[:3])
            raise InvalidInput(f"is a file of queries; name one of them, such as {known}")
        if key not in queries:
            raise no_such_query(key, queries)
        if own != domain:
            raise InvalidInput("is not that of the subject", "domain")
        return queries[key]
