"""Queries about a part of a value: some attributes of a record, or a category of a point in a box.

Any finite query can be asked about a part. It responds as on the finite set of the combinations of
these attributes, and sees nothing else of the value. Where attributes change, it names a step.

In the columns of a coordinate with categories, exactly one of which is 1, the logarithm of a weight
is Σ_j x_j·log w(j): affine, and never positive if the largest logarithm is subtracted. So it is a
tent, -|z| = z, of which only one side is used. Proof: docs/theory/score_terms.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
from expost.domains import Attributes, Box, Domain, FiniteSet, Part, Point, Variable, join_names
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import read_integer, read_list, text
from expost.numbers import UNIT, Nats, up
from expost.queries._likelihood import (
    BoxLikelihood,
    BySufficientTerms,
    FiniteLikelihood,
    LazyResponses,
    Likelihood,
    Pairwise,
)
from expost.queries._query import Query, UnbiasedScore
from expost.sampling import Pmf
from expost.terms import Link, Powers, ScoreTerm, Term, Weights

__all__ = [
    "About",
    "CategoryLikelihood",
    "LiftedLikelihood",
    "PartLikelihood",
    "common_part",
    "lift_to_classes",
    "lift_to_part",
    "read_about",
]

# A file of many queries about different combinations must not take much memory.
_WORK_OF_COMBINATIONS = 16


def read_about(names: Any, step: Any) -> tuple[tuple[str, ...], int | None]:
    """Read the attributes that a query is about, and the step if there is one."""
    with at("about"):
        result = tuple(read_list(names, text))
        if not result:
            raise InvalidInput("must name at least one attribute")
        if len(set(result)) < len(result):
            raise InvalidInput("an attribute appears twice")
    with at("at"):
        if isinstance(step, (list, tuple, dict, set, range)):
            raise InvalidInput("must be one step: a question is never about several of them")
        checked_step = None if step is None else read_integer(step)
        if checked_step is not None and checked_step < 1:
            raise InvalidInput(f"steps are numbered from 1; got {checked_step}")
    return result, checked_step


@dataclass(frozen=True, eq=False, repr=False)
class About(Query):
    """A query about some attributes. :meth:`Query.about` makes one."""

    kind: ClassVar[str] = ""  # set per object, to that of the family
    query: Query
    names: tuple[str, ...]
    step: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.query, About):
            raise InvalidInput(f"is already about {join_names(self.query.names)}", "about")
        names, step = read_about(self.names, self.step)
        for name, value in (
            ("names", names),
            ("step", step),
            ("kind", self.query.kind),
            ("epsilon", self.query.epsilon),
            ("delta", self.query.delta),
            ("cap", self.query.cap),
            ("question", self.query.question),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        when = "" if self.step is None else f", at={self.step}"
        return f"{self.query!r}.about({', '.join(map(repr, self.names))}{when})"

    @property
    def approximate(self) -> bool:
        return self.query.approximate

    @property
    def asks(self) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return f"{self.query.asks}, about {format_list(self.names)}{when}"

    def asks_on(self, domain: Domain) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return f"{self.query.asks_on(self.part_of(domain))}, about {format_list(self.names)}{when}"

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

    def part_of(self, domain: Domain) -> Part:
        """Return the part of the domain that the query sees, as a finite set."""
        if isinstance(domain, FiniteSet) and not isinstance(domain, Part):
            raise InvalidInput(
                "a finite set has no attributes; ask about its values as they are", "about"
            )
        return read_at("about", domain.part, self.names)

    def work(self, domain: Domain) -> int:
        part = self.part_of(domain)
        return self.query.work(part) + len(part) // _WORK_OF_COMBINATIONS

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        part = self.part_of(domain)
        assert isinstance(domain, Part), "no other set has parts"
        likelihood = self.query.on(part)
        return likelihood if part is domain else lift_to_part(likelihood, domain)

    def on_box(self, domain: Box) -> BoxLikelihood:
        part = self.part_of(domain)
        if self.step is not None:
            raise InvalidInput("the coordinates of a box do not change; leave it out", "at")
        assert domain.names is not None, "a part has a name"
        columns = domain.column_slices[domain.names.index(self.names[0])]
        return CategoryLikelihood(domain, columns, self.query.on(part))

    def on_attributes(self, domain: Attributes) -> PartLikelihood:
        part = self.part_of(domain)
        return PartLikelihood(domain, domain.variables(self.names, self.step), self.query.on(part))

    def meaning(self, domain: Domain) -> UnbiasedScore:
        return self.query.meaning(self.part_of(domain))

    def charge(self, domain: Domain) -> Nats:
        return self.query.charge(self.part_of(domain))

    def ceiling(self, domain: Domain) -> Nats:
        return self.query.ceiling(self.part_of(domain))

    def cumulant(self, domain: Domain, exponent: Fraction) -> float:
        return self.query.cumulant(self.part_of(domain), exponent)


def common_part(queries: Sequence[Query], domain: Attributes, why: str) -> Part:
    """Return the part of a record that all queries are about, at one step; or raise an error."""
    queries_by_variables = {query.on(domain).variables: query for query in queries}
    if len(queries_by_variables) != 1:
        descriptions = [
            format_list([n if s is None else f"{n} at {s}" for n, s in variables])
            for variables in queries_by_variables
        ]
        description = (
            f"these are about {'; '.join(descriptions[:4])}" if descriptions else "there are none"
        )
        raise InvalidInput(f"{why}: ask about one part of a record, and {description}")
    (query,) = queries_by_variables.values()
    assert isinstance(query, About), "records are asked about some of their attributes"
    return query.part_of(domain)


class PartLikelihood(Likelihood[Sequence[int]]):
    """The likelihood of a query that sees a part of a record, from its likelihood on the part."""

    def __init__(
        self, domain: Attributes, variables: tuple[Variable, ...], on_part: FiniteLikelihood
    ) -> None:
        self.domain = domain
        self.variables = variables
        self.on_part = on_part
        self.responses = on_part.responses
        self._indices = domain.indices([name for name, _ in variables])

    @property
    def part(self) -> Part:
        """The combinations that the query sees."""
        part = self.on_part.domain
        assert isinstance(part, Part)
        return part

    def position(self, response: Any) -> int | None:
        return self.on_part.position(response)

    def pmf(self, location: Sequence[int]) -> Pmf:
        part_index = self.part.position_of([location[index] for index in self._indices])
        assert part_index is not None, "every location of a record has an index in a part"
        return self.on_part.pmf(part_index)

    def least_surprisal(self, position: int) -> float:
        return self.on_part.least_surprisal(position)

    @property
    def footprint(self) -> int:
        return self.on_part.footprint

    def delta(self, ratio: Fraction) -> Fraction:
        return self.on_part.delta(ratio)


# The filter searches once for each of these responses.
_MOST_TRIED = 64


class CategoryLikelihood(BoxLikelihood):
    """The likelihood of a query that sees the categories of a coordinate of a box."""

    def __init__(self, domain: Box, columns: range, on_part: FiniteLikelihood) -> None:
        self.domain = domain
        #: The columns of the coordinate.
        self.columns = columns
        self.on_part = on_part
        self.responses = on_part.responses
        if on_part.epsilon.is_infinite:
            raise InvalidInput(
                "got a response that only some categories can give; on a box, expected responses "
                "that all can give. Try FiniteSet or Attributes"
            )

    def position(self, response: Any) -> int | None:
        return self.on_part.position(response)

    def pmf(self, point: Point) -> Pmf:
        return self.on_part.pmf([point[j] for j in self.columns].index(1))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        indicators = np.array([columns[j] for j in self.columns])
        return np.asarray(self.on_part.weights(position)[indicators.argmax(axis=0)])

    def least_surprisal(self, position: int) -> float:
        return self.on_part.least_surprisal(position)

    def term(self, position: int) -> ScoreTerm:
        term = self.on_part.term(position)
        # A difference of two doubles is rounded once.
        below = term.logs - term.logs.max()
        error = up(term.error + UNIT * float(-below.min()))
        weights = [0.0] * len(self.domain.columns)
        weights[self.columns.start : self.columns.stop] = below.tolist()
        epsilon = self.on_part.epsilon.enclosure.upper
        return ScoreTerm(Link.TENT, epsilon, tuple(weights), 0.0, error)

    @cached_property
    def _sufficient(self) -> Sequence[int]:
        """Responses that separate any two categories best; above the limit, not all of them."""
        on_part = self.on_part
        if not isinstance(on_part, Pairwise):
            assert isinstance(on_part, BySufficientTerms), "there is no third kind"
            return on_part.sufficient
        positions: dict[int, None] = {}
        for value in range(len(self.columns)):
            for other_value in np.flatnonzero(on_part.separated_from(value)).tolist():
                if len(positions) <= _MOST_TRIED:
                    positions[on_part.separating_response(value, other_value)] = None
        return list(positions) or [0]

    @property
    def sufficient(self) -> Sequence[int] | None:
        return self._sufficient if len(self._sufficient) <= _MOST_TRIED else None

    @cached_property
    def largest_loss_responses(self) -> Sequence[int]:
        return [max(self._sufficient, key=lambda position: self.on_part.term(position).loss)]

    @property
    def corners(self) -> tuple[Point, Point]:
        """Where the response with the largest loss is least likely, and where it is likeliest."""
        logs = self.on_part.term(self.largest_loss_responses[0]).logs
        return self._point(int(logs.argmin())), self._point(int(logs.argmax()))

    def _point(self, category: int) -> Point:
        """Return a point with this category; no other coordinate matters."""
        point = [column.lower for column in self.domain.columns]
        for group in self.domain.groups:
            point[group.start] = 1
        for label_index, j in enumerate(self.columns):
            point[j] = int(label_index == category)
        return tuple(point)

    @property
    def smallest_loss_responses(self) -> Sequence[int] | None:
        listed = not isinstance(self.responses, LazyResponses)
        return range(len(self.responses)) if listed else None

    @property
    def footprint(self) -> int:
        return super().footprint + self.on_part.footprint

    def delta(self, ratio: Fraction) -> Fraction:
        return self.on_part.delta(ratio)


def lift_to_part(likelihood: FiniteLikelihood, part: Part) -> FiniteLikelihood:
    """Lift a likelihood to a part with more attributes, or with another order of them."""
    smaller = likelihood.domain
    assert isinstance(smaller, Part)
    return lift_to_classes(likelihood, part, part.indices_about(smaller.about))


def lift_to_classes(
    likelihood: FiniteLikelihood, domain: FiniteSet, indices: NDArray[np.intp]
) -> FiniteLikelihood:
    """Lift a likelihood to a domain where value i behaves as value ``indices[i]`` of the original.

    All values of the original occur.
    """
    if isinstance(likelihood, Pairwise):
        return _LiftedPairs(likelihood, domain, indices)
    assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
    return _LiftedTerms(likelihood, domain, indices)


class LiftedLikelihood(FiniteLikelihood):
    """A likelihood on a domain where value i behaves as value ``indices[i]`` of ``original``."""

    def __init__(
        self, original: FiniteLikelihood, domain: FiniteSet, indices: NDArray[np.intp]
    ) -> None:
        self.domain = domain
        self.original = original
        self.responses = original.responses
        self.indices = indices

    @property
    def sees_all(self) -> bool:
        """Whether the domains differ only in order."""
        return len(self.original.domain) == len(self.domain)

    def position(self, response: Any) -> int | None:
        return self.original.position(response)

    def pmf(self, index: int) -> Pmf:
        return self.original.pmf(int(self.indices[index]))

    def weights(self, position: int) -> Weights:
        return self.original.weights(position)[self.indices]

    def weight_labels(self, position: int) -> NDArray[Any]:
        return self.original.weight_labels(position)[self.indices]

    def powers(self, position: int, indices: Sequence[int]) -> list[Powers]:
        return self.original.powers(position, self.indices[indices].tolist())

    def _term(self, position: int) -> Term:
        return self.original.term(position).take(self.indices)

    @property
    def epsilon(self) -> Nats:
        return self.original.epsilon

    @property
    def least_loss(self) -> Nats:
        return self.original.least_loss

    def delta(self, ratio: Fraction) -> Fraction:
        return self.original.delta(ratio)


class _LiftedPairs(LiftedLikelihood, Pairwise):
    original: Pairwise

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        return np.asarray(self.original.supported_values(position)[self.indices])

    def separating_response(self, value: int, other: int) -> int:
        return self.original.separating_response(int(self.indices[value]), int(self.indices[other]))

    def separated_from(self, value: int) -> NDArray[np.bool_]:
        return np.asarray(self.original.separated_from(int(self.indices[value]))[self.indices])

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction] | None:
        return self.original.support_probabilities if self.sees_all else None

    @property
    def collision_probability(self) -> Fraction:
        return self.original.collision_probability


class _LiftedTerms(LiftedLikelihood, BySufficientTerms):
    original: BySufficientTerms

    @property
    def sufficient(self) -> Sequence[int]:
        return self.original.sufficient
