"""``expost ledger answers``: all answers as a table."""

from __future__ import annotations

from pathlib import Path

import click

from expost.audits._answer_files import save_answers, save_queries
from expost.cli._options import file_option, out_option
from expost.cli._outputs import Result, check_output, count_lines, prints_result
from expost.cli.ledger._options import Open, ledger
from expost.errors import InvalidInput, at
from expost.files.kinds import QUERIES
from expost.files.tables import table_format

__all__ = ["command"]


@click.command("answers")
@ledger
@out_option("TABLE", "New table (.csv, .jsonl or .parquet).", required=True)
@file_option(
    "--queries",
    "QUERIES",
    "File for the queries (JSON), which estimates and audits also need.",
    required=True,
)
@prints_result
def command(open_: Open, out: Path, queries: Path) -> Result:
    """Write all answers as a table, for estimates and audits.

    The columns are subject, order, query and response. If queries were refused or declined, they
    are at the end, with a column outcome. To use the table, run expost estimate TABLE --queries
    QUERIES. Only reads the ledger.
    """
    with at(str(out), ": "):
        table_format(out)
        if out.exists():
            raise InvalidInput("already exists; not overwritten")
    check_output(queries, QUERIES)
    with open_() as study:
        answers = study.answers()
    save_queries(answers.domain, answers.queries, queries)
    save_answers(answers, out)
    counts = {"answers": len(answers.codes), "subjects": len(answers)}
    return Result(counts, count_lines(counts))
