"""Queries about a part of a record: one attribute or a few, and at a step if one of them changes.

On a box, one coordinate that has categories.

Any query of a finite family can be asked so. It answers as it does on the finite set of the
combinations of these attributes, and knows nothing of the rest of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from expost.domains import Attributes, Box, Domain, FiniteSet, Part, Variable, some
from expost.errors import InvalidInput, at
from expost.files.reading import each, text, whole
from expost.numbers import Nats
from expost.queries.category import CategoryLikelihood
from expost.queries.lifted import lifted
from expost.queries.likelihood import BoxLikelihood, FiniteLikelihood, Likelihood
from expost.queries.query import Query, Unbiased
from expost.queries.words import listed
from expost.sampling import Pmf

__all__ = ["About", "PartLikelihood", "common_part", "read_about"]

# Reading a file of new questions about ever new combinations must not take much memory.
_WORK_OF_COMBINATIONS = 16


def read_about(names: Any, step: Any) -> tuple[tuple[str, ...], int | None]:
    """What a query is about, as a person writes it: attributes, and perhaps a step."""
    with at("about"):
        result = tuple(each(names, text))
        if not result:
            raise InvalidInput("must name at least one attribute")
        if len(set(result)) < len(result):
            raise InvalidInput("names an attribute twice")
    with at("at"):
        if isinstance(step, (list, tuple, dict, set, range)):
            raise InvalidInput("must be one step: a question is never about several of them")
        number = None if step is None else whole(step)
        if number is not None and number < 1:
            raise InvalidInput(f"steps are numbered from 1; got {number}")
    return result, number


@dataclass(frozen=True, eq=False, repr=False)
class About(Query):
    """A query about some attributes. :meth:`Query.about` makes one."""

    kind: ClassVar[str] = ""  # of each object, that of the family
    query: Query
    names: tuple[str, ...]
    step: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.query, About):
            raise InvalidInput(f"is already about {some(self.query.names)}", "about")
        names, step = read_about(self.names, self.step)
        for name, value in (
            ("names", names),
            ("step", step),
            ("kind", self.query.kind),
            ("epsilon", self.query.epsilon),
            ("delta", self.query.delta),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        when = "" if self.step is None else f", at={self.step}"
        return f"{self.query!r}.about({', '.join(map(repr, self.names))}{when})"

    @property
    def approximate(self) -> bool:
        return self.query.approximate

    @property
    def cap(self) -> Fraction | None:
        return self.query.cap

    @property
    def asks(self) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return f"{self.query.asks}, about {listed(self.names)}{when}"

    def asks_on(self, domain: Domain) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return f"{self.query.asks_on(self.seen(domain))}, about {listed(self.names)}{when}"

    @property
    def steepness(self) -> Fraction | None:
        return self.query.steepness

    def tree(self) -> dict[str, Any]:
        tree = {**self.query.tree(), "about": list(self.names)}
        return tree if self.step is None else {**tree, "at": float(self.step)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Query:
        raise InvalidInput("a query about attributes is read with its family")

    def with_epsilon(self, epsilon: Fraction) -> Query | None:
        other = self.query.with_epsilon(epsilon)
        return None if other is None else replace(self, query=other)

    def seen(self, domain: Domain) -> Part:
        """What it sees of a value, as a finite set."""
        if isinstance(domain, FiniteSet) and not isinstance(domain, Part):
            raise InvalidInput(
                "a finite set has no attributes; ask about its values as they are", "about"
            )
        with at("about"):
            return domain.part(self.names)

    def work(self, domain: Domain) -> int:
        part = self.seen(domain)
        return self.query.work(part) + len(part) // _WORK_OF_COMBINATIONS

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        part = self.seen(domain)
        assert isinstance(domain, Part), "no other set has parts"
        likelihood = self.query.on(part)
        return likelihood if part is domain else lifted(likelihood, domain)

    def on_box(self, domain: Box) -> BoxLikelihood:
        part = self.seen(domain)
        if self.step is not None:
            raise InvalidInput(
                "the coordinates of a box do not change, so there are no steps", "at"
            )
        assert domain.names is not None, "a part has a name"
        columns = domain.places[domain.names.index(self.names[0])]
        return CategoryLikelihood(domain, columns, self.query.on(part))

    def on_attributes(self, domain: Attributes) -> PartLikelihood:
        part = self.seen(domain)
        variables = domain.variables(self.names, self.step)
        return PartLikelihood(domain, variables, self.query.on(part))

    def meaning(self, domain: Domain) -> Unbiased:
        return self.query.meaning(self.seen(domain))

    def charge(self, domain: Domain) -> Nats:
        return self.query.charge(self.seen(domain))

    def ceiling(self, domain: Domain) -> Nats:
        return self.query.ceiling(self.seen(domain))

    def cumulant(self, domain: Domain, exponent: Fraction) -> float:
        return self.query.cumulant(self.seen(domain), exponent)


def common_part(queries: Sequence[Query], domain: Attributes, why: str) -> Part:
    """The part of a record that all of some queries are about, at one step; or an error."""
    seen = {query.on(domain).variables: query for query in queries}
    if len(seen) != 1:
        told = [listed([n if s is None else f"{n} at {s}" for n, s in each]) for each in seen]
        found = f"these are about {'; '.join(told[:4])}" if told else "there are none"
        raise InvalidInput(f"{why}: ask about one part of a record, and {found}")
    (query,) = seen.values()
    assert isinstance(query, About), "records are asked about some of their attributes"
    return query.seen(domain)


class PartLikelihood(Likelihood[Sequence[int]]):
    """The likelihood of a query that sees a part of a record: that on the part."""

    def __init__(
        self, domain: Attributes, variables: tuple[Variable, ...], on_part: FiniteLikelihood
    ) -> None:
        self.domain = domain
        self.variables = variables
        self.on_part = on_part
        self.responses = on_part.responses
        self._places = domain.places([name for name, _ in variables])

    @property
    def part(self) -> Part:
        """The combinations that it sees."""
        part = self.on_part.domain
        assert isinstance(part, Part)
        return part

    def position(self, response: Any) -> int | None:
        return self.on_part.position(response)

    def pmf(self, place: Sequence[int]) -> Pmf:
        seen = self.part.place([place[each] for each in self._places])
        assert seen is not None, "every place of a record is there"
        return self.on_part.pmf(seen)

    def least_surprisal(self, position: int) -> float:
        return self.on_part.least_surprisal(position)

    @property
    def footprint(self) -> int:
        return self.on_part.footprint

    def delta(self, ratio: Fraction) -> Fraction:
        return self.on_part.delta(ratio)
