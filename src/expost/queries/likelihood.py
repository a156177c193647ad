"""What a query does on one domain: how likely each response is for each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point, Value
from expost.errors import InvalidInput
from expost.numbers import Enclosure, Nats, double_above, down, up
from expost.queries.hockey_stick import largest_excess
from expost.queries.lazy import Lazy
from expost.sampling import Pmf
from expost.terms import Powers, ScoreTerm, Term, Weights, logs_of

__all__ = ["BoxLikelihood", "BySufficientTerms", "FiniteLikelihood", "Likelihood", "Place"]

# The terms that a likelihood keeps for reuse take up to eight times its own memory, or 32 KiB.
# How many likelihoods are kept is limited by what they take, so all of it stays below 256 MiB.
_TERMS_KEPT = 8
_LITTLE = 1 << 12
# The most responses for which delta is worked out one by one.
_MOST_CELLS = 1 << 22
Place = TypeVar("Place")
"""Where a value is in its domain: what ``domain.locate(value)`` gives."""


class Likelihood(ABC, Generic[Place]):
    """Pr(response | value) of one query on one domain, exactly.

    ``query.on(domain)`` gives it. Responses are addressed by position, so that a family with
    astronomically many of them never has to list them.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> likelihood = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]).on(smokes)
    >>> likelihood.pmf(smokes.locate("yes")).probability(likelihood.position(1))
    Fraction(3, 4)
    """

    domain: Domain
    responses: Sequence[Value]
    """The possible responses: each has a positive probability for some value."""

    @abstractmethod
    def position(self, response: Any) -> int | None:
        """The position of a response, or None if the query has no such response."""

    @abstractmethod
    def pmf(self, place: Place) -> Pmf:
        """The distribution over responses for the value at this place of the domain."""

    @abstractmethod
    def least_surprisal(self, position: int) -> float:
        r"""Bound from below how surprising a response is, in nats, whatever the value.

        .. math:: \min_x -\log P[Q(x) = y]

        Proof: docs/theory/audits.md.
        """

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
        """Their approximate logarithms in doubles, up to a constant: for examples and estimates."""
        return logs_of(self.weights(position, columns))

    @abstractmethod
    def term(self, position: int) -> ScoreTerm:
        """The logarithm of the weight of one response, as a function on the box."""

    @property
    def sufficient(self) -> Sequence[int] | None:
        """Responses among which, for any two values, is one that tells them apart best.

        None if that takes too many: then a filter adds epsilon to the loss.
        """
        return range(len(self.responses))

    @property
    def loudest(self) -> Sequence[int]:
        """Responses among which is one that realizes the largest loss on its own.

        Their weights are monotone in the score, so only its two extremes matter.
        """
        assert self.sufficient is not None, "where none are named, these have to be"
        return self.sufficient

    @property
    @abstractmethod
    def corners(self) -> tuple[Point, Point]:
        """Where the score is smallest, and where it is largest."""

    @property
    def blur(self) -> Fraction:
        """How far the logarithm of a weight can be from a monotone function of the score."""
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

    def least_surprisal(self, position: int) -> float:
        # No value is likelier than a corner by more than a factor of e^epsilon.
        most = max(self.pmf(corner).surprisal(position) for corner in self.corners)
        return max(0.0, down(most - self.epsilon.upper))

    @property
    def quietest(self) -> Sequence[int] | None:
        """Responses among which is one that realizes the smallest loss; None if not known."""
        return range(len(self.responses))

    @property
    def footprint(self) -> int:
        # Exact numbers weigh more than the few doubles that a value of a finite set takes.
        return 64 * len(self.domain.columns)


class FiniteLikelihood(Likelihood[int]):
    """A likelihood on a finite domain.

    For the filter it offers D(x, x'), the largest log-ratio of any response, by sufficient terms
    (:class:`BySufficientTerms`) or directly (:class:`Pairwise`).
    """

    domain: FiniteSet

    @property
    def footprint(self) -> int:
        return len(self.domain)

    @abstractmethod
    def weights(self, position: int) -> Weights:
        """The exact weights of one response over the domain, up to a common factor."""

    @classmethod
    def prepare(cls, asked: Iterable[tuple[Any, int]]) -> None:
        """Let several of this class work out together what each would work out when needed.

        They are given with the positions of responses whose terms are needed.
        """

    def alike(self, position: int) -> NDArray[Any]:
        """Numbers that are equal exactly for values with equal weights."""
        return self.weights(position)

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        """The exact weights of one response at some values, as products of powers.

        A likelihood whose weights are powers overrides this, with much shorter products.
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

    def least_surprisal(self, position: int) -> float:
        term = self.term(position)
        likeliest = self.pmf(int(term.logs.argmax()))
        return max(0.0, down(likeliest.surprisal(position) - 2 * term.error))

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
        rows = [[pmf.weight(i) for i in places] for pmf in pmfs]
        return largest_excess(np.array(rows, dtype=object), ratio) / pmfs[0].total


class BySufficientTerms(FiniteLikelihood):
    """A likelihood with D(x, x') = max u(x) - u(x') over the logarithms u of some of its terms."""

    @property
    @abstractmethod
    def sufficient(self) -> Sequence[int]:
        """The positions of these responses."""

    @cached_property
    def epsilon(self) -> Nats:
        return max(self.term(position).loss for position in self.sufficient)


def _size(responses: Sequence[Value]) -> int:
    return responses.size if isinstance(responses, Lazy) else len(responses)
