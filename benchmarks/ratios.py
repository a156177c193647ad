"""Ratios of times: a peer that was stopped is slower by at least its ratio."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Ratio", "median"]


@dataclass(frozen=True, order=True)
class Ratio:
    value: float
    at_least: bool = False

    def __str__(self) -> str:
        digits = 0 if self.value >= 20 else 1
        return f"{'≥ ' if self.at_least else ''}{self.value:,.{digits}f} ×"


def median(ratios: Sequence[Ratio]) -> Ratio:
    """Return a lower bound on the median, which is exact if no ratio in the middle is a bound."""
    values = [ratio.value for ratio in ratios]
    # Of an even number the two in the middle count, so a stopped one may be the larger of them.
    highest = statistics.median_high(values)
    at_least = any(ratio.at_least and ratio.value <= highest for ratio in ratios)
    return Ratio(statistics.median(values), at_least)
