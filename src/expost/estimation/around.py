"""A table of estimates with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost._types import Floats
from expost.cards import View
from expost.domains import FiniteSet
from expost.estimation.answers import Used, level_text
from expost.estimation.values import value_cells, value_columns, value_heads
from expost.files.canonical import plain
from expost.files.frames import Table, as_lists

__all__ = ["Intervals"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals(Table):
    """Intervals around estimates, from :meth:`Distribution.intervals`.

    By default they have all that is likely enough; with ``repetitions``, the share ``confidence``
    of the estimates from resampled subjects. The estimate itself is always inside.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> found = estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> intervals = found.intervals()
    >>> intervals.lower.round(3).tolist(), intervals.upper.round(3).tolist()
    ([0.637, 0.126], [0.874, 0.363])
    """

    estimate: Floats
    """What each of them is around."""
    lower: Floats
    upper: Floats
    standard_error: Floats
    confidence: float
    repetitions: int | None
    """How often subjects were resampled; None if the intervals have all that is likely enough."""
    domain: FiniteSet | None
    """Whose values they are about, in its order; None if it is the mean of a score."""
    used: Used
    gap: float
    """How much too far out an end may be, at most, because a search for it was ended."""
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
                "intervals": f"{level_text(self.confidence)}, {self._how()}",
                **({"but": " ".join(self.doubts)} if self.doubts else {}),
            },
            (*heads, *numbers),
            len(self.lower),
            lambda place: (
                *(() if domain is None else value_cells(domain, place)),
                *(f"{column[place]:.4g}" for column in numbers.values()),
            ),
        )

    def _how(self) -> str:
        if self.repetitions is None:
            return "by the ratio of likelihoods"
        return f"{self.repetitions:,} repetitions"

    def tree(self) -> dict[str, Any]:
        """The intervals as JSON, in lists."""
        values = {} if self.domain is None else {"value": list(self.domain.values)}
        whole = {
            "confidence": self.confidence,
            "repetitions": self.repetitions,
            "gap": self.gap,
        }
        return plain({**values, **as_lists(self._numbers()), **whole})
