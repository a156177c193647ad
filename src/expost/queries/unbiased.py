"""What a response says of a score: a number that is right on average."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost.queries.scores.one_bit import Ends, Grid

__all__ = ["Meaning", "one_bit_meaning"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A score between two ends that every response is an unbiased estimate of."""

    range: Ends
    estimate: Callable[[Any], Fraction | float]


def one_bit_meaning(ends: Ends, responses: Ends, epsilon: Fraction) -> Meaning:
    """Of two responses that are sampled by the weights of :class:`Grid`."""
    means = dict(zip(responses, Grid.at(epsilon).means(ends), strict=True))
    return Meaning(ends, means.__getitem__)
