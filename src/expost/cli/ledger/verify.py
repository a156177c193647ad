"""``expost ledger verify``: everything again, from what was answered."""

from __future__ import annotations

import click

from expost.cli.ledger.options import Open, ledger
from expost.cli.options import as_json
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines

__all__ = ["command"]


@click.command("verify")
@ledger
@as_json
def command(open_: Open, as_json: bool) -> None:
    """Recompute all of a ledger from what was answered.

    Chains, tallies, every decision, and the root of every commit. Exits with 1 if something is not
    as it should be.
    """
    with open_() as study, progress_line() as line:
        found = study.verify(progress=lambda done, total: line.count(done, total, "subjects"))
    if as_json:
        show_json(
            {
                "verified": found.good,
                "subjects": found.subjects,
                "exchanges": found.exchanges,
                "commits": found.commits,
                "undecided": found.undecided,
                "problems": list(found.problems),
            }
        )
    else:
        show_lines(
            [
                ("verified", "yes" if found.good else "NO"),
                ("subjects", f"{found.subjects:,}"),
                ("exchanges", f"{found.exchanges:,}"),
                ("commits", f"{found.commits:,}"),
                *([("undecided", f"{found.undecided:,}")] if found.undecided else []),
                *(("problem", each) for each in found.problems),
            ]
        )
    if not found.good:
        click.get_current_context().exit(1)
