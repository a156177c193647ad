"""Every decision of many subjects again, on what came before it: a row for each subject.

Subjects are decided together, round by round: the first exchange of everybody, then the second. A
row depends on the responses of its subject and on the plan, and on nothing else: not on who else is
in the batch, nor on where the batch was cut. So all engines find the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Floats, Indices
from expost.audits._bad_rows import bad_exchanges
from expost.audits._log import logged
from expost.audits._partitions import HELD, whole_subjects
from expost.audits._plan import Plan
from expost.audits._rows import Unusable, Whole, arranged
from expost.domains import Box
from expost.filters import Filter
from expost.panel import Search
from expost.panel._kernel import Kernel
from expost.panel._query_costs import exact_spent_bounds
from expost.panel._selection import Selection
from expost.queries import Query

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["COLUMNS", "Verdicts", "audited", "audited_batches", "schema", "verdicts"]


Given = Sequence[tuple[Query, int]]
Tell = Callable[[int], None]

# Subjects that are decided together. Their states stay near the processor.
_TOGETHER = 1 << 15


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What an audit finds for each of many subjects."""

    lower: Floats
    upper: Floats
    peak: Floats
    basic: Floats
    respected: NDArray[np.int8]
    """1 where the filter was respected, 0 where not, -1 where a search could not tell."""
    first_refused: NDArray[np.int64]
    """The number of the first exchange that the filter certainly refuses; 0 where there is none."""
    remaining: Floats


def verdicts(given: Given, codes: Codes, starts: Indices, plan: Plan, tell: Tell) -> Verdicts:
    """Replay the exchanges of every subject; ``tell`` is called with how many subjects are done."""
    kernel = Kernel(plan.domain, plan.guard, Search(plan.effort, batched=False))
    # All queries, in the order of the plan: nothing depends on which of them occur here.
    for query in plan.queries.values():
        kernel.query_index(query)
    number = np.array([kernel.query_index(query) for query, _ in given], dtype=np.intp)
    position = np.array([position for _, position in given])
    counts = np.diff(starts)
    # Those with the most exchanges come first, so that those who go on are in front.
    longest = np.argsort(-counts, kind="stable")
    table = np.empty((7, len(counts)))
    searched = isinstance(plan.domain, Box)
    # Searches are remembered by tally, so a box has one state of all subjects.
    size = max(1, len(counts)) if searched else _TOGETHER
    for start in range(0, len(counts), size):
        own = longest[start : start + size]

        def report(share: float, start: int = start, size: int = len(own)) -> None:
            tell(start + int(share * size))

        table[:, own] = _block(kernel, number, position, codes, starts[own], counts[own], report)
        tell(start + len(own))
    return _of(table)


def _block(
    kernel: Kernel,
    number: Indices,
    position: NDArray[Any],
    codes: Codes,
    first: Indices,
    counts: Indices,
    report: Callable[[float], None],
) -> Floats:
    """What is found for some subjects, the longest ones first; round by round."""
    state = kernel.start(len(counts))
    refused = np.zeros(len(counts), dtype=np.int64)
    undecided = np.zeros(len(counts), dtype=np.bool_)
    for step in range(int(counts[0]) if len(counts) else 0):
        on = int(np.searchsorted(-counts, -step))
        given = codes[first[:on] + step]
        asked, answered = number[given], position[given]
        so_far = np.flatnonzero(refused[:on] == 0)
        if len(so_far):
            everybody = len(so_far) == len(counts)
            found = kernel.decide(state, asked[so_far], None if everybody else so_far)
            undecided[so_far[found.undecided]] = True
            refused[so_far[~(found.accepted | found.undecided)]] = step + 1
        kernel.fold(state, asked, answered, None if on == len(counts) else np.arange(on))
        report((step + 1) / (int(counts[0]) + 1))
    everyone, guard = Selection(len(counts)), kernel.filter
    lower, upper = state.losses(everyone)
    least, peak = state.peaks(everyone)
    spent = exact_spent_bounds(state)
    basic = guard.cap_spent(spent, spent, refused == 0)
    respected = np.where(undecided, -1, 1)
    respected[refused > 0] = 0
    if guard.pure:
        # A loss above the budget at any point broke it, even if no decision is known.
        respected[least > guard.budget.enclosure.upper] = 0
    upper = guard.cap_accepted(lower, upper, respected == 1)
    peak = guard.cap_accepted(least, peak, respected == 1)
    left = _remaining(guard, kernel.losses(state).upper)
    return np.array([lower, np.maximum(lower, upper), peak, basic, respected, refused, left])


def _remaining(guard: Filter, held: Floats) -> Floats:
    """The budget minus what is held against it, rounded down; never below zero."""
    whole = guard.budget.enclosure.lower
    with np.errstate(invalid="ignore"):
        left = np.nextafter(whole - held, -np.inf)
    return np.where(held == 0, whole, np.maximum(0.0, left))


def _of(table: Floats) -> Verdicts:
    lower, upper, peak, basic, respected, refused, left = np.ascontiguousarray(table)
    return Verdicts(
        lower, upper, peak, basic, respected.astype(np.int8), refused.astype(np.int64), left
    )


COLUMNS = (
    "subject",
    "exchanges",
    "lower",
    "upper",
    "peak",
    "basic",
    "budget_respected",
    "first_refused",
    "remaining",
)
"""What is known of each subject."""


def schema(subject: Any) -> dict[str, Any]:
    """The types of the columns, by that of the subjects."""
    import polars

    whole, double = polars.Int64(), polars.Float64()
    types = (subject, whole, double, double, double, double, polars.Boolean(), whole, double)
    return dict(zip(COLUMNS, types, strict=True))


def audited(whole: Whole, plan: Plan, tell: Callable[[int], None] | None = None) -> DataFrame:
    """A row for each subject; ``tell`` is called with the number of subjects done."""
    found = verdicts(whole.given, whole.codes, whole.starts, plan, tell or (lambda done: None))
    return _framed(whole, found)


def _framed(whole: Whole, found: Verdicts) -> DataFrame:
    import polars

    count = polars.Series(whole.starts)
    respected = polars.Series(found.respected)
    refused = polars.Series(found.first_refused)
    columns = {
        "subject": whole.subjects,
        "exchanges": count.diff().slice(1),
        "lower": found.lower,
        "upper": found.upper,
        "peak": found.peak,
        "basic": found.basic,
        "budget_respected": respected.cast(polars.Boolean).set(respected < 0, None),
        "first_refused": refused.set(refused == 0, None),
        "remaining": found.remaining,
    }
    return polars.DataFrame(columns, schema=schema(whole.subjects.dtype))


def audited_batches(batches: Iterable[Any], plan: Plan, held: int = HELD) -> Iterator[DataFrame]:
    """Rows for the subjects of batches of Arrow, which have all rows of each in any order.

    More rows than are ``held`` in memory go by way of the disk.
    """
    import polars

    frames = (polars.DataFrame(batch) for batch in batches)
    for frame in whole_subjects((logged(each.lazy()).collect() for each in frames), held):
        try:
            whole = arranged(frame, plan)
        except Unusable:
            raise bad_exchanges(frame, plan) from None
        yield audited(whole, plan)
