"""Two points of a box that prove how large a loss is, whatever any solver says.

The search has found them; they are rounded to hundredths, so that they can be printed in full. What
they prove is exact, from the sampled weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from expost.domains import Box
from expost.loss._on_box import BoxLogLikelihood, exact_ratio
from expost.numbers import Nats
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["Proof", "two_points"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The responses are likelier at one point than at the other by a factor of e^loss."""

    likelier: tuple[float, ...]
    unlikelier: tuple[float, ...]
    loss: float
    """In nats, rounded down: the realized loss is at least this."""


def two_points(transcript: Transcript) -> Proof:
    """The two points that were found, for real coordinates in [-1, 1]^d."""
    box = transcript.domain
    assert isinstance(box, Box)
    found = BoxLogLikelihood.of(box, transcript.exchanges).found(Effort())
    likelier, unlikelier = (tuple(round(float(x), 2) for x in point) for point in found)
    ratio = exact_ratio(transcript.tally, box, likelier, unlikelier)
    return Proof(likelier, unlikelier, Nats(ratio=ratio).enclosure.lower)
