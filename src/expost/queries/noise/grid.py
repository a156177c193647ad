"""What queries about a score on a grid share: its steps, and its affine form in doubles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost.domains import Domain, Value
from expost.errors import InvalidInput
from expost.files.reading import LARGEST_INTEGER, number
from expost.numbers import exact, positive
from expost.queries.query import Query, read_epsilon
from expost.queries.scores.aligned import BoxScore, Form, between
from expost.queries.scores.one_bit import Ends, read_range
from expost.queries.scores.score import Score, read_score, weights_from_json

__all__ = ["GridQuery", "OnGrid", "affine_form", "grid_steps", "integer_position", "read_grid"]


@dataclass(frozen=True, eq=False, repr=False)
class OnGrid(Query):
    """A query about a score that is rounded to a grid; both ends of its range are on the grid."""

    score: Score
    range: Ends
    grid: Fraction

    first: int = field(init=False)
    """The number of the lower end."""
    cells: int = field(init=False)
    """How many steps there are between the ends."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "grid", positive(self.grid, at_most=LARGEST_INTEGER))
            first, last = _steps(self.range, *self.grid.as_integer_ratio())
        except InvalidInput as error:
            raise error.within("grid") from None
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "cells", last - first)

    @property
    def asks(self) -> str:
        return self._asks(self.score.coordinates)

    def asks_on(self, domain: Domain) -> str:
        return self._asks(self.score.told(domain))

    def _asks(self, coordinates: str) -> str:
        ends = f"from {self.range[0]:g} to {self.range[1]:g}"
        return f"a score {ends} of {coordinates}, with noise"

    def tree(self) -> dict[str, Any]:
        ends = [float(end) for end in self.range]
        return {**self.score.tree(), "range": ends, "grid": self.grid}

    def steps(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many steps above the lower end the grid points nearest to scores are."""
        low, high = map(float, self.range)
        return grid_steps(scores, low, high, self.cells)


def grid_steps(scores: NDArray[np.float64], low: Any, high: Any, cells: Any) -> NDArray[np.int64]:
    """The same; of the scores of many queries, by columns of their ends and cells."""
    return np.asarray(np.rint(between(scores, low, high) * cells).astype(np.int64))


@lru_cache(maxsize=1024)
def _steps(ends: Ends, step: int, under: int) -> tuple[int, int]:
    """The numbers of both ends of a range, which have to be on a grid of step/under."""

    def of(end: int | float) -> int:
        top, bottom = (end if isinstance(end, int) else exact(end)).as_integer_ratio()
        number, rest = divmod(top * under, bottom * step)
        if rest:
            raise InvalidInput(f"the end {end:g} of the range is not on the grid")
        return number

    return of(ends[0]), of(ends[1])


@dataclass(frozen=True, eq=False, repr=False)
class GridQuery(OnGrid):
    """A query on a grid that has an epsilon."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        super().__post_init__()

    def tree(self) -> dict[str, Any]:
        return {**super().tree(), "epsilon": self.epsilon}

    def with_epsilon(self, epsilon: Fraction) -> Self:
        return replace(self, epsilon=epsilon)


def read_grid(fields: dict[str, Any]) -> tuple[Score, Ends, Any]:
    """Score, range and grid of a file; the last one is yet to be read."""
    ends = fields["range"]
    if not isinstance(ends, list):
        raise InvalidInput("must be a list", "range")
    score = read_score(weights_from_json(fields["weights"]), fields.get("intercept", 0))
    return score, read_range(ends), fields["grid"]


def integer_position(responses: Sequence[Value], response: Any) -> int | None:
    """The position of a response, where responses are a range of integers."""
    try:
        integer = number(response)
    except InvalidInput:
        return None
    return responses.index(integer) if integer in responses else None


def affine_form(score: BoxScore, scale: Fraction, shift: Fraction) -> Form | None:
    """scale · score + shift; None where that is too large for doubles."""
    under = scale.denominator * shift.denominator
    return score.form(int(scale * under), int(shift * under), under)
