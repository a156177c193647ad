"""The protocol of a query, and the likelihood that it has on a domain.

A query is a frozen description without a domain. :meth:`Query.on` gives its :class:`Likelihood` on
a domain: integer weights over a common denominator, from which the sampler, the worst case, the
realized loss and the filters all read. A new family writes those weights once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, overload

from expost.domains import Box, Domain, FiniteSet, Point, Value
from expost.errors import InvalidInput, at, expect
from expost.queries.recent import Recent
from expost.queries.score_term import ScoreTerm
from expost.queries.term import Term, Weights
from expost.reading import scalar
from expost.rounding import ExactLike, Nats, positive
from expost.sampling import Categorical, Pmf

__all__ = [
    "LARGEST_EPSILON",
    "BoxLikelihood",
    "Columns",
    "FiniteLikelihood",
    "Likelihood",
    "Pairwise",
    "Query",
    "check_query",
    "read_epsilon",
]

LARGEST_EPSILON = 500


Place = TypeVar("Place")
"""Where a value is in its domain: what ``domain.locate(value)`` gives."""


class Likelihood(ABC, Generic[Place]):
    """Pr(response | value) of one query on one domain, exactly.

    Responses are addressed by position, so that a family with astronomically many of them never
    has to write them out.
    """

    domain: Domain
    responses: Sequence[Value]
    """What can be answered: every one of these has a positive probability for some value."""

    @abstractmethod
    def position(self, response: Any) -> int | None:
        """The position of a response, or None if the query has no such response."""

    @abstractmethod
    def pmf(self, place: Place) -> Pmf:
        """The distribution over responses for the value at this place of the domain."""


class BoxLikelihood(Likelihood[Point]):
    """A likelihood on a box. The weights are exact point by point, the terms within an error."""

    domain: Box

    @abstractmethod
    def term(self, position: int) -> ScoreTerm:
        """The logarithm of the weight of one response, as a function on the box."""


class FiniteLikelihood(Likelihood[int]):
    """A likelihood on a finite domain.

    For the filter it offers D(x, x'), the largest log-ratio of any response, as sufficient terms
    (:class:`Columns`) or as such (:class:`Pairwise`).
    """

    domain: FiniteSet

    @abstractmethod
    def weights(self, position: int) -> Weights:
        """The exact weights of one response over the domain."""

    def term(self, position: int) -> Term:
        """The likelihood of one response over the domain."""
        return Term(self.weights(position))

    @property
    @abstractmethod
    def epsilon(self) -> Nats:
        """The worst case over responses, from the weights; never above the nominal epsilon."""

    @property
    @abstractmethod
    def least_loss(self) -> Nats:
        """The smallest loss that a single response can realize."""


class Pairwise(FiniteLikelihood):
    """A likelihood whose D(x, x') is epsilon for every two different values."""

    @abstractmethod
    def telling(self, value: int) -> int:
        """The response that speaks most for a value, against every other one."""


class Columns(FiniteLikelihood):
    """A likelihood with few responses, whose columns of weights are written out.

    D(x, x') is the maximum over all of them of u(x) - u(x'), u the logarithm of a column.
    """

    def __init__(
        self, domain: FiniteSet, responses: Sequence[Value], columns: Sequence[Weights]
    ) -> None:
        self.domain = domain
        # What no value can give is not in the range of the query.
        possible = [i for i, column in enumerate(columns) if column.any()]
        self.responses = tuple(responses[i] for i in possible)
        self._columns = [columns[i] for i in possible]
        for column in self._columns:
            assert (column >= 0).all(), "a weight is never negative"
            column.setflags(write=False)
        self._positions = {response: i for i, response in enumerate(self.responses)}
        self._terms: dict[int, Term] = {}

    def position(self, response: Any) -> int | None:
        try:
            return self._positions.get(scalar(response))
        except InvalidInput:
            return None

    def pmf(self, place: int) -> Pmf:
        return Categorical(tuple(int(column[place]) for column in self._columns))

    def weights(self, position: int) -> Weights:
        return self._columns[position]

    def term(self, position: int) -> Term:
        if position not in self._terms:
            self._terms[position] = super().term(position)
        return self._terms[position]

    @cached_property
    def epsilon(self) -> Nats:
        return max(self._losses)

    @cached_property
    def least_loss(self) -> Nats:
        return min(self._losses)

    @property
    def _losses(self) -> list[Nats]:
        return [self.term(position).loss for position in range(len(self.responses))]


class Query(ABC):
    """What is asked and with which noise. Frozen, and without any knowledge of the subject."""

    kind: ClassVar[str]
    epsilon: Fraction | None
    """The nominal guarantee in nats; None where only the probabilities say."""

    @abstractmethod
    def tree(self) -> dict[str, Any]:
        """The parameters in their JSON shape: exact numbers as fractions, others as doubles."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: dict[str, Any]) -> Query:
        """Read the parameters, without ``kind``, strictly."""

    @abstractmethod
    def with_epsilon(self, epsilon: Fraction) -> Query | None:
        """The same query with another epsilon and equal structure; None if it has no epsilon."""

    @abstractmethod
    def _on(self, domain: FiniteSet) -> FiniteLikelihood: ...

    def _on_box(self, domain: Box) -> BoxLikelihood:
        raise InvalidInput(f"{self.kind} needs a finite domain, not a box")

    @overload
    def on(self, domain: FiniteSet) -> FiniteLikelihood: ...
    @overload
    def on(self, domain: Box) -> BoxLikelihood: ...
    @overload
    def on(self, domain: Domain) -> Likelihood[Any]: ...

    def on(self, domain: Domain) -> Likelihood[Any]:
        """The likelihood on a domain."""
        expect(domain, Domain, "a FiniteSet or a Box")
        if isinstance(domain, Box):
            # Exact numbers weigh more than the few doubles that a value of a finite set takes.
            size = 64 * len(domain.sides)
            return _recent.get(self, domain, size, lambda: self._on_box(domain))
        return _recent.get(self, domain, len(domain), lambda: self._on(domain))

    def charge(self, domain: Domain) -> Nats:
        """What basic composition charges: the nominal epsilon, or the worst case if none."""
        if self._nominal is not None:
            return self._nominal
        likelihood = self.on(domain)
        assert isinstance(likelihood, FiniteLikelihood), "on a box every query has an epsilon"
        return likelihood.epsilon

    @cached_property
    def _nominal(self) -> Nats | None:
        return None if self.epsilon is None else Nats(self.epsilon)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Query) and self.kind == other.kind and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash((self.kind, self.epsilon))


# A likelihood takes a few doubles per value; four on a million values stay below 200 MB.
_recent: Recent[Likelihood[Any]] = Recent(most=1 << 22)


def check_query(query: object) -> None:
    """Refuse what is not a query with a line that helps."""
    expect(query, Query, "a query, such as randomized_response(epsilon=1)")


def read_epsilon(epsilon: ExactLike) -> Fraction:
    """A query's epsilon as a person writes it, exactly."""
    with at("epsilon"):
        return positive(epsilon, at_most=LARGEST_EPSILON)
