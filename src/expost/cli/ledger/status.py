"""``expost ledger status``: how a study stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np

from expost.answers import Subject
from expost.cli.ledger.options import Open, ledger, named_or_all, some_subjects
from expost.cli.options import as_json
from expost.cli.show import show_json, show_lines
from expost.errors import printable
from expost.files.canonical import plain
from expost.ledger import Ledger, Status
from expost.report.words import budget_text, shown

__all__ = ["command"]

_NOTHING = 1e-9
_USED_UP = 1000
"""A budget of which less than this part is left is used up."""


@click.command("status")
@ledger
@some_subjects
@click.option("--each", is_flag=True, help="Also subject by subject.")
@as_json
def command(open_: Open, subjects: Sequence[str], each: bool, as_json: bool) -> None:
    """How a study stands: answers, losses, what is left.

    Losses are those of somebody who sees all answers of a subject. Whether every budget was kept on
    the way is told by expost ledger audit.
    """
    with open_() as study:
        found = study.status(named_or_all(study, subjects) if subjects else None)
        facts = {} if subjects else _facts(study, found)
    if as_json:
        columns = {name: list(map(_plain, column)) for name, column in found.columns().items()}
        rows = zip(*columns.values(), strict=True)
        table = [dict(zip(columns, row, strict=True)) for row in rows]
        listed = {"each": table} if each or subjects else {}
        show_json(plain({**{name.replace(" ", "_"): facts[name][0] for name in facts}, **listed}))
        return
    show_lines([(name, text) for name, (_, text) in facts.items()])
    if facts and each:
        click.echo()
    if each or subjects:
        show_lines(_rows(found))


def _facts(study: Ledger, found: Status) -> dict[str, tuple[Any, str]]:
    """What there is to know of everybody, by name: for programs, and for people."""
    refused = sum(each.refused + each.declined for each in study.rounds())
    used_up = int((found.remaining[~found.closed] < study.filter.budget.nearest / _USED_UP).sum())
    answers, closed, waiting = (
        int(column.sum()) for column in (found.exchanges, found.closed, found.reserved)
    )
    facts: dict[str, tuple[Any, str]] = {
        "study": (study.policy.study, study.policy.study or "(no name)"),
        "policy id": (study.policy.content_id, study.policy.content_id),
        "budget": (study.filter.budget.nearest, budget_text(study.filter)),
        "ended": (found.ended, "yes" if found.ended else "no"),
        "subjects": (len(found), f"{len(found):,}"),
        "answers": (answers, f"{answers:,}"),
        "refused": (refused, f"{refused:,}"),
        "reserved": (waiting, f"{waiting:,}"),
        "closed": (closed, f"{closed:,}"),
        "used up": (used_up, f"{used_up:,}"),
    }
    if len(found):
        for name, column in (("loss", found.loss.upper), ("basic composition", found.spent.upper)):
            mean, most = float(column.mean()), float(column.max())
            text = f"{shown(mean)} on average, {shown(most)} largest"
            facts[name] = ({"mean": mean, "largest": most}, text)
        left = float(found.remaining.mean())
        facts["left"] = ({"mean": left}, f"{_left(left)} on average")
    return facts


def _rows(found: Status) -> Iterator[tuple[str, str]]:
    for place, name in enumerate(found.subjects):
        yield _called(name), "  ".join(_row(found, place))


def _row(found: Status, place: int) -> Iterator[str]:
    yield f"{int(found.exchanges[place]):,} answered"
    yield f"loss {found.loss.shown(place)}"
    yield f"left {_left(float(found.remaining[place]))}"
    if found.reserved[place]:
        yield "reserved"
    if found.closed[place]:
        yield "closed"


def _left(nats: float) -> str:
    """What is left; a weight that is rounded leaves so little that it is nothing."""
    return shown(nats) if nats > _NOTHING else "0"


def _plain(entry: Any) -> Any:
    return entry.item() if isinstance(entry, np.generic) else entry


def _called(name: Subject) -> str:
    return printable(str(name))
