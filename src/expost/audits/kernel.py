"""The kernel of an audit: whole subjects in, a row for each of them out.

A row depends on the responses of its subject and on the plan, and on nothing else: not on who else
is in the batch, nor on where the batch was cut. So all engines find the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from expost.audits.bad_rows import bad_exchanges
from expost.audits.buckets import HELD, whole_subjects
from expost.audits.log import logged
from expost.audits.plan import Plan
from expost.audits.rows import Unusable, Whole, arranged
from expost.audits.verdicts import Verdicts, verdicts

if TYPE_CHECKING:
    from polars import DataFrame

__all__ = ["COLUMNS", "audited", "audited_batches", "schema"]

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
