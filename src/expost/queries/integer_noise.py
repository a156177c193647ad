"""An integer with symmetric noise, clamped to a range of responses: what such queries share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, FiniteSet, Point
from expost.errors import InvalidInput
from expost.queries.base import BoxLikelihood, BySufficientTerms, FiniteLikelihood
from expost.queries.excess import excess
from expost.queries.linear import check_within
from expost.queries.score_grid import OnGrid, integer_position
from expost.queries.term import Weights, as_weights
from expost.rounding import Nats
from expost.sampling import Pmf

__all__ = ["IntegerNoise", "NoisyLikelihood", "NoisyOnBox", "noisy_on_set"]

_MOST_BITS = 1 << 31


class IntegerNoise(Protocol):
    """Integer weights of the responses low, low + 1, …, high for every value."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...

    @property
    def total(self) -> int:
        """The sum of the weights of all responses, for any value."""
        ...

    def weight(self, value: int, response: int) -> int:
        """The weight of a response: its likelihood ratios are monotone in it."""
        ...

    def pmf(self, value: int) -> Pmf:
        """The same as a distribution."""
        ...


class NoisyLikelihood(BySufficientTerms):
    """Responses are the integers of the range. Their likelihood ratios are monotone in them."""

    def __init__(self, domain: FiniteSet, values: Sequence[int], noise: IntegerNoise) -> None:
        self.domain = domain
        self._values = values
        self._noise = noise
        self.responses = range(noise.low, noise.high + 1)

    @property
    def footprint(self) -> int:
        return len(self.domain) * self._noise.total.bit_length() // 64

    @property
    def sufficient(self) -> Sequence[int]:
        return 0, len(self.responses) - 1

    @cached_property
    def least_loss(self) -> Nats:
        # Between the ends, the response nearest to the middle of the values tells least.
        last = len(self.responses) - 1
        middles = _middles(min(self._values), max(self._values), self._noise.low)
        inner = {max(1, min(last - 1, middle)) for middle in middles} if last > 1 else set()
        return min(self.term(position).loss for position in {0, last, *inner})

    def position(self, response: Any) -> int | None:
        return integer_position(self.responses, response)

    def pmf(self, place: int) -> Pmf:
        return self._noise.pmf(self._values[place])

    def weights(self, position: int) -> Weights:
        return _weights(self._noise, self._values, position)

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self._noise, min(self._values), max(self._values), ratio)


class NoisyOnBox(BoxLikelihood):
    """The same for a score on a grid, over a box. A subclass adds the terms."""

    def __init__(self, domain: Box, query: OnGrid, noise: IntegerNoise) -> None:
        self.domain = domain
        self.query = query
        self.noise = noise
        self.score = query.score.on_box(domain)
        check_within(self.score, query.range)
        self.responses = range(noise.low, noise.high + 1)

    @cached_property
    def extremes(self) -> tuple[int, int]:
        """The lowest and the highest value on the box."""
        low, high = map(self._value, self.corners)
        return low, high

    @property
    def corners(self) -> tuple[Point, Point]:
        return self.score.corner(-1), self.score.corner(1)

    @property
    def quietest(self) -> Sequence[int]:
        return sorted(_middles(*self.extremes, self.noise.low))

    def position(self, response: Any) -> int | None:
        return integer_position(self.responses, response)

    def _value(self, place: Point) -> int:
        return self.query.first + int(self.query.steps(np.array([self.score.at(place)]))[0])

    def pmf(self, place: Point) -> Pmf:
        return self.noise.pmf(self._value(place))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        steps = self.query.steps(self.score.at(columns)).tolist()
        return _weights(self.noise, (self.query.first + step for step in steps), position)

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self.noise, *self.extremes, ratio)


def noisy_on_set(domain: FiniteSet, query: OnGrid, noise: IntegerNoise) -> FiniteLikelihood:
    """The likelihood of a score on a grid, of finitely many values."""
    score = query.score.on_set(domain)
    check_within(score, query.range)
    values = [query.first + step for step in query.steps(score.values).tolist()]
    return NoisyLikelihood(domain, values, noise)


def _middles(lowest: int, highest: int, first: int) -> set[int]:
    """Positions of the responses that are nearest to the middle of all values."""
    return {(lowest + highest + odd) // 2 - first for odd in (0, 1)}


def _weights(noise: IntegerNoise, values: Iterable[int], position: int) -> Weights:
    response = noise.low + position
    return as_weights([noise.weight(value, response) for value in values], noise.total)


def _delta(noise: IntegerNoise, lowest: int, highest: int, ratio: Fraction) -> Fraction:
    # Of all pairs of values, the two extreme ones are told apart best: docs/theory/gaussian.md.
    responses = range(noise.low, noise.high + 1)
    if len(responses) * noise.total.bit_length() > _MOST_BITS:
        raise InvalidInput("the probabilities of this query have too many digits for its delta")
    pairs = (
        (noise.weight(lowest, response), noise.weight(highest, response)) for response in responses
    )
    return excess(pairs, ratio) / noise.total
