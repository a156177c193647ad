"""Which answers are about a part of a value: some attributes of a record, a category of a box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet, Part, some
from expost.errors import InvalidInput, at
from expost.queries import About, Query
from expost.queries.about import read_about

__all__ = ["part_of"]

Given = Iterable[tuple[str, int]]
"""Responses: the id of a query, and the position of the response."""


def part_of(
    domain: Domain,
    queries: Mapping[str, Query],
    given: Given,
    about: Any,
    step: Any,
    *,
    planned: bool,
) -> tuple[Part, set[str]]:
    """What the answers about some attributes are about, and which queries are."""
    names, step = read_about(about, step)
    part: Part
    match domain:
        case Attributes():
            part, touched = _touched_on_attributes(domain, names, step, queries, given)
        case Box():
            part, touched = _touched_on_box(domain, names, step, queries, given)
        case FiniteSet():
            raise InvalidInput("only answers on attributes are about some of them", "about")
        case _:
            assert_never(domain)
    for key, more in touched.items():
        if more and not planned:
            raise InvalidInput(
                f"is also about {more}say planned=True (--planned) to leave it out if who was "
                "asked what did not depend on responses",
                f"queries.{key}",
            )
    return part, {key for key, more in touched.items() if not more}


_Touched = tuple[Part, dict[str, str]]
"""The part, and for each query that is about some of it what else the query is about."""


def _touched_on_attributes(
    domain: Attributes,
    names: tuple[str, ...],
    step: int | None,
    queries: Mapping[str, Query],
    given: Given,
) -> _Touched:
    with at("about"):
        part = domain.part(names)
    wanted = set(domain.variables(names, step))
    touched = {}
    for key in dict.fromkeys(key for key, _ in given):
        variables = set(queries[key].on(domain).variables)
        if variables & wanted:
            more = [name for name, _ in sorted(variables - wanted)]
            touched[key] = f"{some(more)}; name that too, or " if more else ""
    return part, touched


def _touched_on_box(
    domain: Box,
    names: tuple[str, ...],
    step: int | None,
    queries: Mapping[str, Query],
    given: Given,
) -> _Touched:
    with at("about"):
        part = domain.part(names)
    if step is not None:
        raise InvalidInput("the coordinates of a box do not change: there are no steps", "at")
    assert domain.names is not None, "a part has a name"
    columns = domain.places[domain.names.index(names[0])]
    touched = {}
    for key, position in given:
        query = queries[key]
        if isinstance(query, About):
            if query.names == names:
                touched[key] = ""
        elif any(query.on(domain).term(position).weights[j] for j in columns):
            touched[key] = f"{names[0]}, as a part of a score; "
    return part, touched
