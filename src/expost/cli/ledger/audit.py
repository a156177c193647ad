"""``expost ledger audit``: whether every budget was respected at every exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from expost.cli._outputs import Result, prints_result
from expost.cli.audit import audit_lines
from expost.cli.ledger._options import Open, ledger
from expost.ledger import StudyAudit

__all__ = ["command"]

_LISTED = 5


@click.command("audit")
@ledger
@prints_result
def command(open_: Open) -> Result:
    """Check that every budget was respected at every exchange.

    The filter decides every exchange again, from the exchanges before it. Exits with 1 if a budget
    was not respected, or if a restored backup has lost imported answers. Install the extra
    'frames'. Only reads the ledger.
    """
    with open_() as study:
        result = study.audit()
    return Result(_to_tree(result), _describe_audit(result), exit_code=not result.good)


def _to_tree(result: StudyAudit) -> dict[str, Any]:
    summary = {} if result.audit is None else result.audit.summary()
    return {
        **summary,
        "suspended": result.suspended,
        "unconfirmed": result.unconfirmed,
        "reserved": result.reserved,
        "quarantined": [
            asdict(message) | {"message": message.message.decode(errors="replace")}
            for message in result.quarantined
        ],
        "extras": [
            {"subject": subject, "query": query, "response": response}
            for subject, query, response in result.extras
        ],
        "two_outcomes": [{"subject": subject, "key": key} for subject, key in result.two_outcomes],
        "lost_imports": result.lost_imports,
        "marks": result.marks,
    }


def _describe_audit(result: StudyAudit) -> Iterator[tuple[str, str]]:
    if result.audit is None:
        yield "answers", "none so far"
    else:
        yield from audit_lines(result.audit)
    for name in ("suspended", "unconfirmed", "reserved"):
        yield name, f"{len(getattr(result, name)):,}"
    yield "quarantined", f"{len(result.quarantined):,}"
    for reason, count in Counter(message.reason for message in result.quarantined).most_common():
        yield "", f"{count:,}: {reason}"
    held = {message.subject for message in result.quarantined if message.held} - set(
        result.suspended
    )
    if held:
        yield "held", f"{len(held):,} not suspended until an operator has looked"
    counted = ", counted as exchanges after the recorded ones" if result.extras else ""
    yield "extras", f"{len(result.extras):,}{counted}"
    yield "two outcomes", f"{len(result.two_outcomes):,}"
    for subject, key in result.two_outcomes[:_LISTED]:
        yield "", f"{subject}: key {key!r}"
    yield "lost imports", f"{result.lost_imports:,}"
    for row, mark in enumerate(result.marks):
        yield "" if row else "what happened", mark
