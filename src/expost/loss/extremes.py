"""Two values that the responses tell apart most: what a loss means, by example.

Over a finite domain these are the extremes of the log-likelihood. Over a box they are good points
that were found by trying, and prove nothing; what bounds the loss is in ``extrema``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Categories, Integers, Value
from expost.transcript import Tally

__all__ = ["Apart", "apart_on_box"]

Doubles = NDArray[np.float64]

_TRIED = 256
_CLIMBING = 8
_HALVINGS = 16
_ROUNDS = 32
_MOST = 2_000_000
"""How often a response is evaluated on one climb, about."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A value for which the responses are likeliest, and one for which they are least likely."""

    likeliest: Value
    unlikeliest: Value
    difference: float
    """Of their log-likelihoods, about; infinite if the responses rule the second one out."""
    others: tuple[int, int] | None
    """How many more values are as likely as either, as far as doubles tell; None over a box."""


def apart_on_box(tally: Tally, box: Box) -> Apart | None:
    """The two values; None if nothing tells values apart."""
    surface = _Surface(tally, box)
    (above, high), (below, low) = surface.summit(1), surface.summit(-1)
    if not high > low:
        return None
    for side in range(len(below)):
        # Coordinates that make no difference are the same in both.
        closer = below.copy()
        closer[side] = above[side]
        if surface.at(closer[np.newaxis])[0] <= low:
            below = closer
    return Apart(surface.point(above), surface.point(below), high - low, None)


class _Surface:
    """The log-likelihood on a box whose sides are scaled to [0, 1], up to a constant."""

    def __init__(self, tally: Tally, box: Box) -> None:
        self._box = box
        # Categories go by their number.
        sides = [
            Integers(0, len(side.labels) - 1) if isinstance(side, Categories) else side
            for side in box.sides
        ]
        self._lower = np.array([float(side.lower) for side in sides])
        self._upper = np.array([float(side.upper) for side in sides])
        # How many steps an integer coordinate has; none for a real one, or one that is fixed.
        self._steps = np.array(
            [side.upper - side.lower if isinstance(side, Integers) else 0 for side in sides],
            dtype=float,
        )
        self._summands = [
            (part.query.on(box), part.position, part.times) for part in tally.summands
        ]

    def at(self, points: Doubles) -> Doubles:
        """The log-likelihood of rows of scaled coordinates."""
        columns = self._columns(points)
        result = np.zeros(len(points))
        for likelihood, position, times in self._summands:
            result += times * likelihood.logs(position, columns)
        return result

    def summit(self, sign: int) -> tuple[Doubles, float]:
        """Where the log-likelihood (its negative for -1) is as large as was found, and its value.

        Many points are tried, and the best ones climb: one coordinate at a time, to an end of its
        side, or up or down by a step that gets smaller.
        """
        size = len(self._lower)
        points = self._snapped(np.vstack([_spread_out(size), np.zeros(size), np.ones(size)]))
        points = points[np.argsort(-sign * self.at(points), kind="stable")[:_CLIMBING]]
        values = sign * self.at(points)
        work = 4 * size * len(points) * max(1, len(self._summands))
        for step in 0.5 ** np.linspace(1, _HALVINGS, min(_ROUNDS, max(4, _MOST // work))):
            moved = self._snapped(np.concatenate([_moves(point, step) for point in points]))
            heights = (sign * self.at(moved)).reshape(len(points), -1)
            moved = moved.reshape(*heights.shape, size)
            best = heights.argmax(axis=1)
            for place in np.flatnonzero(heights.max(axis=1) > values):
                points[place] = moved[place, best[place]]
                values[place] = heights[place, best[place]]
        top = int(values.argmax())
        return points[top], sign * float(values[top])

    def point(self, scaled: Doubles) -> tuple[int | float | str, ...]:
        """The coordinates of a point, as a value of the box has them."""
        columns = zip(self._box.columns, self._columns(scaled[np.newaxis]), strict=True)
        return self._box.value(
            [int(x[0]) if isinstance(column, Integers) else float(x[0]) for column, x in columns]
        )

    def _columns(self, points: Doubles) -> list[Doubles]:
        result: list[Doubles] = []
        for side, x in zip(self._box.sides, self._unscaled(points).T, strict=True):
            if isinstance(side, Categories):
                result += [(x == k).astype(float) for k in range(len(side.labels))]
            else:
                result.append(x)
        return result

    def _unscaled(self, points: Doubles) -> Doubles:
        # Not lower + share · (upper - lower): that difference may be too large for a double.
        inside = self._lower * (1 - points) + self._upper * points
        inside = np.clip(inside, self._lower, self._upper)
        return np.where(self._steps > 0, np.rint(inside), inside)

    def _snapped(self, points: Doubles) -> Doubles:
        steps = np.maximum(self._steps, 1)
        return np.where(self._steps > 0, np.rint(points * steps) / steps, points)


def _spread_out(size: int) -> Doubles:
    """Points that fill the unit cube evenly: multiples of powers of a root, modulo 1."""
    root = 1.0
    for _ in range(60):
        root = (1 + root) ** (1 / (size + 1))  # towards root^(size + 1) = root + 1
    return (0.5 + np.outer(np.arange(_TRIED), root ** -np.arange(1.0, size + 1))) % 1.0


def _moves(point: Doubles, step: float) -> Doubles:
    """The points where one coordinate is a step up or down, or at an end."""
    moves = np.tile(point, (4, len(point), 1))
    each = np.arange(len(point))
    for kind, moved in enumerate((point + step, point - step, 0 * point, 0 * point + 1)):
        moves[kind, each, each] = moved
    return np.clip(moves.reshape(-1, len(point)), 0.0, 1.0)
