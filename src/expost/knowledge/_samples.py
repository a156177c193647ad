"""Beliefs on a box, given by sample points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import Box, Categories, Integers, Scalar, Side
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import plain_tree
from expost.files.reading import as_list, read_integer
from expost.files.tables import as_array, column_names, is_frame
from expost.knowledge._belief import check_same_domain
from expost.knowledge._grammar import named_rows, parse_predicate
from expost.transcript import Transcript

__all__ = ["GainEstimate", "Samples", "estimated_gain"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Samples:
    """An empirical prior on a box: points that are all equally likely.

    Rows are lists in the order of the coordinates, dictionaries, or a pandas or polars frame.

    >>> import expost as xp
    >>> Samples(xp.Box(age=(10, 100)), [[34], [52], [71]])
    Samples(3 points)
    """

    box: Box
    points: tuple[tuple[Scalar, ...], ...]
    #: The points as queries read them, with a column for each category.
    columns: Floats

    def __init__(self, box: Box, rows: Any) -> None:
        expect(box, Box, "a Box")
        if is_frame(rows):
            names = list(map(str, column_names(rows)))
            rows = [dict(zip(names, row, strict=True)) for row in as_array(rows).tolist()]
        points = []
        for index, row in enumerate(as_list(rows)):
            point = box.locate(row)
            if point is None:
                raise InvalidInput("is not a point of the box", f"rows[{index}]")
            points.append(point)
        if len(points) < 2:
            raise InvalidInput("at least two points are needed", "rows")
        columns = np.array(points, dtype=np.float64).T
        vars(self).update(box=box, points=tuple(map(box.value, points)), columns=columns)

    @classmethod
    def uniform(cls, box: Box, count: int, *, seed: int = 0) -> Samples:
        """Draw points uniformly from a box; the same ``seed`` gives the same points.

        >>> import expost as xp
        >>> Samples.uniform(xp.Box(age=(10, 100), sex=xp.integers(0, 1)), 500, seed=7)
        Samples(500 points)
        """
        expect(box, Box, "a Box")
        count = read_at("count", read_integer, count, at_least=2)
        draw = np.random.default_rng(read_at("seed", read_integer, seed, at_least=0))
        columns = [_draw_coordinates(side, count, draw) for side in box.sides]
        return cls(box, list(zip(*columns, strict=True)))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"Samples({len(self):,} points)"

    def likelihoods(self, transcript: Transcript) -> Floats:
        """Return Pr(responses | point) for every point, relative to the largest of them."""
        check_same_domain(transcript, Transcript, "a transcript", self.box, "samples")
        total = np.zeros(len(self))
        for part in transcript.tally.summands:
            total += part.times * part.query.on(self.box).logs(part.position, list(self.columns))
        return np.asarray(np.exp(total - total.max()))


def _draw_coordinates(side: Side, count: int, draw: np.random.Generator) -> list[Any]:
    if isinstance(side, Categories):
        return [side.labels[position] for position in draw.integers(len(side.labels), size=count)]
    if isinstance(side, Integers):
        return [int(x) for x in draw.integers(side.lower, side.upper + 1, count)]
    # Between its bounds whatever they are: their difference could overflow.
    share = draw.random(count)
    points = side.lower * (1 - share) + side.upper * share
    return list(points.clip(side.lower, side.upper).tolist())


@dataclass(frozen=True, slots=True)
class GainEstimate:
    """The confidence in a statement before and after some responses, from samples.

    If these points are the belief itself, ``before`` is exact, and ``after`` and
    ``gain`` are exact up to the rounding of doubles. For the distribution that the points were
    drawn from, all three are estimates. :func:`estimated_gain` returns it, and has an example.
    """

    before: Fraction
    after: float
    #: In nats: log(after / before); minus infinity if the responses rule the statement out.
    gain: float
    #: Of ``gain``, as an estimate for the distribution that the points were drawn from.
    standard_error: float

    def tree(self) -> dict[str, Any]:
        """Return the estimate as JSON."""
        return plain_tree({**asdict(self), "before": float(self.before)})


def estimated_gain(samples: Samples, statement: Any, transcript: Transcript) -> GainEstimate:
    r"""Estimate the knowledge gain about a statement on a box, from samples of the prior.

    .. math:: \log \frac{\overline{f w}}{\overline{f}\;\overline{w}}, \quad w = P[y \mid x]

    Here f is 1 where the statement holds and 0 elsewhere, and bars are means over the samples.
    ``statement`` is a text such as ``"age >= 60"``, or a function of a dictionary (of a tuple, on a
    box without names) that returns True or False. The absolute value of the gain is at most the
    realized loss. The standard error is that of the delta method, for independent samples. Proof:
    docs/theory/knowledge.md.

    >>> import expost as xp
    >>> person = xp.Box(age=(10, 100))
    >>> risk = xp.logistic({"age": 0.1}, intercept=-6, epsilon=2)
    >>> samples = Samples(person, [[age] for age in range(20, 91)])
    >>> found = estimated_gain(samples, "age >= 60", xp.Transcript(person).add(risk, 1))
    >>> found.before, round(found.after, 3), round(found.gain, 3)
    (Fraction(31, 71), 0.695, 0.465)
    """
    expect(samples, Samples, "Samples")
    holds = _holds(samples, statement)
    weights = samples.likelihoods(transcript)
    count = int(holds.sum())
    if count == 0:
        raise InvalidInput("the statement holds for none of the samples")
    before = Fraction(count, len(samples))
    after = math.fsum(weights[holds]) / math.fsum(weights)
    gain = math.log(after / before) if after > 0 else -math.inf
    return GainEstimate(before, after, gain, _standard_error(holds, weights))


def _holds(samples: Samples, statement: Any) -> NDArray[np.bool_]:
    with at("statement", " "):
        test: Callable[[Any], Any]
        arguments: Any = named_rows(samples.box, samples.points)
        if isinstance(statement, str):
            test = parse_predicate(statement, samples.box)
        else:
            if not callable(statement):
                kind = type(statement).__name__
                raise InvalidInput(f"must be a string or a function, not {kind}")
            test = statement
            if samples.box.names is None:
                arguments = samples.points
        results = [test(argument) for argument in arguments]
        if not all(isinstance(result, (bool, np.bool_)) for result in results):
            raise InvalidInput("must return True or False")
    return np.array(results, dtype=np.bool_)


def _standard_error(holds: NDArray[np.bool_], weights: Floats) -> float:
    """Estimate the error of log mean(fw) - log mean(f) - log mean(w) by influence functions."""
    inside = np.where(holds, weights, 0.0)
    if not inside.any():
        return math.inf
    influence = inside / inside.mean() - holds / holds.mean() - weights / weights.mean()
    return float(influence.std(ddof=1) / math.sqrt(len(weights)))
