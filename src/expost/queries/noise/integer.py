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
from expost.numbers import Nats
from expost.queries.hockey_stick import excess
from expost.queries.likelihood import BoxLikelihood, BySufficientTerms, FiniteLikelihood
from expost.queries.noise.grid import OnGrid, grid_steps, integer_position
from expost.queries.scores.aligned import SetScore, alike, check_within
from expost.sampling import Pmf
from expost.terms import Powers, Term, Weights, as_weights

__all__ = ["IntegerNoise", "NoisyInteger", "NoisyLikelihood", "NoisyOnBox", "noisy_on_set"]

_MOST_BITS = 1 << 26


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

    @property
    def fall(self) -> tuple[int, int]:
        """The factor, heavy/light, by which weights fall from one step to the next."""
        ...

    def falls(self, response: int, lowest: int, highest: int) -> bool:
        """Whether the weights of a response fall by that factor at all values between these."""
        ...

    def weight(self, value: int, response: int) -> int:
        """The weight of a response: its likelihood ratios are monotone in it."""
        ...

    def draw(self, uniform: int) -> int:
        """The noise for a uniform integer below ``total``, before it is clamped."""
        ...


class NoisyInteger(Pmf):
    """A value with clamped noise. A position counts from the lowest response."""

    __slots__ = ("_noise", "_value", "total")

    def __init__(self, noise: IntegerNoise, value: int) -> None:
        self._noise = noise
        self._value = value
        self.total = noise.total

    def pick(self, uniform: int) -> int:
        low, high = self._noise.low, self._noise.high
        return max(low, min(high, self._value + self._noise.draw(uniform))) - low

    def weight(self, position: int) -> int:
        return self._noise.weight(self._value, self._noise.low + position)


class NoisyLikelihood(BySufficientTerms):
    """Responses are the integers of the range; likelihood ratios are monotone in the response."""

    def __init__(
        self, domain: FiniteSet, values: Sequence[int] | NDArray[np.int64], noise: IntegerNoise
    ) -> None:
        self.domain = domain
        self._values = np.array(values, dtype=np.int64)
        self._noise = noise
        self.responses = range(noise.low, noise.high + 1)

    @property
    def sufficient(self) -> Sequence[int]:
        return 0, len(self.responses) - 1

    @cached_property
    def least_loss(self) -> Nats:
        # Between the ends, the response nearest to the middle of the values reveals least.
        last = len(self.responses) - 1
        middles = _middles(*self._extremes, self._noise.low)
        inner = {max(1, min(last - 1, middle)) for middle in middles} if last > 1 else set()
        return min(self.term(position).loss for position in {0, last, *inner})

    def position(self, response: Any) -> int | None:
        return integer_position(self.responses, response)

    def pmf(self, place: int) -> Pmf:
        return NoisyInteger(self._noise, int(self._values[place]))

    def weights(self, position: int) -> Weights:
        return _weights(self._noise, self._values, position)

    def _term(self, position: int) -> Term:
        distances = self._distances(position)
        if distances is None:
            return super()._term(position)
        return Term.geometric(distances, *self._noise.fall)

    def alike(self, position: int) -> NDArray[Any]:
        distances = self._distances(position)
        return super().alike(position) if distances is None else distances

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        distances = self._distances(position)
        if distances is None:
            return super().powers(position, places)
        heavy, light = self._noise.fall
        return [((heavy, -distance), (light, distance)) for distance in distances[places].tolist()]

    def _distances(self, position: int) -> NDArray[np.int64] | None:
        """How far the values are from a response, if weights are powers of that distance."""
        response = self._noise.low + position
        if not self._noise.falls(response, *self._extremes):
            return None
        return np.abs(self._values - response)

    @cached_property
    def _extremes(self) -> tuple[int, int]:
        return int(self._values.min()), int(self._values.max())

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self._noise, *self._extremes, ratio)


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
        return NoisyInteger(self.noise, self._value(place))

    def least_surprisal(self, position: int) -> float:
        # No value is beyond the end responses, so a response is likeliest at the closest value.
        lowest, highest = self.extremes
        closest = max(lowest, min(highest, self.noise.low + position))
        return NoisyInteger(self.noise, closest).surprisal(position)

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        return _weights(self.noise, self._values(columns), position)

    def logs(self, position: int, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        response = self.noise.low + position
        if not self.noise.falls(response, *self.extremes):
            return super().logs(position, columns)
        rate = Nats(ratio=Fraction(*self.noise.fall)).nearest
        return np.abs(self._values(columns) - response) * -rate

    def _values(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
        return self.query.first + self.query.steps(self.score.at(columns))

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self.noise, *self.extremes, ratio)


def noisy_on_set(domain: FiniteSet, query: OnGrid, noise: IntegerNoise) -> FiniteLikelihood:
    """The likelihood of a score on a grid, over finitely many values."""
    score = query.score.on_set(domain)
    check_within(score, query.range)
    return _NoisyScore(domain, score, query, noise)


class _NoisyScore(NoisyLikelihood):
    """The same for a score, whose values are worked out when they are first needed."""

    def __init__(
        self, domain: FiniteSet, score: SetScore, query: OnGrid, noise: IntegerNoise
    ) -> None:
        self.domain = domain
        self._score = score
        self._query = query
        self._noise = noise
        self.responses = range(noise.low, noise.high + 1)

    @cached_property
    def _values(self) -> NDArray[np.int64]:  # type: ignore[override]
        return self._query.first + self._query.steps(self._score.values)

    @classmethod
    def prepare(cls, asked: Iterable[tuple[_NoisyScore, int]]) -> None:
        waiting = {id(one): one for one, _ in asked if "_values" not in one.__dict__}
        for group in alike(waiting.values(), lambda one: id(one.domain)):
            scores = SetScore.values_of([one._score for one in group])
            queries = [one._query for one in group]
            low, high = np.array([query.range for query in queries], dtype=np.float64).T[..., None]
            cells, first = np.array([(query.cells, query.first) for query in queries]).T[..., None]
            values = first + grid_steps(scores, low, high, cells)
            for one, row in zip(group, values, strict=True):
                one.__dict__["_values"] = row.copy()  # a row would keep all others


def _middles(lowest: int, highest: int, first: int) -> set[int]:
    """Positions of the responses that are nearest to the middle of all values."""
    return {(lowest + highest + odd) // 2 - first for odd in (0, 1)}


def _weights(noise: IntegerNoise, values: NDArray[np.int64], position: int) -> Weights:
    response = noise.low + position
    distinct, places = np.unique(values, return_inverse=True)
    weights = [noise.weight(value, response) for value in distinct.tolist()]
    return as_weights(weights, noise.total)[places]


def _delta(noise: IntegerNoise, lowest: int, highest: int, ratio: Fraction) -> Fraction:
    # Of all pairs of values, the two extreme ones are told apart best: docs/theory/gaussian.md.
    responses = range(noise.low, noise.high + 1)
    if len(responses) * noise.total.bit_length() > _MOST_BITS:
        raise InvalidInput("the probabilities of this query have too many digits for its delta")
    pairs = (
        (noise.weight(lowest, response), noise.weight(highest, response)) for response in responses
    )
    return excess(pairs, ratio) / noise.total
