"""``expost ledger verify``: everything again, from the answers."""

from __future__ import annotations

import click

from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("verify")
@ledger
@prints_result
def command(open_: Open) -> Result:
    """Recompute everything in a ledger from its answers.

    That is the chain and tally of every subject, every decision, the root of every commit, and the
    integrity of the database. Exits with 1 if something differs. Reads only.
    """
    with open_() as study, progress_line() as line:
        result = study.verify(progress=line.counts("subjects"))
    return Result(
        {
            "verified": result.good,
            "subjects": result.subjects,
            "exchanges": result.exchanges,
            "commits": result.commits,
            "undecided": result.undecided,
            "problems": list(result.problems),
        },
        [
            ("verified", "yes" if result.good else "NO"),
            ("subjects", f"{result.subjects:,}"),
            ("exchanges", f"{result.exchanges:,}"),
            ("commits", f"{result.commits:,}"),
            *([("undecided", f"{result.undecided:,}")] if result.undecided else []),
            *(("problem", problem) for problem in result.problems),
        ],
        exit_code=not result.good,
    )
