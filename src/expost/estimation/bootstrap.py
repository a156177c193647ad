"""Intervals from estimates of resampled subjects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from expost._types import Floats
from expost.domains import FiniteSet
from expost.estimation.answers import Used
from expost.estimation.around import Intervals
from expost.estimation.mixture import Mixture

__all__ = ["FEWEST", "resampled"]


FEWEST = 50
"""Repetitions: the ends of a 95 % interval are then not just the two most extreme of them."""

# A search from the inside leaves less than this where the true maximum is at an end.
_EDGE = 1e-5


def resampled(
    mixture: Mixture,
    wanted: Floats,
    level: float,
    domain: FiniteSet | None,
    used: Used,
    *,
    repetitions: int,
    generator: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Intervals for the means of scores, a column of ``wanted`` for each.

    Of what the responses do not determine they are as wide as they can be.
    """
    found = np.empty((repetitions, wanted.shape[1]))
    for repetition in range(repetitions):
        found[repetition] = mixture.replicate(generator) @ wanted
        if progress is not None:
            progress(repetition + 1, repetitions)
    estimate, unknown = mixture.probabilities @ wanted, mixture.unknown(wanted)
    least, most = wanted.min(axis=0), wanted.max(axis=0)
    tails = (1 - level) / 2
    lower, upper = np.quantile(found, [tails, 1 - tails], axis=0)
    error = found.std(axis=0, ddof=1)
    # A replicate is searched for less closely, and may miss an end where the estimate is.
    lower = np.where(unknown, least, np.minimum(lower, estimate))
    upper = np.where(unknown, most, np.maximum(upper, estimate))
    error = np.where(unknown, np.inf, error)
    near = _EDGE * (most - least)
    inside = (least + near < estimate) & (estimate < most - near)
    edge = int((~inside & ~unknown & (most > least)).sum())
    doubts = () if not edge else (_at_an_end(edge, len(estimate)),)
    return Intervals(estimate, lower, upper, error, level, repetitions, domain, used, 0.0, doubts)


def _at_an_end(count: int, total: int) -> str:
    return (
        f"{count:,} of {total:,} estimates are at an end of what is possible, where "
        "intervals from resampled subjects are too narrow, the more so with few subjects."
    )
