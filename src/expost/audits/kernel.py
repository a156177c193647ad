"""The kernel of an audit: whole subjects in, a row for each of them out.

A row depends on the responses of its subject and on the plan, and on nothing else: not on who else
is in the batch, nor on where the batch was cut. So all engines find the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from expost.audits.bad_rows import bad_exchanges
from expost.audits.plan import Plan
from expost.audits.rows import Unusable, Whole, in_order
from expost.audits.verdicts import Verdicts, verdicts

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["COLUMNS", "ENOUGH", "audited", "audited_batches", "schema"]

COLUMNS = (
    "subject",
    "exchanges",
    "lower",
    "upper",
    "peak",
    "basic",
    "budget_kept",
    "first_refused",
    "remaining",
)
"""What is known of each subject."""

ENOUGH = 1 << 19
"""Rows that are worth the cost of a call."""


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
    kept = polars.Series(found.kept)
    refused = polars.Series(found.first_refused)
    columns = {
        "subject": whole.subjects,
        "exchanges": count.diff().slice(1),
        "lower": found.lower,
        "upper": found.upper,
        "peak": found.peak,
        "basic": found.basic,
        "budget_kept": kept.cast(polars.Boolean).set(kept < 0, None),
        "first_refused": refused.set(refused == 0, None),
        "remaining": found.remaining,
    }
    return polars.DataFrame(columns, schema=schema(whole.subjects.dtype))


def audited_batches(
    batches: Iterable[Any], plan: Plan, enough: int = ENOUGH
) -> Iterator[DataFrame]:
    """Rows for the subjects of batches of Arrow, sorted by subject and then by order.

    Batches are worked on when there are ``enough`` rows. A subject whose rows go on after that
    waits for them. That all rows of a subject are together is checked: subjects ascend from batch
    to batch, as they do within one.
    """
    last = None
    for frame in _whole_subjects(batches, enough):
        try:
            whole = in_order(frame, plan)
        except Unusable:
            raise bad_exchanges(frame, plan) from None
        if last is not None and not whole.subjects[0] > last:
            raise AssertionError("subjects are not together, or not in ascending order")
        last = whole.subjects[-1]
        yield audited(whole, plan)


def _whole_subjects(batches: Iterable[Any], enough: int) -> Iterator[DataFrame]:
    import polars

    from expost.audits.log import logged

    def read(batches: list[DataFrame], before: DataFrame | None) -> DataFrame:
        frame = logged(polars.concat(batches).lazy()).collect()
        return frame if before is None else polars.concat([before, frame])

    waiting: list[DataFrame] = []
    before: DataFrame | None = None
    for batch in batches:
        waiting.append(polars.DataFrame(batch))
        if sum(map(len, waiting)) < enough:
            continue
        frame = read(waiting, before)
        # If rows of the last subject are elsewhere too, subjects do not ascend, which is checked.
        rest = int((frame["subject"] == frame["subject"][-1]).sum())
        if rest < len(frame):
            yield frame.head(len(frame) - rest)
        waiting, before = [], frame.tail(rest)
    if waiting:
        before = read(waiting, before)
    if before is not None and len(before):
        yield before
