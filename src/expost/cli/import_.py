"""``expost import``: make a clean table of answers from an exported survey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from expost.answers import (
    ANSWERED,
    DECLINED,
    MISSING,
    REFUSED,
    UNKNOWN,
    ImportedAnswers,
    import_answers,
)
from expost.cli._inputs import option_names
from expost.cli._options import file_option, flag_option, out_option, path, value_option
from expost.cli._outputs import Result, check_output, prints_result
from expost.errors import InvalidInput, at, read_at
from expost.files.durable import create
from expost.files.kinds import ANSWERS
from expost.files.reading import parse
from expost.files.regular import read_text
from expost.files.tables import table_format, write_table
from expost.numbers import exact

__all__ = ["command"]

_OPTIONS = {name: f"--{name}" for name in ("response", "refused", "declined", "missing", "sheet")}


@click.command("import")
@click.argument("file", type=path, metavar="FILE")
@value_option("--subject", "COLUMN", "Column of subject names.", required=True)
@value_option("--query", "COLUMN", "Column of queries, if each row is one response.")
@value_option(
    "--response",
    "COLUMN",
    "Column of responses. Without --query, one option for each query, named by its column.",
    multiple=True,
    required=True,
)
@value_option(
    "--order-by",
    "COLUMN",
    "Column that orders the responses of a subject: numbers, dates, or labels such as Week 3. "
    "Default: the order of the rows.",
)
@value_option(
    "--refused", "WORD", "Word that marks a query that the privacy filter refused.", multiple=True
)
@value_option(
    "--declined",
    "WORD",
    "Word that marks a query that the subject declined to answer.",
    multiple=True,
)
@value_option(
    "--missing",
    "WORD",
    "Word that marks a missing response. Empty cells are missing anyway.",
    multiple=True,
)
@value_option(
    "--covariate",
    "COLUMN",
    "Column with a public fact about the subjects, such as their region or a survey weight.",
    multiple=True,
)
@flag_option("--ignore-case", "Join subjects whose names differ only in case.")
@value_option("--sheet", "NAME", "Sheet of a spreadsheet. Default: the first.")
@value_option("--epsilon", "E", "Epsilon of every query in a new file of queries.")
@out_option("TABLE", "Table of answers (.csv, .jsonl or .parquet).", default="answers.csv")
@file_option(
    "--queries",
    "QUERIES",
    "File of queries (JSON) to write, unless it exists.",
    default="queries.json",
)
@file_option(
    "--covariates",
    "COVARIATES",
    "New table with a row per subject, for --covariate.",
    default="covariates.csv",
)
@prints_result
def command(
    file: Path,
    covariate: tuple[str, ...],
    epsilon: str | None,
    out: Path,
    queries: Path,
    covariates: Path,
    **columns: Any,
) -> Result:
    """Make a clean table of answers from an exported survey.

    FILE is a CSV file with any separator, or a spreadsheet. The command prints everything that it
    changed or left out. It also writes a first file of queries; complete every "?" in it.
    """
    check_output(out, ANSWERS, file, queries)
    with at(str(out), ": "):
        table_format(out)
    if covariate:
        with at(str(covariates), ": "):
            table_format(covariates)
            if covariates.exists():
                raise InvalidInput("already exists; not overwritten")
    if epsilon is not None:
        read_at("--epsilon", exact, epsilon)
    with option_names(_OPTIONS):
        imported = import_answers(file, covariates=covariate, **columns)
    document = imported.queries_document(epsilon or UNKNOWN)
    new_queries = not queries.exists()
    if new_queries:
        with at(str(queries), ": "):
            create(queries, document)
    write_table(imported.table, out, for_people=False)
    if covariate:
        write_table(imported.covariates, covariates, for_people=False)
    lines: list[str | tuple[str, ...]] = [
        *_describe_counts(imported),
        *(f"- {remark}" for remark in imported.remarks),
        f"The table is in {out}.",
        *([f"The covariates are in {covariates}."] if covariate else []),
        *_describe_next_step(imported, queries, document, new=new_queries, epsilon=epsilon),
    ]
    tree = {
        "subjects": len(set(imported.table["subject"])),
        "queries": imported.queries,
        **{outcome: imported.count(outcome) for outcome in _OUTCOMES},
        "remarks": imported.remarks,
    }
    return Result(tree, lines)


def _has_same_domain(queries: Path, document: str) -> bool:
    """Return whether a file of queries has the domain of a new one, where that is complete."""
    try:
        old, new = (parse(source)["domain"] for source in (read_text(queries), document))
        old, new = (domain.get("attributes", domain) for domain in (old, new))
        return old.keys() == new.keys() and all(
            UNKNOWN in values or old[name] == values for name, values in new.items()
        )
    except (InvalidInput, AttributeError, KeyError, TypeError):
        return False


_OUTCOMES = (ANSWERED, REFUSED, DECLINED, MISSING)


def _describe_counts(imported: ImportedAnswers) -> Iterator[tuple[str, str]]:
    yield "subjects", f"{len(set(imported.table['subject'])):,}"
    yield "queries", f"{len(imported.queries):,}"
    for outcome in _OUTCOMES:
        if outcome == ANSWERED or imported.count(outcome):
            yield outcome, f"{imported.count(outcome):,}"


def _describe_next_step(
    imported: ImportedAnswers, queries: Path, document: str, *, new: bool, epsilon: str | None
) -> Iterator[str]:
    if not new:
        yield f"{queries} already exists and was not changed."
        if not _has_same_domain(queries, document):
            yield "Its domain differs from what these answers show; move it away for a new file."
    elif epsilon is None or not all(imported.labels.values()):
        yield f'{queries} is new. Complete every "?" in it, and check each kind and its values.'
    else:
        yield f"{queries} is new: randomized response for every query. Check that this is right."
