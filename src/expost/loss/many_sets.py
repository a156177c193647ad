"""The spreads of many subjects over a finite domain, all at once.

A subject's log-likelihood is a sum of rows of one table: a row per response that occurs, a column
per value. Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from expost.numbers import UNIT
from expost.terms.on_set import Term

__all__ = ["finite_spreads"]

Floats = NDArray[np.float64]

# The sums of a block of subjects stay in the second-level cache.
_BLOCK = 1 << 15


def finite_spreads(
    terms: Sequence[Term],
    codes: NDArray[np.intp],
    starts: NDArray[np.intp],
    progress: Callable[[int], None],
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of max ℓ - min ℓ of each subject.

    ``codes`` are the terms that subjects add up, at least one each: those of a subject go from its
    start to the next. ``progress`` is called with the number of subjects done.
    """
    logs = np.array([term.logs for term in terms])
    lowest = logs.min(axis=1)
    impossible = np.isneginf(lowest)
    logs[impossible] = lowest[impossible] = 0.0
    width = _spreads(logs, codes, starts, progress)
    counts, first = np.diff(starts), starts[:-1]
    sizes = np.maximum(logs.max(axis=1), -lowest)
    errors = np.array([term.error for term in terms])
    magnitude = np.add.reduceat(sizes[codes], first)
    error = np.add.reduceat(errors[codes], first)
    # Both ends are off by the errors of their terms and a rounding per addition; so is each
    # of the two subtractions here. The odd thousandth covers the rounding of the bound itself.
    slack = 2.001 * (error + (counts + 1) * UNIT * magnitude)
    lower, upper = np.maximum(0.0, width - slack), width + slack
    if impossible.any():
        never = np.logical_or.reduceat(impossible[codes], first)
        lower[never] = upper[never] = np.inf
    return lower, upper


def _spreads(
    logs: Floats,
    codes: NDArray[np.intp],
    starts: NDArray[np.intp],
    progress: Callable[[int], None],
) -> Floats:
    """The largest minus the smallest sum of each subject, in doubles."""
    counts = np.diff(starts)
    longest_first = np.argsort(-counts, kind="stable")
    spreads = np.empty(len(counts))
    size = max(1, _BLOCK // logs.shape[1])
    for start in range(0, len(counts), size):
        subjects = longest_first[start : start + size]
        first, lengths = starts[subjects], -counts[subjects]
        sums = logs.take(codes[first], axis=0)
        for step in range(1, -int(lengths[0])):
            # Those who go on are in front.
            on = int(np.searchsorted(lengths, -step))
            sums[:on] += logs.take(codes[first[:on] + step], axis=0)
        by_value = np.ascontiguousarray(sums.T)
        spreads[subjects] = by_value.max(axis=0) - by_value.min(axis=0)
        progress(start + len(subjects))
    return spreads
