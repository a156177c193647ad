"""``expost ledger status``: how a study stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from expost._format import format_remaining
from expost.audits._audit import is_used_up
from expost.cli._options import flag_option
from expost.cli._outputs import Result, count_lines, prints_result
from expost.cli.ledger._options import Open, SubjectOptions, ledger, some_subjects
from expost.files.tables import as_lists
from expost.ledger import Ledger, Status
from expost.report._formatting import budget_text, format_amount

__all__ = ["command"]


@click.command("status")
@ledger
@some_subjects
@flag_option("--each", "Also list every subject.", parameter="per_subject")
@prints_result
def command(open_: Open, options: SubjectOptions, per_subject: bool) -> Result:
    """Show the state of a study: answers, losses, remaining budgets.

    With --subject or --subjects, list these subjects only. The loss bounds what anyone who sees all
    answers of a subject can have learned. To check that every budget was respected at every point,
    run expost ledger audit. Only reads the ledger.
    """
    with open_() as study:
        subjects = options.find(study)
        status = study.status(subjects)
        tree: dict[str, Any] = {}
        lines: list[str | tuple[str, str]] = []
        if subjects is None:
            tree, totals = _compute_totals(study, status)
            lines += totals
    if per_subject or not lines:
        columns = as_lists(status.columns())
        rows = zip(*columns.values(), strict=True)
        tree["by_subject"] = [dict(zip(columns, row, strict=True)) for row in rows]
        lines += [*([""] if lines else []), *_list_subjects(status)]
    return Result(tree, lines)


def _compute_totals(study: Ledger, status: Status) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the totals over all subjects, as JSON and as lines."""
    policy, filter_, kinds = study.policy, study.filter, Counter(status.kinds)
    active = np.array([state == "active" for state in status.states], dtype=np.bool_)
    counts = {
        "answers": int(status.exchanges.sum()),
        "refused": sum(round_.refused + round_.declined for round_ in study.rounds()),
        "reserved": int(status.reserved.sum()),
        "suspended": int(status.suspended.sum()),
        "unconfirmed": int(status.unconfirmed.sum()),
        "used_up": int(is_used_up(status.remaining[active], filter_).sum()),
    }
    tree: dict[str, Any] = {
        "study": policy.study,
        "policy_id": policy.content_id,
        "budget": filter_.budget.nearest,
        "ended": status.ended,
        "subjects": len(status),
        "kinds": kinds,
        **counts,
    }
    lines = [
        ("study", policy.study or "(no name)"),
        ("policy id", policy.content_id),
        ("budget", budget_text(filter_)),
        *(("not covered", one.level.gap) for one in filter_.members if one.is_at_level),
        ("ended", "yes" if status.ended else "no"),
        ("subjects", f"{len(status):,}"),
        ("kinds", ", ".join(f"{kinds[kind]:,} {kind}" for kind in kinds) or "none"),
        *count_lines(counts),
    ]
    if len(status):
        amounts = {"loss": status.loss.upper, "basic_composition": status.spent.upper}
        for name, column in amounts.items():
            mean, most = float(column.mean()), float(column.max())
            tree[name] = {"mean": mean, "largest": most}
            text = f"{format_amount(mean)} on average, {format_amount(most)} largest"
            lines.append((name.replace("_", " "), text))
        remaining = float(status.remaining.mean())
        tree["remaining"] = {"mean": remaining}
        where = " where most was used" if filter_.is_at_level else ""
        lines.append(("remaining", f"{format_remaining(remaining)} on average{where}"))
    return tree, lines


def _list_subjects(status: Status) -> Iterator[tuple[str, str]]:
    width = max(map(len, status.kinds), default=0)
    for row, name in enumerate(status.subjects):
        yield (
            str(name),
            "  ".join([f"{status.kinds[row]:<{width}}", *_describe_subject(status, row)]),
        )


def _describe_subject(status: Status, row: int) -> Iterator[str]:
    yield f"{int(status.exchanges[row]):,} answered"
    yield f"loss {status.loss.shown(row)}"
    yield f"remaining {format_remaining(float(status.remaining[row]))}"
    if status.reserved[row]:
        yield "reserved"
    if status.states[row] != "active":
        yield status.states[row]
