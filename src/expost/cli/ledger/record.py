"""``expost ledger record``: answers that were collected elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._inputs import read_columns
from expost.cli._options import path, value_option
from expost.cli._outputs import Result, count_lines, prints_result, progress_line
from expost.cli.ledger._options import Open, find_query, ledger, round_query
from expost.files.tables import table_errors

__all__ = ["command"]


@click.command("record")
@ledger
@click.argument("table", type=path, metavar="TABLE")
@round_query
@value_option(
    "--key",
    "KEY",
    "Idempotency key of the table: repeating the command records nothing twice.",
    required=True,
)
@prints_result
def command(open_: Open, table: Path, query: str, key: str) -> Result:
    """Record answers that were collected elsewhere.

    TABLE (CSV, JSONL, Parquet) has the columns subject and response; register its subjects with
    --kind imported first. All answers are recorded, because they were already released. If one is
    not within the budget, its subject is suspended and the exit code is 1. Stop other processes
    that write to the ledger first.
    """
    with open_() as study, progress_line() as line:
        wanted = find_query(study, query)
        with table_errors(table):
            columns = read_columns(table, ["subject", "response"])
            subjects, responses = columns["subject"], columns["response"]
            progress = line.counts("subjects")
            accepted = study.record(wanted, responses, subjects, key=key, progress=progress)
    over = int((~accepted).sum())
    counts = {"recorded": len(accepted), "not_within_budget": over}
    lines = count_lines(counts)
    return Result(counts, lines if over else lines[:1], exit_code=over > 0)
