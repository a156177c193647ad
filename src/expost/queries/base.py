"""The protocol of a query, and the likelihood that it has on a domain.

A query is a frozen description without a domain. :meth:`Query.on` gives its :class:`Likelihood` on
a domain: integer weights over a common denominator, from which the sampler, the worst case, the
realized loss and the filters all read. A new family writes those weights once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point, Value
from expost.errors import InvalidInput, at, expect
from expost.queries.cumulant import randomized_response_cumulant
from expost.queries.excess import largest_excess
from expost.queries.lazy import Lazy
from expost.queries.meaning import Meaning
from expost.queries.recent import Recent
from expost.queries.score_term import ScoreTerm
from expost.queries.term import Powers, Term, Weights, as_weights, logs_of
from expost.reading import scalar
from expost.rounding import (
    INFINITE,
    Enclosure,
    ExactLike,
    Nats,
    double_above,
    exact,
    positive,
    up,
)
from expost.sampling import Categorical, Pmf

__all__ = [
    "LARGEST_EPSILON",
    "BoxLikelihood",
    "BySufficientTerms",
    "Columns",
    "FiniteLikelihood",
    "Likelihood",
    "Pairwise",
    "Query",
    "check_query",
    "read_delta",
    "read_epsilon",
]

LARGEST_EPSILON = 500

# The terms that a likelihood keeps for the next time take eight times its own memory, or 32 KiB.
# How many likelihoods are kept is limited by what they take, so all of it stays below 256 MiB.
_TERMS_KEPT = 8
_LITTLE = 1 << 12

# Where delta is worked out response by response.
_MOST_CELLS = 1 << 22


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

    @property
    @abstractmethod
    def footprint(self) -> int:
        """How much memory it takes, in units of a few doubles."""

    def delta(self, ratio: Fraction) -> Fraction:
        """δ at e^ε = ratio, which is at least 1, exactly."""
        raise InvalidInput("the delta of this query needs a finite domain, not a box")


class BoxLikelihood(Likelihood[Point]):
    """A likelihood on a box. The weights are exact point by point, the terms within an error."""

    domain: Box

    @abstractmethod
    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        """The exact weights of one response at many points: a column per coordinate."""

    def logs(self, position: int, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Their logarithms in doubles, about and up to a constant: for examples and estimates."""
        return logs_of(self.weights(position, columns))

    @abstractmethod
    def term(self, position: int) -> ScoreTerm:
        """The logarithm of the weight of one response, as a function on the box."""

    @property
    def sufficient(self) -> Sequence[int] | None:
        """Responses one of which tells two values apart as well as any other does.

        None where that takes too many: then a filter adds epsilon to the loss.
        """
        return range(len(self.responses))

    @property
    def loudest(self) -> Sequence[int]:
        """Responses one of which realizes the largest loss on its own.

        Their weights are monotone in the score, so between its two extremes.
        """
        assert self.sufficient is not None, "where none are named, these have to be"
        return self.sufficient

    @property
    @abstractmethod
    def corners(self) -> tuple[Point, Point]:
        """Where the score is smallest, and where it is largest."""

    @property
    def blur(self) -> Fraction:
        """How far the logarithm of a weight can be from one that is monotone in the score."""
        return Fraction(0)

    @cached_property
    def epsilon(self) -> Enclosure:
        """The worst case over responses, from the weights at two corners of the box.

        Proof: docs/theory/score_terms.md.
        """
        columns = [np.array(pair, dtype=np.float64) for pair in zip(*self.corners, strict=True)]
        at_corners = (self.weights(position, columns).tolist() for position in self.loudest)
        reached = Nats(ratio=max(Fraction(max(pair), min(pair)) for pair in at_corners)).enclosure
        if not self.blur:
            return reached
        return Enclosure(reached.lower, up(reached.upper + double_above(4 * self.blur)))

    @property
    def quietest(self) -> Sequence[int] | None:
        """Responses one of which realizes the smallest loss on its own; None if not known."""
        return range(len(self.responses))

    @property
    def footprint(self) -> int:
        # Exact numbers weigh more than the few doubles that a value of a finite set takes.
        return 64 * len(self.domain.columns)


