"""The largest difference of ℓ between values that can be told apart.

What a query sees as one value may be many, with a largest and a smallest ℓ.

Values that no response of a query tells apart are in one class. Four values decide, whatever the
number of classes: the extremes of ℓ, and those outside of the class of the first two. Proof:
docs/theory/filters.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expost.loss.exact import Candidate, ExactExtremes, signed
from expost.numbers import INFINITE, Nats

__all__ = ["ToldFrom", "exact_spread_apart", "widest_pair"]

ToldFrom = Callable[[int], NDArray[np.bool_]]
"""The values that can be told from a given one: those outside its class."""


def widest_pair(
    highs: NDArray[np.float64], lows: NDArray[np.float64], told_from: ToldFrom
) -> tuple[int, int]:
    """Two values that can be told apart and whose high and low doubles differ most.

    If no two values can be told apart, those of the largest high and the smallest low.
    """

    def extremes(among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        if among is None:  # nothing of the size of the domain is copied in the usual case
            high, low = highs.argmax(), lows.argmin()
        else:
            high, low = signed(highs, 1, among).argmax(), signed(lows, -1, among).argmax()
        return Candidate(int(high), Counter()), Candidate(int(low), Counter())

    def width(pair: tuple[int, int]) -> float:
        return float(highs[pair[0]]) - float(lows[pair[1]])

    pairs = _widest_pairs(extremes, told_from)
    return max(((high.value, low.value) for high, low in pairs), key=width)


def exact_spread_apart(exact: ExactExtremes, told_from: ToldFrom, apart: Nats) -> Nats:
    """max ℓ(x) - ℓ(x') over all pairs, plus ``apart`` where the two can be told apart, exactly."""
    if exact.is_infinite:
        return INFINITE
    pairs = _widest_pairs(exact.extremes, told_from)
    (high, _), (_, low) = pairs[0], pairs[-1]
    return max(exact.apart(high, low), *(exact.apart(*pair) + apart for pair in pairs))


class _Extremes(Protocol):
    def __call__(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """A value with the largest ℓ and one with the smallest, of these values."""
        ...


def _widest_pairs(extremes: _Extremes, told_from: ToldFrom) -> list[tuple[Candidate, Candidate]]:
    """One or two pairs among which is a widest one of those that are told apart.

    If both extremes are in one class, one of them and a value outside that class.
    """
    high, low = extremes()
    others = told_from(high.value)
    if others[low.value] or not others.any():
        return [(high, low)]
    highest, lowest = extremes(others)
    return [(high, lowest), (highest, low)]
