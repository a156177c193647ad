"""What an audit found: a row per subject, and all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_nats
from expost.audits.filter_file import filter_to_json
from expost.cards import View
from expost.files.canonical import plain_tree
from expost.files.tables import ResultTable
from expost.filters import Filter
from expost.filters._outcomes import respected_cell
from expost.numbers import Enclosure

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["Audit", "FilesRead", "Histogram"]

_NAMED = 100
"""How many of those who were over the budget are named."""

_WORST = 10
_BINS = 20
_MOST_BINS = 100
_ROUNDED = 1e-9

# A weight that is rounded leaves so little of a budget that is spent.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many subjects are between each edge and the next."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    infinite: int
    """How many have a loss that nothing bounds."""


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What an audit read, and what it noticed about transcripts besides their exchanges."""

    number: int
    unasked: int = 0
    """How many transcripts have no exchanges. Their subjects are not in the table."""
    identical: tuple[tuple[str, ...], ...] = ()
    """Groups of subjects with equal transcripts: by chance, or because one is a copy."""
    other_filters: tuple[tuple[str, Filter | None], ...] = ()
    """Subjects whose transcript names another filter than the audit's, and that filter."""

    def tree(self) -> dict[str, Any]:
        """The same as JSON, with the first hundred groups and subjects."""
        others = self.other_filters[:_NAMED]
        return {
            "files": self.number,
            "unasked": self.unasked,
            "identical": self.identical[:_NAMED],
            "identical_number": sum(map(len, self.identical)),
            "other_filters": [
                {"subject": name, "filter": None if own is None else filter_to_json(own)}
                for name, own in others
            ],
            "other_filters_number": len(self.other_filters),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(ResultTable):
    """Whether everybody's budget was respected at every exchange, and what each has lost.

    :func:`audit` returns it. Subjects are in ascending order. Losses are in nats.

    ``lower``, ``upper``
        the loss now is between these; act on ``upper``.
    ``peak``
        the largest loss on the way, at most.
    ``basic``
        what basic composition says: the sum of the epsilons, rounded up.
    ``budget_respected``
        whether the filter accepts every exchange, given those before; null where a search on a box
        could not tell.
    ``first_refused``
        the number of the first exchange that it certainly refuses, or null.
    ``remaining``
        what is left of the budget, at least.
    """

    frame: DataFrame
    guard: Filter
    """The filter that every exchange was decided by."""
    files: FilesRead | None = None
    """What was read; None for a table in memory."""

    def __len__(self) -> int:
        return len(self.frame)

    def columns(self) -> dict[str, Any]:
        """The columns of the table, as lists."""
        return self.frame.to_dict(as_series=False)

    def to_polars(self) -> DataFrame:
        return self.frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    @cached_property
    def respected(self) -> int:
        """How many subjects' budgets were respected at every exchange."""
        return int(self.frame["budget_respected"].sum() or 0)

    @cached_property
    def undecided(self) -> int:
        """Of how many that is not known."""
        return self.frame["budget_respected"].null_count()

    @property
    def broken(self) -> int:
        """How many did not keep it."""
        return len(self) - self.respected - self.undecided

    @cached_property
    def exhausted(self) -> int:
        """How many budgets were respected and have less than a thousandth remaining."""
        used_up = self.frame["remaining"] < self.guard.budget.nearest / 1000
        return int((used_up & self.frame["budget_respected"].fill_null(False)).sum())

    def broken_subjects(self, most: int = _NAMED) -> list[Any]:
        """The first of those who did not keep it."""
        return self.frame.filter(~self.frame["budget_respected"])["subject"].head(most).to_list()

    def worst(self, most: int = _WORST) -> list[dict[str, Any]]:
        """The rows of those with the largest peaks, the largest first."""
        order = ["peak", "upper", "subject"]
        worst = self.frame.sort(order, descending=[True, True, False], maintain_order=True)
        return worst.head(most).to_dicts()

    def histogram(self, column: str = "upper", *beside: str) -> Histogram:
        """How the losses now are spread, or the peaks: from nothing to the largest of all.

        Histograms of columns that are shown ``beside`` each other have the same edges, and the
        budget is one of these.
        """
        amounts = self.frame[column].to_numpy()
        finite = amounts[np.isfinite(amounts)]
        budget = self.guard.budget.nearest
        most = max(budget, *map(self._largest_finite, (column, *beside)))
        edges: NDArray[np.floating[Any]] = np.linspace(0.0, most, _BINS + 1)
        if beside:
            # Of a sum that is many times the budget, wide bars, each of several budgets.
            several = math.ceil(most / (_MOST_BINS * budget))
            width = several * budget / math.ceil(_BINS * budget / most)
            edges = width * np.arange(math.ceil(most / width * (1 - _ROUNDED)) + 1)
        # What is at an edge, such as a budget that is used up, is not above it.
        counts, _ = np.histogram(finite, bins=edges * (1 + _ROUNDED) if beside else edges)
        return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), len(amounts) - len(finite))

    def _largest_finite(self, column: str) -> float:
        amounts = self.frame[column].to_numpy()
        return float(amounts[np.isfinite(amounts)].max(initial=0.0))

    def refusals(self) -> list[tuple[int, int]]:
        """By the number of the first exchange that the filter refuses: how many subjects."""
        numbers = self.frame["first_refused"].drop_nulls().value_counts(name="subjects")
        return numbers.sort("first_refused").rows()

    def summary(self) -> dict[str, Any]:
        """All subjects together, as JSON."""
        frame, spread = self.frame, self.histogram()
        read = {} if self.files is None else self.files.tree()
        return plain_tree(
            {
                **read,
                "subjects": len(self),
                "exchanges": int(frame["exchanges"].sum()),
                "filter": self.guard.kind,
                "budget": self.guard.budget.nearest,
                "respected": self.respected,
                "undecided": self.undecided,
                "broken": self.broken_subjects(),
                "broken_number": self.broken,
                "exhausted": self.exhausted,
                "loss": {
                    "mean": _number(frame["upper"].mean()),
                    "median": _number(frame["upper"].median()),
                    "largest": _number(frame["upper"].max()),
                },
                "peak": {"largest": _number(frame["peak"].max())},
                "basic": {
                    "mean": _number(frame["basic"].mean()),
                    "largest": _number(frame["basic"].max()),
                },
                "histogram": {
                    "edges": list(spread.edges),
                    "counts": list(spread.counts),
                    "infinite": spread.infinite,
                },
                "worst": self.worst(),
            }
        )

    def tree(self) -> dict[str, Any]:
        """The same, and subject by subject."""
        return {
            **self.summary(),
            "audit": [plain_tree(row) for row in self.frame.iter_rows(named=True)],
        }

    def _view(self) -> View:
        def row(place: int) -> tuple[object, ...]:
            each = self.frame.row(place, named=True)
            return (
                each["subject"],
                each["exchanges"],
                Enclosure(each["lower"], each["upper"]).shown(),
                format_nats(each["peak"]),
                respected_cell(each["budget_respected"], each["first_refused"]),
                format_nats(each["remaining"]) if each["remaining"] > _NOTHING else "0",
            )

        title = (
            f"Audit({len(self):,} subjects, {self.broken:,} over the budget of {self.guard.limit}"
        )
        title += f", {self.undecided:,} undecided)" if self.undecided else ")"
        names = ("subject", "exchanges", "loss", "peak", "respected", "remaining")
        return View(title, {}, names, len(self), row)


def _number(value: Any) -> float:
    return float(value)
