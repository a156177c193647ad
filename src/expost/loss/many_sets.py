"""The spreads of many subjects over a finite domain, all at once.

A subject's log-likelihood is a sum of rows of one table: a row per response that occurs, a column
per value. Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats, Indices
from expost.numbers import UNIT
from expost.terms import Term

__all__ = ["Bounds", "finite_spreads", "row_sums", "table_of"]


# The sums of a block of subjects stay in the second-level cache.
_BLOCK = 1 << 15


def finite_spreads(
    terms: Sequence[Term], codes: Indices, starts: Indices, progress: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of max ℓ - min ℓ of each subject.

    ``codes`` are the terms that subjects add up, at least one each: those of a subject go from its
    start to the next. ``progress`` is called with the number of subjects done.
    """
    logs, bounds = table_of(terms)
    counts = np.diff(starts)
    longest_first = np.argsort(-counts, kind="stable")
    spreads = np.empty(len(counts))
    size = max(1, _BLOCK // logs.shape[1])
    for start in range(0, len(counts), size):
        subjects = longest_first[start : start + size]
        sums = row_sums(logs, codes, starts[subjects], counts[subjects])
        by_value = np.ascontiguousarray(sums.T)
        spreads[subjects] = by_value.max(axis=0) - by_value.min(axis=0)
        progress(start + len(subjects))
    return bounds.around(spreads, codes, starts)


def row_sums(logs: Floats, codes: Indices, first: Indices, counts: Indices) -> Floats:
    """The sum of the rows of each subject; those with the most rows come first.

    The codes of a subject begin at its first one.
    """
    sums = logs.take(codes[first], axis=0)
    for step in range(1, int(counts[0])):
        # Those who go on are in front.
        on = int(np.searchsorted(-counts, -step))
        sums[:on] += logs.take(codes[first[:on] + step], axis=0)
    return sums


def table_of(terms: Sequence[Term]) -> tuple[Floats, Bounds]:
    """The logarithms of terms over the same values, a row for each, and what bounds their sums.

    A term that rules a value out has zeros: whatever else was answered, the loss is infinite.
    """
    logs = np.array([term.logs for term in terms])
    lowest = logs.min(axis=1)
    impossible = np.isneginf(lowest)
    logs[impossible] = lowest[impossible] = 0.0
    sizes = np.maximum(logs.max(axis=1), -lowest)
    return logs, Bounds(sizes, np.array([term.error for term in terms]), impossible)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of each term: its largest absolute value, its error, and if it is infinite."""

    sizes: Floats
    errors: Floats
    impossible: NDArray[np.bool_]

    def around(self, spreads: Floats, codes: Indices, starts: Indices) -> tuple[Floats, Floats]:
        """Lower and upper bounds of max ℓ - min ℓ of each subject, from its double.

        Each end is a sum of the doubles of all terms of the subject, in any order: it takes one
        addition less than there are terms.
        """
        counts, first = np.diff(starts), starts[:-1]
        magnitude = np.add.reduceat(self.sizes[codes], first)
        error = np.add.reduceat(self.errors[codes], first)
        # Both ends are off by the errors of their terms and a rounding per addition; so is each
        # of the two subtractions here. The odd thousandth covers the rounding of the bound itself.
        slack = 2.001 * (error + (counts + 1) * UNIT * magnitude)
        lower, upper = np.maximum(0.0, spreads - slack), spreads + slack
        if self.impossible.any():
            never = np.logical_or.reduceat(self.impossible[codes], first)
            lower[never] = upper[never] = np.inf
        return lower, upper
