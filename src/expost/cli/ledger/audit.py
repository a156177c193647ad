"""``expost ledger audit``: whether every budget was kept at every exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from expost.cli.audit import audit_lines
from expost.cli.ledger.options import Open, ledger
from expost.cli.options import as_json
from expost.cli.show import show_json, show_lines
from expost.ledger import StudyAudit

__all__ = ["command"]


@click.command("audit")
@ledger
@as_json
def command(open_: Open, as_json: bool) -> None:
    """Whether every budget in a ledger was kept at every exchange.

    Every answer is decided again, on those before it. Exits with 1 if a budget was not kept.
    """
    with open_() as study:
        found = study.audit()
    if as_json:
        show_json(
            {
                **({} if found.audit is None else found.audit.summary()),
                "closed": list(found.closed),
                "reserved": list(found.reserved),
                "did_not_fit": [
                    {"subject": each.subject, "reason": each.reason} for each in found.kept
                ],
            }
        )
    else:
        show_lines(_lines(found))
    if found.audit is not None and found.audit.broken:
        click.get_current_context().exit(1)


def _lines(found: StudyAudit) -> Iterator[tuple[str, str]]:
    if found.audit is None:
        yield "answers", "none so far"
    else:
        yield from audit_lines(found.audit)
    yield "closed", f"{len(found.closed):,}"
    yield "reserved", f"{len(found.reserved):,}"
    yield "did not fit", f"{len(found.kept):,}"
    for reason, number in Counter(each.reason for each in found.kept).most_common():
        yield "", f"{number:,}: {reason}"
