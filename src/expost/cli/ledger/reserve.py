"""``expost ledger reserve``: the next exchange of subjects, for their devices to answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import click

from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import (
    Open,
    SubjectOptions,
    find_query,
    ledger,
    round_key,
    round_query,
    some_subjects,
)
from expost.ledger import Outcome

__all__ = ["command", "describe_outcomes"]


_NO_ROOM = "no room"


@click.command("reserve")
@ledger
@round_query
@round_key
@some_subjects
@prints_result
def command(open_: Open, query: str, key: str, options: SubjectOptions) -> Result:
    """Reserve a query for subjects with devices.

    Devices get their reservations when they sync. Without --subject or --subjects, reserve for all
    subjects with a device. A subject with another open reservation is reported as waiting: repeat
    the command with the same key when its device has answered. Stop other processes that write to
    the ledger first.
    """
    with open_() as study, progress_line() as line:
        subjects, wanted = options.find(study), find_query(study, query)
        outcomes = study.reserve(wanted, subjects, key=key, progress=line.counts("subjects"))
    return describe_outcomes(key, outcomes)


def describe_outcomes(key: str, outcomes: Collection[Outcome]) -> Result:
    """Count and list the outcomes of a round; subjects without room for a query have none."""
    counts = Counter(outcome.outcome or _NO_ROOM for outcome in outcomes)
    counts.setdefault("reserved", 0)
    trees = [
        {"subject": outcome.subject, "outcome": outcome.outcome, "sequence": outcome.sequence}
        | ({"reason": outcome.reason} if outcome.reason else {})
        for outcome in outcomes
        if outcome.outcome
    ]
    first = ("reserved", "refused", "waiting")
    names = [*filter(counts.__contains__, first), *sorted(counts.keys() - set(first))]
    return Result(
        {"key": key, "counts": counts, "outcomes": trees},
        [("key", key), *((name, f"{counts[name]:,}") for name in names)],
    )
