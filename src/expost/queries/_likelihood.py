"""The likelihood of a query on one domain: the probability of each response for each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet, Point, Value
from expost.errors import InvalidInput
from expost.files.reading import number
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
    "count_responses",
    "two_weights",
]

# The terms that a likelihood stores for reuse take up to eight times its own memory, or 32 KiB.
# The cache of likelihoods is limited by their memory, so all of it stays below 256 MiB.
_MOST_TERMS = 8
_TERM_DOUBLES = 1 << 12
# The most pairs of value and response for which delta is computed one by one.
_MOST_CELLS = 1 << 22
#: The location of a value in its domain, as ``domain.locate(value)`` returns it.
Location = TypeVar("Location")


class Likelihood(ABC, Generic[Location]):
    """Pr(response | value) of one query on one domain, exactly.

    ``query.on(domain)`` gives it. Responses are addressed by position, so that a family with
    astronomically many responses never has to list them.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> likelihood = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]).on(smokes)
    >>> likelihood.pmf(smokes.locate("yes")).probability(likelihood.position(1))
    Fraction(3, 4)
    """

    domain: Domain
    #: The possible responses: each has a positive probability for some value.
    responses: Sequence[Value]

    def position(self, response: Any) -> int | None:
        """Return the position of a response, or None if the query has no such response.

        By default responses are numbers.
        """
        try:
            return self.responses.index(number(response))
        except ValueError:  # or InvalidInput, which is one
            return None

    @abstractmethod
    def pmf(self, location: Location) -> Pmf:
        """Return the distribution over responses for the value at this location of the domain."""

    @abstractmethod
    def least_surprisal(self, position: int) -> float:
        r"""Bound from below how surprising a response is, in nats, whatever the value.

        .. math:: \min_x -\log P[Q(x) = y]

        Proof: docs/theory/audits.md.
        """

    @property
    @abstractmethod
    def footprint(self) -> int:
        """The memory that it takes, in units of a few doubles."""

    def delta(self, ratio: Fraction) -> Fraction:
        """Return δ at e^ε = ratio, which is at least 1, exactly."""
        raise InvalidInput("the delta of this query needs a finite domain, not a box")


class BoxLikelihood(Likelihood[Point]):
    """A likelihood on a box. The weights are exact point by point, the terms within an error."""

    domain: Box

    @abstractmethod
    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        """Return the exact weights of one response at points given by columns of coordinates."""

    def logs(self, position: int, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return approximate logarithms of the weights, up to a constant, for estimates."""
        return logs_of(self.weights(position, columns))

    @abstractmethod
    def term(self, position: int) -> ScoreTerm:
        """Return the logarithm of the weight of one response, as a function on the box."""

    @property
    def sufficient(self) -> Sequence[int] | None:
        """Responses that contain, for any two values, one that separates them best.

        None if that takes too many responses: then a filter adds epsilon to the loss.
        """
        return range(len(self.responses))

    @property
    def largest_loss_responses(self) -> Sequence[int]:
        """Responses that contain one with the largest loss on its own.

        Their weights are monotone in the score, so only its two extremes matter.
        """
        assert self.sufficient is not None, "a subclass names either these or sufficient ones"
        return self.sufficient

    @property
    @abstractmethod
    def corners(self) -> tuple[Point, Point]:
        """The points where the score is smallest, and where it is largest."""

    @property
    def blur(self) -> Fraction:
        """A bound on the distance of log-weights from a monotone function of the score."""
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
        """Responses that contain one with the smallest loss on its own; None if unknown."""
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
        """Return the exact weights of one response over the domain, up to a common factor."""

    def weight_labels(self, position: int) -> NDArray[Any]:
        """Return labels that are equal exactly for values with equal weights."""
        return self.weights(position)

    def powers(self, position: int, indices: Sequence[int]) -> list[Powers]:
        """Return the exact weights of one response at some values, as products of powers.

        A likelihood whose weights are powers overrides this, with much shorter products.
        """
        return [((int(weight), 1),) for weight in self.weights(position)[indices]]

    def term(self, position: int) -> Term:
        """Return the likelihood of one response over the domain."""
        term = self._terms.get(position)
        if term is None:
            term = self._term(position)
            if len(self._terms) >= max(_MOST_TERMS, _TERM_DOUBLES // len(self.domain)):
                self._terms.clear()
            self._terms[position] = term
        return term

    def _term(self, position: int) -> Term:
        return Term.of(self.weights(position))

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
        if len(self.domain) * count_responses(self.responses) > _MOST_CELLS:
            raise InvalidInput("this query has too many responses here to compute its delta")
        pmfs = [self.pmf(index) for index in range(len(self.domain))]
        positions = range(len(self.responses))
        rows = [[pmf.weight(i) for i in positions] for pmf in pmfs]
        return largest_excess(np.array(rows, dtype=object), ratio) / pmfs[0].total


class BySufficientTerms(FiniteLikelihood):
    """A likelihood with D(x, x') = max u(x) - u(x') over the logarithms u of some of its terms."""

    @property
    @abstractmethod
    def sufficient(self) -> Sequence[int]:
        """The positions of the responses of these terms."""

    @cached_property
    def epsilon(self) -> Nats:
        return max(self.term(position).loss for position in self.sufficient)


def count_responses(responses: Sequence[Value]) -> int:
    """Count responses, even if there are more than fit into a word."""
    return responses.size if isinstance(responses, LazyResponses) else len(responses)


class LazyResponses(Sequence[Value]):
    """A sequence of responses that are computed from their positions, and conversely.

    ``len`` is limited to ``sys.maxsize``; ``size`` is not.
    """

    def __init__(
        self, size: int, response_at: Callable[[int], Value], find: Callable[[Any], int | None]
    ) -> None:
        self.size = size
        self._response_at = response_at
        #: Returns the position of a response, or None if it does not occur.
        self.find = find

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        positions = range(self.size)[index]
        if isinstance(positions, range):
            return tuple(self._response_at(position) for position in positions)
        return self._response_at(positions)

    def __contains__(self, response: object) -> bool:
        return self.find(response) is not None


def two_weights(epsilon: Fraction, steps: int = 1) -> tuple[int, int]:
    """Return weights (heavy, light) with heavy/light just below e^(epsilon/steps).

    light = 2^B and heavy = ⌊2^B e^epsilon⌋ with B = 40 + max(0, ⌈log₂ 1/epsilon⌉): the loss
    log(heavy/light) is at most epsilon, exactly, and misses it by less than 2^-40 of itself.
    """
    top, bottom = epsilon.as_integer_ratio()
    return _two_weights(top, bottom * steps)


@lru_cache(maxsize=1 << 14)
def _two_weights(top: int, bottom: int) -> tuple[int, int]:
    # Epsilon is passed in parts, because hashing a fraction takes long.
    bits = 40
    while top << (bits - 40) < bottom:
        bits += 1
    return scaled_exp(Fraction(top, bottom), bits), 1 << bits


@dataclass(frozen=True, slots=True)
class BitProbabilities:
    """The probabilities of bits of a response being one, equal for all inputs."""

    #: The bit of the input is one.
    true_bit: Fraction
    #: A certain other bit is one.
    other_bit: Fraction
    #: The bit of the input is one, and that of a certain other value is zero.
    only_true: Fraction
    #: The bit of a certain other value is one, and that of the input is zero.
    only_other: Fraction
    independent: bool


class Pairwise(FiniteLikelihood):
    r"""A likelihood where each response supports some values, and all others equally less.

    .. math:: \log P[y \mid x] = c(y) + \varepsilon 1[x \in A_y]

    So D(x, x') is epsilon if some response separates the two values, and zero if none does.
    Being separated by no response must be an equivalence relation.
    """

    def __init__(self, domain: FiniteSet, heavy: int, light: int) -> None:
        self.domain = domain
        self._heavy = heavy
        self._light = light

    @abstractmethod
    def supported_values(self, position: int) -> NDArray[np.bool_]:
        """Return a mask of the values A_y that are likelier than all others given this response."""

    @abstractmethod
    def separating_response(self, value: int, other: int) -> int:
        """Return a response that supports a value, and not another that is separated from it."""

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction] | None:
        """The probabilities that a response supports the true value, and a value separated from it.

        None if they are not equal for all values.
        """
        return None

    @property
    def bits(self) -> BitProbabilities | None:
        """The probabilities of the bits of a response, for any value.

        None if responses do not consist of a bit for each value.
        """
        return None

    @property
    def collision_probability(self) -> Fraction:
        """The probability over seeds of the query that two values are not separated."""
        return Fraction(0)

    def separated_from(self, value: int) -> NDArray[np.bool_]:
        """Return a mask of the values that some response separates from this one.

        By default these are all other values.
        """
        separated = np.ones(len(self.domain), dtype=np.bool_)
        separated[value] = False
        return separated

    def weights(self, position: int) -> Weights:
        weights = np.repeat(as_weights([self._light], self._heavy), len(self.domain))
        weights[self.supported_values(position)] = self._heavy
        return weights

    def _term(self, position: int) -> Term:
        return self._two.for_classes(self.supported_values(position))

    @cached_property
    def _two(self) -> Term:
        return Term.of(as_weights([self._light, self._heavy], self._heavy))

    def weight_labels(self, position: int) -> NDArray[Any]:
        return self.supported_values(position)

    def powers(self, position: int, indices: Sequence[int]) -> list[Powers]:
        heavy, light = ((self._heavy, 1),), ((self._light, 1),)
        return [
            heavy if supported else light
            for supported in self.supported_values(position)[indices].tolist()
        ]

    @cached_property
    def epsilon(self) -> Nats:
        ratio = Fraction(self._heavy, self._light)
        return Nats(ratio=ratio) if self.separated_from(0).any() else Nats()

    def delta(self, ratio: Fraction) -> Fraction:
        if self.support_probabilities is None:
            return super().delta(ratio)
        # Responses that support one value and not the other have probabilities a and a·light/heavy;
        # a·(1 - light/heavy) is the difference of the support probabilities.
        if self.epsilon == Nats():
            return Fraction(0)
        true_support, other_support = self.support_probabilities
        excess_weight = max(Fraction(0), self._heavy - ratio * self._light)
        return (true_support - other_support) * excess_weight / (self._heavy - self._light)
