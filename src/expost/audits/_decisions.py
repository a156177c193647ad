"""Every decision again, given the exchanges before it: a row for each of many subjects.

Subjects are decided together, round by round: the first exchange of each subject, then the second.
A row depends only on the plan and on the responses of its subject, and not on the other subjects in
the batch. So all engines compute the same rows, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Floats, Indices
from expost.audits._plan import Plan
from expost.audits._rows import SubjectRows
from expost.filters import Filter
from expost.filters._many_accounts import current_loss_bounds
from expost.panel import Search
from expost.panel._kernel import Kernel
from expost.panel._selection import Selection
from expost.queries import Query

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["AT_LEVEL", "AuditColumns", "audit_subjects", "replay_subjects", "schema"]


Responses = Sequence[tuple[Query, int]]
ReportProgress = Callable[[int], None]

#: The column of the largest loss that counts against a budget at a level.
AT_LEVEL = "at_level"

# Subjects that are decided together. Their states stay near the processor.
_BLOCK_SIZE = 1 << 15


@dataclass(frozen=True, slots=True)
class AuditColumns:
    """The results of an audit: an entry for each subject."""

    lower: Floats
    upper: Floats
    peak: Floats
    basic: Floats
    #: 1 where the filter was respected, 0 where not, -1 where a search could not tell.
    respected: NDArray[np.int8]
    #: The number of the first exchange that the filter certainly refuses; 0 where there is none.
    first_refused: NDArray[np.int64]
    remaining: Floats
    #: The largest loss that counts against a budget at a level; zeros if there is none.
    at_level: Floats


def replay_subjects(
    responses: Responses, codes: Codes, starts: Indices, plan: Plan, report_progress: ReportProgress
) -> AuditColumns:
    """Replay the exchanges of every subject, and report the number of subjects done."""
    kernel = Kernel(plan.domain, plan.filter, Search(plan.effort, batched=False))
    # All queries, in the order of the plan: nothing depends on which of them occur here.
    for query in plan.queries.values():
        kernel.query_index(query)
    query_indices = np.array([kernel.query_index(query) for query, _ in responses], dtype=np.intp)
    positions = np.array([positions for _, positions in responses])
    counts = np.diff(starts)
    # Those with the most exchanges come first, so that those who go on are in front.
    longest_first = np.argsort(-counts, kind="stable")
    table = np.empty((8, len(counts)))
    # Searches are remembered by tally, so a box has one state of all subjects.
    size = max(1, len(counts)) if plan.domain.sides else _BLOCK_SIZE
    for start in range(0, len(counts), size):
        rows = longest_first[start : start + size]

        def report(share: float, start: int = start, size: int = len(rows)) -> None:
            report_progress(start + int(share * size))

        table[:, rows] = _block(
            kernel, query_indices, positions, codes, starts[rows], counts[rows], report
        )
        report_progress(start + len(rows))
    lower, upper, peak, basic, respected, refused, remaining, at_level = table
    return AuditColumns(
        lower,
        upper,
        peak,
        basic,
        respected.astype(np.int8),
        refused.astype(np.int64),
        remaining,
        at_level,
    )


def _block(
    kernel: Kernel,
    query_indices: Indices,
    positions: NDArray[Any],
    codes: Codes,
    first: Indices,
    counts: Indices,
    report: Callable[[float], None],
) -> Floats:
    """Replay some subjects round by round, those with the most exchanges first."""
    state = kernel.start(len(counts))
    refused = np.zeros(len(counts), dtype=np.int64)
    undecided = np.zeros(len(counts), dtype=np.bool_)
    for step in range(int(counts[0]) if len(counts) else 0):
        active = int(np.searchsorted(-counts, -step))
        responses = codes[first[:active] + step]
        asked_queries, answered_positions = query_indices[responses], positions[responses]
        unrefused = np.flatnonzero(refused[:active] == 0)
        if len(unrefused):
            decisions = kernel.decide(state, asked_queries[unrefused], unrefused)
            undecided[unrefused[decisions.undecided]] = True
            refused[unrefused[~(decisions.accepted | decisions.undecided)]] = step + 1
        kernel.fold(state, asked_queries, answered_positions, np.arange(active))
        report((step + 1) / (int(counts[0]) + 1))
    all_subjects, filter_ = Selection(len(counts)), kernel.filter
    lower, upper = state.losses(all_subjects)
    least, peak = state.peaks(all_subjects)
    spent = state.exact_spent_bounds()
    basic = filter_.cap_spent(spent, spent, refused == 0)
    respected = np.where(undecided, -1, 1)
    respected[refused > 0] = 0
    if filter_.loss_limit is not None:
        # A loss above the budget at any point broke it, even if no decision is known.
        respected[least > filter_.loss_limit.enclosure.upper] = 0
    upper = filter_.cap_accepted(lower, upper, respected == 1)
    peak = filter_.cap_accepted(least, peak, respected == 1)
    remaining = kernel.remaining(state, np.zeros(len(counts), dtype=np.bool_))
    at_level = np.zeros(len(counts))
    for one in filter_.members:
        if one.is_at_level:
            bounds = current_loss_bounds(one, state.accounts(all_subjects))
            at_level = np.maximum(at_level, bounds.upper)
    upper = np.maximum(lower, upper)
    return np.array([lower, upper, peak, basic, respected, refused, remaining, at_level])


def schema(subject: Any, filter_: Filter) -> dict[str, Any]:
    """Return the columns of an audit and their types, given that of the subjects."""
    import polars

    integer, floating = polars.Int64(), polars.Float64()
    return {
        "subject": subject,
        "exchanges": integer,
        "lower": floating,
        "upper": floating,
        "peak": floating,
        "basic": floating,
        "budget_respected": polars.Boolean(),
        "first_refused": integer,
        "remaining": floating,
        **({AT_LEVEL: floating} if filter_.is_at_level else {}),
    }


def audit_subjects(
    subject_rows: SubjectRows, plan: Plan, report_progress: ReportProgress = lambda done: None
) -> DataFrame:
    """Return a row for each subject; ``report_progress`` gets the number of subjects done."""
    import polars

    responses, codes, starts = subject_rows.responses, subject_rows.codes, subject_rows.starts
    audited = replay_subjects(responses, codes, starts, plan, report_progress)
    respected = polars.Series(audited.respected)
    refused = polars.Series(audited.first_refused)
    columns = {
        "subject": subject_rows.subjects,
        "exchanges": np.diff(starts),
        "lower": audited.lower,
        "upper": audited.upper,
        "peak": audited.peak,
        "basic": audited.basic,
        "budget_respected": respected.cast(polars.Boolean).set(respected < 0, None),
        "first_refused": refused.set(refused == 0, None),
        "remaining": audited.remaining,
    }
    if plan.filter.is_at_level:
        columns[AT_LEVEL] = audited.at_level
    return polars.DataFrame(columns, schema=schema(subject_rows.subjects.dtype, plan.filter))
