"""Integers with symmetric noise, clamped to a range of responses, and scores on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expost._format import format_number, format_range
from expost.domains import Box, Domain, FiniteSet, Point
from expost.errors import InvalidInput, at
from expost.files.reading import LARGEST_INTEGER, array_at
from expost.numbers import Nats, exact, positive
from expost.queries._divergences import excess
from expost.queries._likelihood import (
    BoxLikelihood,
    BySufficientTerms,
)
from expost.queries._query import Query, QueryWithEpsilon
from expost.queries.scores._aligned import (
    BoxScore,
    DoubleForm,
    Ends,
    between,
    check_within,
)
from expost.queries.scores._one_bit import read_range
from expost.queries.scores._score import AffineScore, score_from_fields
from expost.sampling import Pmf
from expost.terms import Powers, Term, Weights, as_weights

__all__ = [
    "GridQuery",
    "IntegerNoise",
    "NoisyInteger",
    "NoisyLikelihood",
    "NoisyOnBox",
    "NoisyOnSet",
    "OnGrid",
    "affine_form",
    "read_grid",
]

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

    def fall(self, response: int, lowest: int, highest: int) -> tuple[int, int] | None:
        """Return the factor, heavy/light, by which a response's weights fall from step to step.

        None if they do not fall by one factor at all values between the lowest and the highest.
        """

    def weight(self, value: int, response: int) -> int:
        """Return the weight of a response: likelihood ratios are monotone in the response."""

    def draw(self, uniform: int) -> int:
        """Return the noise for a uniform integer below ``total``, before clamping."""


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

    def pmf(self, index: int) -> Pmf:
        return NoisyInteger(self._noise, int(self._values[index]))

    def weights(self, position: int) -> Weights:
        return _weights(self._noise, self._values, position)

    def _term(self, position: int) -> Term:
        falling = self._falling(position)
        return super()._term(position) if falling is None else Term.geometric(*falling)

    def weight_labels(self, position: int) -> NDArray[Any]:
        falling = self._falling(position)
        return super().weight_labels(position) if falling is None else falling[0]

    def powers(self, position: int, indices: Sequence[int]) -> list[Powers]:
        falling = self._falling(position)
        if falling is None:
            return super().powers(position, indices)
        distances, heavy, light = falling
        return [((heavy, -distance), (light, distance)) for distance in distances[indices].tolist()]

    def _falling(self, position: int) -> tuple[NDArray[np.int64], int, int] | None:
        """Return the distances from a response, and the factor per step if there is one."""
        response = self._noise.low + position
        fall = self._noise.fall(response, *self._extremes)
        return None if fall is None else (np.abs(self._values - response), *fall)

    @cached_property
    def _extremes(self) -> tuple[int, int]:
        return int(self._values.min()), int(self._values.max())

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self._noise, *self._extremes, ratio)


class NoisyOnBox(BoxLikelihood):
    """The likelihood of a noisy score on a grid, over a box. A subclass adds the terms."""

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
    def smallest_loss_responses(self) -> Sequence[int]:
        return sorted(_middles(*self.extremes, self.noise.low))

    def _value(self, point: Point) -> int:
        return self.query.first + int(self.query.steps(np.array([self.score.at(point)]))[0])

    def pmf(self, point: Point) -> Pmf:
        return NoisyInteger(self.noise, self._value(point))

    def least_surprisal(self, position: int) -> float:
        # No value is beyond the end responses, so a response is likeliest at the closest value.
        lowest, highest = self.extremes
        closest = max(lowest, min(highest, self.noise.low + position))
        return NoisyInteger(self.noise, closest).surprisal(position)

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        return _weights(self.noise, self._values(columns), position)

    def logs(self, position: int, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        response = self.noise.low + position
        fall = self.noise.fall(response, *self.extremes)
        if fall is None:
            return super().logs(position, columns)
        rate = Nats(ratio=Fraction(*fall)).nearest
        return np.abs(self._values(columns) - response) * -rate

    def _values(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
        return self.query.first + self.query.steps(self.score.at(columns))

    def delta(self, ratio: Fraction) -> Fraction:
        return _delta(self.noise, *self.extremes, ratio)


class NoisyOnSet(NoisyLikelihood):
    """The likelihood of a noisy score on a grid; its values are computed when first needed."""

    def __init__(self, domain: FiniteSet, query: OnGrid, noise: IntegerNoise) -> None:
        self.domain = domain
        self._query = query
        self._noise = noise
        self._score = query.score.on_set(domain)
        check_within(self._score, query.range)
        self.responses = range(noise.low, noise.high + 1)

    @cached_property
    def _values(self) -> NDArray[np.int64]:  # type: ignore[override]
        return self._query.first + self._query.steps(self._score.values)


def _middles(lowest: int, highest: int, first: int) -> set[int]:
    """Return the positions of the responses nearest to the middle of all values."""
    return {(lowest + highest + odd) // 2 - first for odd in (0, 1)}


def _weights(noise: IntegerNoise, values: NDArray[np.int64], position: int) -> Weights:
    response = noise.low + position
    distinct, inverse = np.unique(values, return_inverse=True)
    weights = [noise.weight(value, response) for value in distinct.tolist()]
    return as_weights(weights, noise.total)[inverse]


def _delta(noise: IntegerNoise, lowest: int, highest: int, ratio: Fraction) -> Fraction:
    # The two extreme values have the largest excess of all pairs: docs/theory/approximate.md.
    responses = range(noise.low, noise.high + 1)
    if len(responses) * noise.total.bit_length() > _MOST_BITS:
        raise InvalidInput("the probabilities of this query have too many digits for its delta")
    pairs = ((noise.weight(lowest, k), noise.weight(highest, k)) for k in responses)
    return excess(pairs, ratio) / noise.total


@dataclass(frozen=True, eq=False, repr=False)
class OnGrid(Query):
    """A query about a score that is rounded to a grid; both ends of its range are on the grid."""

    score: AffineScore
    range: Ends
    grid: Fraction

    #: The lower end, in steps of the grid.
    first: int = field(init=False)
    #: The count of steps between the ends.
    cells: int = field(init=False)

    def __post_init__(self) -> None:
        with at("grid"):
            object.__setattr__(self, "grid", positive(self.grid, at_most=LARGEST_INTEGER))
            first, last = _steps(self.range, *self.grid.as_integer_ratio())
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "cells", last - first)

    @property
    def asks(self) -> str:
        return self._asks(self.score.coordinates)

    def asks_on(self, domain: Domain) -> str:
        return self._asks(self.score.describe(domain))

    def _asks(self, coordinates: str) -> str:
        ends = format_range(*self.range)
        return f"a score {ends} of {coordinates}, with noise"

    def tree(self) -> dict[str, Any]:
        return {**self.score.tree(), "range": [float(end) for end in self.range], "grid": self.grid}

    def steps(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest grid points to scores, in steps above the lower end."""
        low, high = map(float, self.range)
        return np.asarray(np.rint(between(scores, low, high) * self.cells).astype(np.int64))