class FiniteLikelihood(Likelihood[int]):
    """A likelihood on a finite domain.

    For the filter it offers D(x, x'), the largest log-ratio of any response, as sufficient terms
    (:class:`BySufficientTerms`) or as such (:class:`Pairwise`).
    """

    domain: FiniteSet

    @property
    def footprint(self) -> int:
        return len(self.domain)

    @abstractmethod
    def weights(self, position: int) -> Weights:
        """The exact weights of one response over the domain, up to a common factor."""

    def alike(self, position: int) -> NDArray[Any]:
        """Numbers that are equal for values with equal weights, and for no others."""
        return self.weights(position)

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        """The exact weights of one response at some values, as products of powers.

        A likelihood whose weights are powers gives these, which are much shorter.
        """
        return [((int(weight), 1),) for weight in self.weights(position)[places]]

    def term(self, position: int) -> Term:
        """The likelihood of one response over the domain."""
        term = self._terms.get(position)
        if term is None:
            term = self._term(position)
            if len(self._terms) >= max(_TERMS_KEPT, _LITTLE // len(self.domain)):
                self._terms.clear()
            self._terms[position] = term
        return term

    def _term(self, position: int) -> Term:
        return Term(self.weights(position))

    @cached_property
    def _terms(self) -> dict[int, Term]:
        return {}

    @property
    @abstractmethod
    def epsilon(self) -> Nats:
        """The worst case over responses, from the weights; never above the nominal epsilon."""

    @property
    @abstractmethod
    def least_loss(self) -> Nats:
        """The smallest loss that a single response can realize."""

    def delta(self, ratio: Fraction) -> Fraction:
        if len(self.domain) * _size(self.responses) > _MOST_CELLS:
            raise InvalidInput("this query has too many responses here to work out its delta")
        pmfs = [self.pmf(place) for place in range(len(self.domain))]
        places = range(len(self.responses))
        rows = [[int(pmf.probability(i) * pmf.total) for i in places] for pmf in pmfs]
        return largest_excess(np.array(rows, dtype=object), ratio) / pmfs[0].total


class Pairwise(FiniteLikelihood):
    r"""A likelihood whose responses each speak for some values, and against all others equally.

    .. math:: \log P[y \mid x] = c(y) + \varepsilon 1[x \in A_y]

    So D(x, x') is epsilon where some response tells the two values apart, and zero where none does.
    Being told apart by none must be an equivalence.
    """

    def __init__(self, domain: FiniteSet, heavy: int, light: int) -> None:
        self.domain = domain
        self._heavy = heavy
        self._light = light

    @abstractmethod
    def speaks_for(self, position: int) -> NDArray[np.bool_]:
        """The values, A_y, that are likelier than all others given this response."""

    @abstractmethod
    def telling(self, value: int, other: int) -> int:
        """A response that speaks for a value, and against another one that can be told from it."""

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        """How likely a response speaks for the true value, and for one that it is told from.

        None where that is not the same for all values.
        """
        return None

    @property
    def merging(self) -> Fraction:
        """How likely two values are not told apart, over all seeds that the query could have."""
        return Fraction(0)

    def told_from(self, value: int) -> NDArray[np.bool_]:
        """The values that some response tells from this one: all others, if not said else."""
        others = np.ones(len(self.domain), dtype=np.bool_)
        others[value] = False
        return others

    def weights(self, position: int) -> Weights:
        weights = np.repeat(as_weights([self._light], self._heavy), len(self.domain))
        weights[self.speaks_for(position)] = self._heavy
        return weights

    def _term(self, position: int) -> Term:
        return self._two.shared_by(self.speaks_for(position))

    @cached_property
    def _two(self) -> Term:
        return Term(as_weights([self._light, self._heavy], self._heavy))

    def alike(self, position: int) -> NDArray[Any]:
        return self.speaks_for(position)

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        heavy, light = ((self._heavy, 1),), ((self._light, 1),)
        return [heavy if spoken else light for spoken in self.speaks_for(position)[places].tolist()]

    @cached_property
    def epsilon(self) -> Nats:
        return Nats(ratio=Fraction(self._heavy, self._light)) if self.told_from(0).any() else Nats()

    def delta(self, ratio: Fraction) -> Fraction:
        if self.chances is None:
            return super().delta(ratio)
        # Of responses that speak for one value and not for the other, with probability a and
        # a·light/heavy: a·(1 - light/heavy) is the difference of the chances.
        own, other = self.chances
        over = max(Fraction(0), self._heavy - ratio * self._light)
        apart = self.epsilon > Nats()
        return (own - other) * over / (self._heavy - self._light) if apart else Fraction(0)


class BySufficientTerms(FiniteLikelihood):
    """A likelihood with D(x, x') = max u(x) - u(x') over the logarithms u of some of its terms."""

    @property
    @abstractmethod
    def sufficient(self) -> Sequence[int]:
        """The positions of these responses."""

    @cached_property
    def epsilon(self) -> Nats:
        return max(self.term(position).loss for position in self.sufficient)


class Columns(BySufficientTerms):
    """A likelihood with few responses, whose columns of weights are written out."""

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

    @property
    def footprint(self) -> int:
        largest = max(int(column.max()) for column in self._columns)
        return len(self.domain) * (1 + largest.bit_length() // 64)

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
        # All of them are kept, for the filter goes through all of them every time.
        if position not in self._terms:
            self._terms[position] = Term(self.weights(position))
        return self._terms[position]

    @property
    def sufficient(self) -> Sequence[int]:
        return range(len(self.responses))

    @cached_property
    def least_loss(self) -> Nats:
        return min(self.term(position).loss for position in self.sufficient)


class Query(ABC):
    """What is asked and with which noise. Frozen, and without any knowledge of the subject."""

    kind: ClassVar[str]
    epsilon: Fraction | None
    """The nominal guarantee in nats; None where only the probabilities say."""

    delta: Fraction = Fraction(0)
    """The query is (charge, delta)-LDP; where that is 0, no response exceeds the charge."""

    @property
    def approximate(self) -> bool:
        """Whether its guarantee takes a delta, so that no filter without one can answer for it."""
        return self.delta > 0

    @property
    def steepness(self) -> Fraction | None:
        """How fast D(x, x') can change with epsilon, at most; None where it never falls."""
        return None

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

    def work(self, domain: Domain) -> int:
        """How long its likelihood takes to set up, where that is long: in microseconds, about."""
        return 0

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
            return _recent.get(self, domain, lambda: self._on_box(domain), _footprint)
        return _recent.get(self, domain, lambda: self._on(domain), _footprint)

    def meaning(self, domain: Domain) -> Meaning:
        """The score that is asked about, and what each response says of it on average."""
        raise InvalidInput(f"{self.kind} is not about a score, so it has no mean")

    def charge(self, domain: Domain) -> Nats:
        """What basic composition charges: the nominal epsilon, or the worst case if none."""
        if self._nominal is not None:
            return self._nominal
        likelihood = self.on(domain)
        assert isinstance(likelihood, FiniteLikelihood), "on a box every query has an epsilon"
        return likelihood.epsilon

    def ceiling(self, domain: Domain) -> Nats:
        """What no response exceeds: the charge, or nothing at all where there is a delta."""
        return INFINITE if self.delta else self.charge(domain)

    def cumulant(self, domain: Domain, exponent: Fraction) -> float:
        r"""An upper bound on the cumulant at λ of the log-likelihood ratio L of any two values.

        .. math:: K(\lambda) \ge \log E\left[e^{\lambda L}\right], \quad \lambda > 0

        That of randomized response, if not said else; infinite where there is a delta.
        """
        if self.delta:
            return math.inf
        return randomized_response_cumulant(self.charge(domain), exponent)

    @cached_property
    def _nominal(self) -> Nats | None:
        return None if self.epsilon is None else Nats(self.epsilon)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Query) and self.kind == other.kind and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash((self.kind, self.epsilon))


def _size(responses: Sequence[Value]) -> int:
    return responses.size if isinstance(responses, Lazy) else len(responses)


def _footprint(likelihood: Likelihood[Any]) -> int:
    return likelihood.footprint


# Four likelihoods on a million values, with a few doubles for each, stay below 200 MB.
_recent: Recent[Likelihood[Any]] = Recent(most=1 << 22)


def check_query(query: object) -> None:
    """Refuse what is not a query with a line that helps."""
    expect(query, Query, "a query, such as randomized_response(epsilon=1)")


def read_epsilon(epsilon: ExactLike) -> Fraction:
    """A query's epsilon as a person writes it, exactly."""
    with at("epsilon"):
        return positive(epsilon, at_most=LARGEST_EPSILON)


def read_delta(delta: ExactLike, place: str = "delta") -> Fraction:
    """A delta as a person writes it, exactly."""
    with at(place):
        value = exact(delta)
        if not 0 < value < 1:
            raise InvalidInput("must be between 0 and 1")
        return value
