"""The likelihood of a query on one domain: the probability of each response for each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point, Value
from expost.errors import InvalidInput
from expost.numbers import Enclosure, Nats, double_above, down, scaled_exp, up
from expost.queries._divergences import largest_excess
from expost.sampling import Pmf
from expost.terms import Powers, ScoreTerm, Term, Weights, as_weights, logs_of

__all__ = [
    "BitProbabilities",
    "BoxLikelihood",
    "BySufficientTerms",
    "FiniteLikelihood",
    "LazyResponses",
    "Likelihood",
    "Location",
    "Pairwise",
    "two_weights",
]

# The terms that a likelihood keeps for reuse take up to eight times its own memory, or 32 KiB.
# How many likelihoods are kept is limited by what they take, so all of it stays below 256 MiB.
_TERMS_KEPT = 8
_LITTLE = 1 << 12
# The most responses for which delta is worked out one by one.
_MOST_CELLS = 1 << 22
Location = TypeVar("Location")
"""Where a value is in its domain: what ``domain.locate(value)`` gives."""


class Likelihood(ABC, Generic[Location]):
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
    def pmf(self, place: Location) -> Pmf:
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
    def largest_loss_responses(self) -> Sequence[int]:
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
        at_corners = (
            self.weights(position, columns).tolist() for position in self.largest_loss_responses
        )
        reached = Nats(ratio=max(Fraction(max(pair), min(pair)) for pair in at_corners)).enclosure
        if not self.blur:
            return reached
        return Enclosure(reached.lower, up(reached.upper + double_above(4 * self.blur)))

    def least_surprisal(self, position: int) -> float:
        # No value is likelier than a corner by more than a factor of e^epsilon.
        most = max(self.pmf(corner).surprisal(position) for corner in self.corners)
        return max(0.0, down(most - self.epsilon.upper))

    @property
    def smallest_loss_responses(self) -> Sequence[int] | None:
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

    def weight_labels(self, position: int) -> NDArray[Any]:
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
    return responses.size if isinstance(responses, LazyResponses) else len(responses)


class LazyResponses(Sequence[Value]):
    """A sequence with an item per position, given by a function and its inverse.

    ``len`` is limited to ``sys.maxsize``; ``size`` is not.
    """

    def __init__(
        self, size: int, item: Callable[[int], Value], find: Callable[[Any], int | None]
    ) -> None:
        self.size = size
        self._item = item
        self._find = find

    def find(self, item: Any) -> int | None:
        """The position of an item, or None if it is not there."""
        return self._find(item)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        positions = range(self.size)[index]
        if isinstance(positions, range):
            return tuple(self._item(position) for position in positions)
        return self._item(positions)

    def __contains__(self, item: object) -> bool:
        return self._find(item) is not None


def two_weights(epsilon: Fraction, steps: int = 1) -> tuple[int, int]:
    """Weights (heavy, light) with heavy/light just below e^epsilon, for one of so many equal steps.

    light = 2^B and heavy = ⌊2^B e^epsilon⌋ with B = 40 + max(0, ⌈log₂ 1/epsilon⌉): the loss
    log(heavy/light) is at most epsilon, exactly, and misses it by less than 2^-40 of itself.
    """
    top, bottom = epsilon.as_integer_ratio()
    return _two_weights(top, bottom * steps)


@lru_cache(maxsize=1 << 14)
def _two_weights(top: int, bottom: int) -> tuple[int, int]:
    # Epsilon is given by its parts, for the hash of a fraction takes long.
    bits = 40
    while top << (bits - 40) < bottom:
        bits += 1
    return scaled_exp(Fraction(top, bottom), bits), 1 << bits


@dataclass(frozen=True, slots=True)
class BitProbabilities:
    """How likely bits are; the same for all inputs, because values are alike."""

    own: Fraction
    """The bit of the input."""
    other: Fraction
    """Any other bit."""
    right: Fraction
    """The bit of the input without that of a certain other value."""
    wrong: Fraction
    """The bit of a certain other value without that of the input."""
    independent: bool


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
    def supported_values(self, position: int) -> NDArray[np.bool_]:
        """The values, A_y, that are likelier than all others given this response."""

    @abstractmethod
    def separating_response(self, value: int, other: int) -> int:
        """A response that speaks for a value, and against another that is told apart from it."""

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction] | None:
        """How likely a response speaks for the true value, and for a value told apart from it.

        None if that is not the same for all values.
        """
        return None

    def bits(self, place: int) -> BitProbabilities | None:
        """How likely the bits of a response are, for the value at this place.

        None if responses do not consist of a bit for each value.
        """
        return None

    @property
    def collision_probability(self) -> Fraction:
        """How likely two values are not told apart, over all seeds that the query could have."""
        return Fraction(0)

    def separated_from(self, value: int) -> NDArray[np.bool_]:
        """The values that some response tells from this one: all others by default."""
        others = np.ones(len(self.domain), dtype=np.bool_)
        others[value] = False
        return others

    def weights(self, position: int) -> Weights:
        weights = np.repeat(as_weights([self._light], self._heavy), len(self.domain))
        weights[self.supported_values(position)] = self._heavy
        return weights

    def _term(self, position: int) -> Term:
        return self._two.for_classes(self.supported_values(position))

    @cached_property
    def _two(self) -> Term:
        return Term(as_weights([self._light, self._heavy], self._heavy))

    def weight_labels(self, position: int) -> NDArray[Any]:
        return self.supported_values(position)

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        heavy, light = ((self._heavy, 1),), ((self._light, 1),)
        return [
            heavy if spoken else light
            for spoken in self.supported_values(position)[places].tolist()
        ]

    @cached_property
    def epsilon(self) -> Nats:
        return (
            Nats(ratio=Fraction(self._heavy, self._light))
            if self.separated_from(0).any()
            else Nats()
        )

    def delta(self, ratio: Fraction) -> Fraction:
        if self.support_probabilities is None:
            return super().delta(ratio)
        # Of responses that speak for one value and not for the other, with probability a and
        # a·light/heavy: a·(1 - light/heavy) is the difference of the chances.
        own, other = self.support_probabilities
        over = max(Fraction(0), self._heavy - ratio * self._light)
        apart = self.epsilon > Nats()
        return (own - other) * over / (self._heavy - self._light) if apart else Fraction(0)
