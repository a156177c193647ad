"""Four regressions on health data (paper, section 6.3 and appendix E): all sixteen outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from examples.health.regressions import PERSON, PRINTED
from expost.filters._bayesian import BayesianFilter
from expost.filters._simplified import SimplifiedFilter
from expost.loss import Odometer
from expost.numbers import Enclosure
from expost.queries import Query
from expost.solver import NODES, Effort
from expost.transcript import Transcript

__all__ = [
    "BUDGET",
    "PEOPLE",
    "PREDICTED",
    "PRINTED_LOSSES",
    "REGRESSIONS",
    "Outcome",
    "outcomes",
    "prediction",
    "weighted_median",
]

BUDGET = 4
EFFORT = Effort(gap=1e-4, nodes=NODES)

REGRESSIONS = {regression.outcome: regression.query() for regression in PRINTED}

PEOPLE = (
    {"age": 34, "sex": 0, "pressure": 110, "bmi": 18},
    {"age": 52, "sex": 1, "pressure": 140, "bmi": 23},
)
"""The mock data of the paper."""

PREDICTED = (
    {"heart": "0.94", "stroke": "0.06", "diabetes": "0.094", "sleep": "7.50"},
    {"heart": "0.45", "stroke": "0.027", "diabetes": "0.24", "sleep": "7.32"},
)
"""The predictions for them, as printed."""

PRINTED_LOSSES: dict[tuple[int, ...], float] = {
    (0, 0, 0, 0): 2.4639, (0, 0, 1, 0): 2.4084, (0, 0, 0, 12): 1.8036, (0, 0, 1, 12): 2.7253,
    (0, 1, 0, 0): 2.6865, (0, 1, 1, 0): 3.1550, (0, 1, 0, 12): 2.4642, (0, 1, 1, 12): 3.7449,
    (1, 0, 0, 0): 3.4761, (1, 0, 1, 0): 2.2610, (1, 0, 0, 12): 2.7511, (1, 0, 1, 12): 2.1975,
    (1, 1, 0, 0): 2.3362, (1, 1, 1, 0): 1.6863, (1, 1, 0, 12): 1.9062, (1, 1, 1, 12): 2.4959,
}  # fmt: skip
"""Losses by the responses of heart, stroke, diabetes and sleep, listed as in the paper."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One combination of responses to the four regressions."""

    responses: tuple[int, ...]
    printed: float
    loss: Enclosure
    chances: tuple[float, ...]
    """Its probability for each of the mock people."""
    any_fifth: float
    """The largest epsilon with which any fifth regression is accepted."""
    heart_again: float
    """The same if the first regression is asked again, under the Bayesian filter."""


def prediction(name: str, person: dict[str, int]) -> float:
    """What a regression predicts for a person, without noise.

    >>> round(prediction("heart", PEOPLE[0]), 2)
    0.94
    """
    tree: dict[str, Any] = REGRESSIONS[name].tree()
    score = tree["intercept"] + sum(tree["weights"][key] * person[key] for key in tree["weights"])
    if name == "sleep":
        return min(12.0, max(0.0, float(score)))
    return 1 / (1 + math.exp(-score))


def outcomes() -> list[Outcome]:
    """All sixteen outcomes, in the order of the paper."""
    return [_outcome(responses) for responses in PRINTED_LOSSES]


def _outcome(responses: tuple[int, ...]) -> Outcome:
    exchanges = list(zip(REGRESSIONS.values(), responses, strict=True))
    transcript = Transcript(PERSON)
    for query, response in exchanges:
        transcript = transcript.add(query, response)
    odometer = Odometer(transcript, effort=EFFORT)
    again = BayesianFilter(BUDGET).decide(odometer, REGRESSIONS["heart"]).largest_epsilon
    return Outcome(
        responses,
        PRINTED_LOSSES[responses],
        odometer.loss,
        tuple(_chance(exchanges, person) for person in PEOPLE),
        SimplifiedFilter(BUDGET).remaining(odometer),
        float(again or 0),
    )


def _chance(exchanges: Sequence[tuple[Query, int]], person: dict[str, int]) -> float:
    chance, value = Fraction(1), PERSON.locate(person)
    assert value is not None
    for query, response in exchanges:
        likelihood = query.on(PERSON)
        position = likelihood.position(response)
        assert position is not None
        chance *= likelihood.pmf(value).probability(position)
    return float(chance)


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The smallest value such that the values up to it have at least half of the weight.

    >>> weighted_median([1, 2, 3], [0.2, 0.2, 0.6])
    3
    """
    pairs = sorted(zip(values, weights, strict=True))
    sums = accumulate(weight for _, weight in pairs)
    half = math.fsum(weights) / 2
    return next(value for (value, _), total in zip(pairs, sums, strict=True) if total >= half)
