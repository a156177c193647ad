"""Which answers are about a part of a value: some attributes of a record, a category of a box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
    part, touched = domain.asked(_Touched(names, step, queries, list(given)))
    for key, more in touched.items():
        if more and not planned:
            raise InvalidInput(
                f"is also about {more}say planned=True (--planned) to leave it out if who was "
                "asked what did not depend on responses",
                f"queries.{key}",
            )
    return part, {key for key, more in touched.items() if not more}


@dataclass(frozen=True, slots=True)
class _Touched:
    """The part, and for each query that tells something about it what it tells besides."""

    names: tuple[str, ...]
    step: int | None
    queries: Mapping[str, Query]
    given: list[tuple[str, int]]

    def on_attributes(self, domain: Attributes) -> tuple[Part, dict[str, str]]:
        with at("about"):
            part = domain.part(self.names)
        wanted = set(domain.variables(self.names, self.step))
        touched = {}
        for key in dict.fromkeys(key for key, _ in self.given):
            variables = set(self.queries[key].on(domain).variables)
            if variables & wanted:
                more = [name for name, _ in sorted(variables - wanted)]
                touched[key] = f"{some(more)}; name that too, or " if more else ""
        return part, touched

    def on_box(self, domain: Box) -> tuple[Part, dict[str, str]]:
        with at("about"):
            part = domain.part(self.names)
        if self.step is not None:
            raise InvalidInput("the coordinates of a box do not change: there are no steps", "at")
        assert domain.names is not None, "a part has a name"
        columns = domain.places[domain.names.index(self.names[0])]
        touched = {}
        for key, position in self.given:
            query = self.queries[key]
            if isinstance(query, About):
                if query.names == self.names:
                    touched[key] = ""
            elif any(query.on(domain).term(position).weights[j] for j in columns):
                touched[key] = f"{self.names[0]}, as a part of a score; "
        return part, touched

    def on_set(self, domain: FiniteSet) -> Any:
        raise InvalidInput("only answers on attributes are about some of them", "about")
