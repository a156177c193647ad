"""``expost ledger status``: how a study stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from expost.cli._outputs import Result, prints_result
from expost.cli.ledger._options import Open, SubjectOptions, ledger, some_subjects
from expost.files.tables import as_lists
from expost.ledger import Ledger, Status
from expost.report._formatting import budget_text, format_amount

__all__ = ["command"]

_NOTHING = 1e-9
_USED_UP = 1000
"""A budget is used up if less than one part in so many remains."""


@click.command("status")
@ledger
@some_subjects
@click.option("--each", "per_subject", is_flag=True, help="Also list every subject.")
@prints_result
def command(open_: Open, options: SubjectOptions, per_subject: bool) -> Result:
    """Show how a study stands: answers, losses, remaining budgets.

    With --subject or --subjects, list these subjects only. The loss bounds what anyone who sees all
    answers of a subject can have learned. To check that every budget was respected at every point,
    run expost ledger audit. Reads only.
    """
    with open_() as study:
        subjects = options.find(study)
        status = study.status(subjects)
        totals = _totals(study, status) if subjects is None else {}
    tree = {name.replace(" ", "_"): amount for name, (amount, _) in totals.items()}
    lines: list[str | tuple[str, str]] = [(name, text) for name, (_, text) in totals.items()]
    if per_subject or not totals:
        columns = as_lists(status.columns())
        rows = zip(*columns.values(), strict=True)
        tree["each"] = [dict(zip(columns, row, strict=True)) for row in rows]
        lines += [*([""] if totals else []), *_rows(status)]
    return Result(tree, lines)


def _totals(study: Ledger, status: Status) -> dict[str, tuple[Any, str]]:
    """Return the totals over all subjects by name: for programs, and for people."""
    refused = sum(round_.refused + round_.declined for round_ in study.rounds())
    kinds = Counter(status.kinds)
    active = np.array([state == "active" for state in status.states], dtype=np.bool_)
    used_up = status.remaining[active] < study.filter.budget.nearest / _USED_UP
    totals: dict[str, tuple[Any, str]] = {
        "study": (study.policy.study, study.policy.study or "(no name)"),
        "policy id": (study.policy.content_id, study.policy.content_id),
        "budget": (study.filter.budget.nearest, budget_text(study.filter)),
        "ended": (status.ended, "yes" if status.ended else "no"),
        "subjects": (len(status), f"{len(status):,}"),
        "kinds": (kinds, ", ".join(f"{kinds[kind]:,} {kind}" for kind in kinds) or "none"),
    }
    counts = {
        "answers": int(status.exchanges.sum()),
        "refused": refused,
        "reserved": int(status.reserved.sum()),
        "suspended": int(status.suspended.sum()),
        "unconfirmed": int(status.unconfirmed.sum()),
        "used up": int(used_up.sum()),
    }
    totals |= {name: (count, f"{count:,}") for name, count in counts.items()}
    if len(status):
        for name, column in (
            ("loss", status.loss.upper),
            ("basic composition", status.spent.upper),
        ):
            mean, most = float(column.mean()), float(column.max())
            text = f"{format_amount(mean)} on average, {format_amount(most)} largest"
            totals[name] = ({"mean": mean, "largest": most}, text)
        remaining = float(status.remaining.mean())
        totals["remaining"] = ({"mean": remaining}, f"{_remaining(remaining)} on average")
    return totals


def _rows(status: Status) -> Iterator[tuple[str, str]]:
    width = max(map(len, status.kinds), default=0)
    for row, name in enumerate(status.subjects):
        yield str(name), "  ".join([f"{status.kinds[row]:<{width}}", *_row(status, row)])


def _row(status: Status, row: int) -> Iterator[str]:
    yield f"{int(status.exchanges[row]):,} answered"
    yield f"loss {status.loss.shown(row)}"
    yield f"remaining {_remaining(float(status.remaining[row]))}"
    if status.reserved[row]:
        yield "reserved"
    if status.states[row] != "active":
        yield status.states[row]


def _remaining(nats: float) -> str:
    """Show what remains; a weight that is rounded leaves so little that it is nothing."""
    return format_amount(nats) if nats > _NOTHING else "0"
