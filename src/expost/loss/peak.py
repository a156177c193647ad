"""The largest realized loss on the way, if every single one has to be searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from expost.numbers import Enclosure

__all__ = ["largest_on_the_way", "peak_shown"]


def peak_shown(peak: Enclosure, loss: Enclosure) -> str:
    """The peak for people, beside the loss at the end: "at most" if it may be no more than that."""
    known = peak.lower > loss.upper or peak.shown() == loss.shown()
    return peak.shown() if known else f"at most {peak.shown()}"


def largest_on_the_way(
    sums: Sequence[Enclosure],
    last: Enclosure,
    loss_after: Callable[[int], Enclosure],
    loss_against: Callable[[float, int], Enclosure],
    gap: float,
    used_up: Callable[[], bool],
) -> tuple[Enclosure, int]:
    """Enclose the largest loss after any number of exchanges, and return where it was found.

    The loss at that place has the lower end of the enclosure.

    No exchange changes the loss by more than its epsilon, up or down, so a loss at one place bounds
    all others by the sums of the epsilons between. The search goes next to where that bound is
    highest, and ends when no bound exceeds what was found by more than the gap. It visits each
    place at most once. Proof: docs/theory/filters.md.
    """
    lowers = np.array([sum_.lower for sum_ in sums])
    uppers = np.array([sum_.upper for sum_ in sums])
    places = np.arange(len(sums))

    def seen(bounds: NDArray[np.float64], place: int, upper: float) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            later, earlier = uppers - lowers[place], uppers[place] - lowers
        between = np.where(places >= place, later, earlier)
        between = np.nextafter(np.where(np.isnan(between), np.inf, between), np.inf)
        between[place] = 0.0
        return np.minimum(bounds, np.nextafter(upper + between, np.inf))

    end = len(sums) - 1
    bounds, reached, highest = seen(uppers, end, last.upper), last.lower, end
    waiting = np.ones(len(sums), dtype=np.bool_)
    waiting[[0, end]] = False
    while waiting.any() and not used_up():
        place = int(np.argmax(np.where(waiting, bounds, -np.inf)))
        if bounds[place] <= reached + gap:
            break
        waiting[place] = False
        loss = loss_against(reached + gap, place)
        if loss.upper > reached + gap:
            # It is the highest so far, so its height is worth knowing.
            loss = loss_after(place)
        if loss.lower > reached:
            reached, highest = loss.lower, place
        bounds = seen(bounds, place, loss.upper)
    return Enclosure(reached, max(reached, float(bounds.max()))), highest
