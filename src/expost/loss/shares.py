"""How much of a whole was used, and by what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from expost.numbers import Enclosure, Nats, down, up

__all__ = ["PartLoss", "capped", "part_of", "share_between", "share_of"]


@dataclass(frozen=True, slots=True)
class PartLoss:
    """The loss about some attributes that no question ties to any others: such losses add up."""

    names: tuple[str, ...]
    loss: Enclosure


def share_of(used: Nats, whole: Nats) -> Enclosure:
    """How much of a whole was used, from 0 to 1; 0 of 0 is 0."""
    if used == whole and not whole.is_infinite:
        used_up = 1.0 if whole > Nats() else 0.0
        return Enclosure(used_up, used_up)
    if used == Nats() or (whole.is_infinite and not used.is_infinite):
        return Enclosure(0.0, 0.0)
    return part_of(used.enclosure, whole.enclosure)


def part_of(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same, given enclosures."""
    share = share_between(used, whole)
    return Enclosure(min(1.0, share.lower), min(1.0, share.upper))


def share_between(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same for a budget: what counts against it may be above it, or infinite."""
    if used.upper == 0 or whole.upper == 0:
        return Enclosure(0.0, 0.0)
    if whole.upper == math.inf:  # infinity can be any share of infinity
        return Enclosure(0.0, math.inf)
    if used.lower == math.inf:
        return used
    most = up(used.upper / whole.lower) if whole.lower > 0 else math.inf
    return Enclosure(max(0.0, down(used.lower / whole.upper)), most)


def capped(loss: Enclosure, most: Enclosure) -> Enclosure:
    """The loss, which rounding or an unfinished search never lifts above basic composition."""
    return Enclosure(loss.lower, max(loss.lower, min(loss.upper, most.upper)))
