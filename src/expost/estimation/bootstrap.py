"""Intervals from estimates of resampled subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cards import View
from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.estimation.answers import Used, level_text
from expost.estimation.values import value_cells, value_columns, value_heads
from expost.files.canonical import plain
from expost.files.frames import Table, as_lists

__all__ = ["FEWEST", "REPETITIONS", "Intervals", "intervals_of", "usual_repetitions"]

Floats = NDArray[np.float64]

FEWEST = 50
"""Repetitions: the ends of a 95 % interval are then not just the two most extreme of them."""

REPETITIONS = 1_000
"""How often subjects are resampled, unless that takes long."""

# All that is multiplied takes a few seconds.
_MOST_PRODUCTS = 30_000_000_000
_STEPS = 8
"""What a search from near the estimate takes."""

# A search from the inside leaves less than this where the true maximum is at an end.
_EDGE = 1e-5


def usual_repetitions(patterns: int, values: int) -> int:
    """How often to resample subjects with so many patterns of responses if nobody says.

    >>> usual_repetitions(1_000, 10), usual_repetitions(1_000, 100)
    (1000, 228)
    """
    # A step adds up a square matrix, pattern by pattern, and factors it.
    step = patterns * (values + 20) ** 2 + 2 * values**3
    most = _MOST_PRODUCTS // (_STEPS * step)
    if most < FEWEST:
        raise InvalidInput(
            f"{patterns:,} kinds of responses for {values:,} values are too many to resample "
            f"{FEWEST} times or more unless a number is given; each time takes about as long as "
            "the estimate"
        )
    return min(REPETITIONS, most)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals(Table):
    """Bootstrap intervals, from :meth:`Distribution.intervals`.

    Each goes from the lower to the upper quantile of the estimates from resampled subjects, so
    that the share ``confidence`` of them is inside, and the estimate itself always is.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> found = estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> intervals = found.intervals(repetitions=50)
    >>> bool((intervals.lower <= found.probabilities).all())
    True
    """

    estimate: Floats
    """What each of them is around."""
    lower: Floats
    upper: Floats
    standard_error: Floats
    confidence: float
    repetitions: int
    domain: FiniteSet | None
    """Whose values they are about, in its order; None if it is the mean of a score."""
    used: Used
    doubts: tuple[str, ...]
    """Why they may be too narrow, as far as is known."""

    def columns(self) -> dict[str, Any]:
        """The columns of a table: a row per value, or one for the mean of a score."""
        numbers = self._numbers()
        values = {} if self.domain is None else value_columns(self.domain, numbers)
        return {**values, **numbers}

    def _numbers(self) -> dict[str, Floats]:
        names = ("estimate", "lower", "upper", "standard_error")
        return {name: getattr(self, name) for name in names}

    def _view(self) -> View:
        numbers, domain = self._numbers(), self.domain
        heads = [] if domain is None else value_heads(domain, numbers)
        return View(
            f"Intervals({len(self.lower):,})",
            {
                "intervals": f"{level_text(self.confidence)}, {self.repetitions:,} repetitions",
                **({"but": " ".join(self.doubts)} if self.doubts else {}),
            },
            (*heads, *numbers),
            len(self.lower),
            lambda place: (
                *(() if domain is None else value_cells(domain, place)),
                *(f"{column[place]:.4g}" for column in numbers.values()),
            ),
        )

    def tree(self) -> dict[str, Any]:
        """The intervals as JSON, in lists."""
        values = {} if self.domain is None else {"value": list(self.domain.values)}
        whole = {"confidence": self.confidence, "repetitions": self.repetitions}
        return plain({**values, **as_lists(self._numbers()), **whole})


def intervals_of(
    found: Floats,
    estimate: Floats,
    ends: tuple[Floats, Floats],
    unknown: NDArray[np.bool_],
    level: float,
    domain: FiniteSet | None,
    used: Used,
) -> Intervals:
    """The intervals, from a row of estimates for each time that subjects were resampled.

    ``ends`` are the least and the most that each number can be, which is all that can be said of
    those that are ``unknown``.
    """
    least, most = ends
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
    return Intervals(estimate, lower, upper, error, level, len(found), domain, used, doubts)


def _at_an_end(count: int, total: int) -> str:
    return (
        f"{count:,} of {total:,} estimates are at an end of what is possible, where "
        "intervals from resampled subjects are too narrow, the more so with few subjects."
    )
