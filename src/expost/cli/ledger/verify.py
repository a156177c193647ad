"""``expost ledger verify``: everything again, from the answers."""

from __future__ import annotations

import click

from expost.cli._outputs import Result, count_lines, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger

__all__ = ["command"]


@click.command("verify")
@ledger
@prints_result
def command(open_: Open) -> Result:
    """Recompute everything in a ledger from its answers.

    The command checks the chain and the tally of every subject, every decision, the root of every
    commit, and the integrity of the database. Exits with 1 if something differs. Only reads the
    ledger.
    """
    with open_() as study, progress_line() as line:
        result = study.verify(progress=line.counts("subjects"))
    names = ("subjects", "exchanges", "commits", "undecided")
    counts = {name: getattr(result, name) for name in names}
    tree = {"verified": result.good, **counts, "problems": list(result.problems)}
    if not result.undecided:
        del counts["undecided"]
    lines = [
        ("verified", "yes" if result.good else "NO"),
        *count_lines(counts),
        *(("problem", problem) for problem in result.problems),
    ]
    return Result(tree, lines, exit_code=not result.good)
