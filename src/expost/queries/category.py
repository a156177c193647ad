"""Finite queries about one coordinate of a box that has categories.

Such a query sees the categories as a finite set. In the columns of the coordinate, exactly one of
which is 1, the logarithm of a weight is Σ_j x_j·log w(j): affine, and never positive if the largest
of the logarithms is subtracted. So it is a tent, -|z| = z, of which only one side is ever used.
Proof: docs/theory/score_terms.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Point
from expost.errors import InvalidInput
from expost.numbers import UNIT, up
from expost.queries.lazy import Lazy
from expost.queries.likelihood import BoxLikelihood, BySufficientTerms, FiniteLikelihood
from expost.queries.values.pairwise import Pairwise
from expost.sampling import Pmf
from expost.terms import Link, ScoreTerm, Weights

__all__ = ["CategoryLikelihood"]

# Each of so many responses is a search of its own.
_MOST_TRIED = 64


class CategoryLikelihood(BoxLikelihood):
    """The likelihood of a query that sees the categories of a coordinate: that on these."""

    def __init__(self, domain: Box, columns: range, on_part: FiniteLikelihood) -> None:
        self.domain = domain
        self.columns = columns
        """Those of the coordinate."""
        self.on_part = on_part
        self.responses = on_part.responses
        if on_part.epsilon.is_infinite:
            raise InvalidInput(
                "on a box every response must be possible for every category; a FiniteSet or "
                "Attributes have no such limit"
            )

    def position(self, response: Any) -> int | None:
        return self.on_part.position(response)

    def pmf(self, place: Point) -> Pmf:
        return self.on_part.pmf([place[j] for j in self.columns].index(1))

    def weights(self, position: int, columns: Sequence[NDArray[np.float64]]) -> Weights:
        own = np.array([columns[j] for j in self.columns])
        return np.asarray(self.on_part.weights(position)[own.argmax(axis=0)])

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
        """Responses that tell any two categories apart as well as any, or too many to be tried."""
        on_part = self.on_part
        if not isinstance(on_part, Pairwise):
            assert isinstance(on_part, BySufficientTerms), "there is no third kind"
            return on_part.sufficient
        found: dict[int, None] = {}
        for value in range(len(self.columns)):
            for other in np.flatnonzero(on_part.told_from(value)).tolist():
                if len(found) <= _MOST_TRIED:
                    found[on_part.telling(value, other)] = None
        return list(found) or [0]

    @property
    def sufficient(self) -> Sequence[int] | None:
        return self._sufficient if len(self._sufficient) <= _MOST_TRIED else None

    @cached_property
    def loudest(self) -> Sequence[int]:
        return [max(self._sufficient, key=lambda position: self.on_part.term(position).loss)]

    @property
    def corners(self) -> tuple[Point, Point]:
        """Where the loudest response is least likely, and where it is likeliest."""
        logs = self.on_part.term(self.loudest[0]).logs
        return self._point(int(logs.argmin())), self._point(int(logs.argmax()))

    def _point(self, category: int) -> Point:
        """A point with this category; no other coordinate matters."""
        point = [column.lower for column in self.domain.columns]
        for group in self.domain.groups:
            point[group.start] = 1
        for place, j in enumerate(self.columns):
            point[j] = int(place == category)
        return tuple(point)

    @property
    def quietest(self) -> Sequence[int] | None:
        listed = not isinstance(self.responses, Lazy)
        return range(len(self.responses)) if listed else None

    @property
    def footprint(self) -> int:
        return super().footprint + self.on_part.footprint

    def delta(self, ratio: Fraction) -> Fraction:
        return self.on_part.delta(ratio)
