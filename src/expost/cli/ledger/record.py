"""``expost ledger record``: answers that were collected elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import as_json, path
from expost.cli._outputs import fail_if, progress_line, show_json, show_lines
from expost.cli.ledger._options import Open, find_query, ledger, round_query
from expost.errors import InvalidInput, at
from expost.files.tables import read_table

__all__ = ["command"]


@click.command("record")
@ledger
@click.argument("table", type=path, metavar="TABLE")
@round_query
@click.option(
    "--key",
    required=True,
    metavar="KEY",
    help="Idempotency key of the table: repeating the command records nothing twice.",
)
@as_json
def command(open_: Open, table: Path, query: str, key: str, as_json: bool) -> None:
    """Record answers that were collected elsewhere.

    TABLE (CSV, JSONL, Parquet) has the columns subject and response; register its subjects with
    --kind imported first. All answers are recorded, because they were given. If one is not within
    the budget, its subject is suspended and the exit code is 1. Stop other processes that write to
    the ledger first.
    """
    with open_() as study, progress_line() as line:
        wanted = find_query(study, query)
        with at(str(table), ": "):
            columns = read_table(table, ["subject", "response"])
            for name in ("subject", "response"):
                if name not in columns:
                    raise InvalidInput(f"has no column {name!r}")
            subjects, responses = columns["subject"], columns["response"]
            progress = line.counts("subjects")
            accepted = study.record(wanted, responses, subjects, key=key, progress=progress)
    over = int((~accepted).sum())
    if as_json:
        show_json({"recorded": len(accepted), "not_within_budget": over})
    else:
        counts = [("recorded", f"{len(accepted):,}")]
        show_lines([*counts, *([("not within budget", f"{over:,}")] if over else [])])
    fail_if(over)