@lru_cache(maxsize=1024)
def _steps(ends: Ends, step: int, under: int) -> tuple[int, int]:
    """Return both ends of a range in steps of step/under; refuse ends that are not on the grid."""

    def cell_of(end: int | float) -> int:
        top, bottom = (end if isinstance(end, int) else exact(end)).as_integer_ratio()
        cell, remainder = divmod(top * under, bottom * step)
        if remainder:
            raise InvalidInput(f"the end {format_number(end)} of the range is not on the grid")
        return cell

    return cell_of(ends[0]), cell_of(ends[1])


@dataclass(frozen=True, eq=False, repr=False)
class GridQuery(OnGrid, QueryWithEpsilon):
    """A query on a grid that has an epsilon."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        QueryWithEpsilon.__post_init__(self)
        super().__post_init__()

    def tree(self) -> dict[str, Any]:
        return {**super().tree(), "epsilon": self.epsilon}


def read_grid(fields: dict[str, Any]) -> tuple[AffineScore, Ends, Any]:
    """Read score and range of a file; return them with the unread grid."""
    ends = array_at(fields, "range")
    return score_from_fields(fields), read_range(ends), fields["grid"]


def affine_form(score: BoxScore, scale: Fraction, shift: Fraction) -> DoubleForm | None:
    """Return scale · score + shift; None if that is too large for doubles."""
    under = scale.denominator * shift.denominator
    return score.form(int(scale * under), int(shift * under), under)
