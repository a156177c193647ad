"""Two values that the responses tell apart most: what a loss means, by example.

Over a finite domain and of records these are the extremes of the log-likelihood. Over a box they
are the best points that a search has found: the ratio of their likelihoods is exact, from the
sampled weights, and the loss is at least its logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expost.domains import Box, Point, Record, Value
from expost.queries import BoxLikelihood
from expost.transcript import Tally

__all__ = ["Apart", "apart_on_box", "exact_ratio"]

# It is a courtesy, and takes a pass over all terms for each coordinate.
_MOST_WORK = 100_000
_ANY = 10

Given = list[tuple[BoxLikelihood, int, int]]
"""Responses by their positions, and how often each was given."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A value for which the responses are likeliest, and one for which they are least likely."""

    likeliest: Value | Record
    unlikeliest: Value | Record
    difference: float
    """How far apart their log-likelihoods are, about; infinite if the second is ruled out."""
    others: tuple[int, int] | None
    """How many other values are as likely as either, as far as doubles can tell; None if they are
    not counted, as on a box or of records."""
    example: bool = False
    """Whether others may be further apart, because these are what a search has found."""


def exact_ratio(tally: Tally, box: Box, above: Point, below: Point) -> Fraction:
    """How much likelier the responses are at one point of a box than at another, exactly."""
    ratio = Fraction(1)
    for likelihood, position, times in _given(tally, box):
        high, low = (likelihood.pmf(point).weight(position) for point in (above, below))
        ratio *= Fraction(high, low) ** times
    return ratio


def apart_on_box(tally: Tally, box: Box, above: Point, below: Point) -> Apart | None:
    """Two points as values of a box; None if nothing tells them apart."""
    given = _given(tally, box)
    high, low = _logs(given, above, below)
    if not high > low:
        return None
    work = len(given) * (_ANY + len(box.columns))
    for place in box.places[: _MOST_WORK // max(1, work)]:
        # Coordinates that make no difference get the same value in both.
        closer = tuple(above[j] if j in place else x for j, x in enumerate(below))
        (log,) = _logs(given, closer)
        if log <= low:
            below, low = closer, log
    return Apart(box.value(above), box.value(below), high - low, None, example=True)


def _given(tally: Tally, box: Box) -> Given:
    return [(part.query.on(box), part.position, part.times) for part in tally.summands]


def _logs(given: Given, *points: Point) -> list[float]:
    """The log-likelihoods of points, up to a constant."""
    columns = [np.array(column, dtype=float) for column in zip(*points, strict=True)]
    logs = [times * likelihood.logs(position, columns) for likelihood, position, times in given]
    return [math.fsum(column) for column in np.array(logs).reshape(-1, len(points)).T.tolist()]
