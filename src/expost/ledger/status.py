"""How a study stands: a row for each subject, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import Subject
from expost.cards import View, nats
from expost.files.frames import Table
from expost.panel.results import Bounds

__all__ = ["Status"]

# A weight that is rounded leaves so little of a budget that is spent.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Status(Table):
    """Where everybody is. Arrays are in the order of subjects; amounts are in nats."""

    subjects: tuple[Subject, ...]
    exchanges: NDArray[np.int64]
    loss: Bounds
    """The realized loss now."""
    spent: Bounds
    """The sum of the epsilons, which is what basic composition says."""
    remaining: NDArray[np.float64]
    """Budget minus what counts against it, rounded down; 0 for who is closed.

    What a device was reserved for and has perhaps sent counts when it arrives.
    """
    closed: NDArray[np.bool_]
    """Who answered what the filter refuses, sent what did not fit, or was quarantined."""
    reserved: NDArray[np.bool_]
    """Who has an open reservation."""
    ended: bool
    """Whether the study is closed."""

    def __len__(self) -> int:
        return len(self.subjects)

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "exchanges": self.exchanges,
            "loss": self.loss.upper,
            "basic": self.spent.upper,
            "remaining": self.remaining,
            "closed": self.closed,
            "reserved": self.reserved,
        }

    def _view(self) -> View:
        def row(place: int) -> tuple[object, ...]:
            left = float(self.remaining[place])
            state = "closed" if self.closed[place] else "open"
            if self.reserved[place]:
                state += ", reserved"
            return (
                self.subjects[place],
                int(self.exchanges[place]),
                self.loss.shown(place),
                nats(left) if left > _NOTHING else "0",
                state,
            )

        total = int(self.exchanges.sum())
        title = (
            f"Status({len(self):,} subjects, {total:,} answered, {int(self.closed.sum()):,} closed"
        )
        title += ", study closed)" if self.ended else ")"
        return View(title, {}, ("subject", "exchanges", "loss", "remaining", ""), len(self), row)
