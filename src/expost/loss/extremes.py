"""Two values that the responses tell apart most: what a loss means, by example.

Over a finite domain these are the extremes of the log-likelihood. Over a box they are the best
points that the search has found: what they prove is worked out exactly, from the weights that are
sampled, and the loss is no less than that.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expost.domains import Box, Point, Value
from expost.loss.log_likelihood import BoxLogLikelihood, LogLikelihood
from expost.loss.odometer import Odometer
from expost.queries import BoxLikelihood, Query
from expost.transcript import Transcript

__all__ = ["Apart", "exact_ratio", "found_on_box", "most_apart"]


@dataclass(frozen=True, slots=True)
class Apart:
    """A value for which the responses are likeliest, and one for which they are least likely."""

    likeliest: Value
    unlikeliest: Value
    difference: float
    """Of their log-likelihoods, about; infinite if the responses rule the second one out."""
    others: tuple[int, int] | None
    """How many more values are as likely as either, as far as doubles tell; None over a box."""


def most_apart(odometer: Odometer) -> Apart | None:
    """The two values; None if no value is possible, or if nothing tells values apart."""
    total = odometer.log_likelihood
    if isinstance(total, LogLikelihood):
        return _on_set(total)
    return _on_box(odometer, total.domain)


def _on_set(total: LogLikelihood) -> Apart | None:
    if total.highest == -math.inf or total.highest - total.lowest <= 2 * total.error:
        return None
    top = np.flatnonzero(total.values >= total.highest - 2 * total.error)
    bottom = np.flatnonzero(total.values <= total.lowest + 2 * total.error)
    return Apart(
        total.domain.values[top[0]],
        total.domain.values[bottom[0]],
        total.highest - total.lowest,
        (len(top) - 1, len(bottom) - 1),
    )


def found_on_box(odometer: Odometer) -> tuple[Point, Point]:
    """The likeliest point and the unlikeliest that a search of one decision finds, by columns."""
    # A search over a box brings compiled kernels along.
    from expost.solver.spread import BoxSpread

    total = odometer.log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    spread = BoxSpread(total.counted, total.domain)
    spread.narrow(odometer.effort.deciding())
    return spread.highest_at, spread.lowest_at


def exact_ratio(transcript: Transcript, above: Point, below: Point) -> Fraction:
    """How much likelier the responses are at one point of a box than at another, exactly."""
    box = transcript.domain
    assert isinstance(box, Box)
    ratio = Fraction(1)
    for likelihood, position, times in _summands(transcript, box):
        high, low = (likelihood.pmf(point).probability(position) for point in (above, below))
        ratio *= (high / low) ** times
    return ratio


def _on_box(odometer: Odometer, box: Box) -> Apart | None:
    above, below = found_on_box(odometer)
    summands = _summands(odometer.transcript, box)
    high, low = _logs(summands, above), _logs(summands, below)
    if not high > low:
        return None
    for place in box.places:
        # Coordinates that make no difference are the same in both.
        closer = tuple(above[j] if j in place else x for j, x in enumerate(below))
        if _logs(summands, closer) <= low:
            below = closer
    return Apart(box.value(above), box.value(below), high - low, None)


def _logs(summands: list[tuple[BoxLikelihood, int, int]], point: Point) -> float:
    """The log-likelihood of a point, up to a constant."""
    columns = [np.array([float(x)]) for x in point]
    return math.fsum(
        times * float(likelihood.logs(position, columns)[0])
        for likelihood, position, times in summands
    )


def _summands(transcript: Transcript, box: Box) -> list[tuple[BoxLikelihood, int, int]]:
    """The responses that were given, each with how often that was."""
    queries: dict[int, Query] = {id(step.query): step.query for step in transcript.exchanges}
    given = Counter((id(step.query), step.response) for step in transcript.exchanges)
    result = []
    for (name, response), times in given.items():
        likelihood = queries[name].on(box)
        position = likelihood.position(response)
        assert position is not None, "a transcript holds only responses of its queries"
        result.append((likelihood, position, times))
    return result
