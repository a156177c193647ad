"""What many subjects answered, and their losses, as tables in files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from expost.answers import COLUMNS, Answers, Subject, queries_from_json, queries_to_json
from expost.audits._folder import load_folder
from expost.audits._losses import AgainstBudget, Losses
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text
from expost.files.durable import save
from expost.files.kinds import QUERIES, read_replaceable
from expost.files.regular import read_text
from expost.files.tables import read_table, write_table
from expost.filters import Filter
from expost.queries import Query

__all__ = ["load_answers", "save_answers", "save_losses", "save_queries"]


PathLike = str | os.PathLike[str]


def load_answers(
    data: Any,
    queries: PathLike | None = None,
    *,
    complete: bool = True,
    filter: Filter | None = None,
    refused: Iterable[tuple[Subject, str]] | None = None,
) -> Answers:
    """Read the answers of many subjects from a table of responses and a file of queries.

    ``data`` is a file (CSV, JSON Lines or Parquet) or a table in memory, as for :class:`Answers`.
    It has the columns ``subject``, ``query`` and ``response``; others are ignored. ``queries`` is a
    JSON file: ``{"version": 1, "domain": …, "queries": {"id": {…}, …}}``. An error names the row,
    counted from 1 below the header. ``complete``, ``filter`` and ``refused`` are those of
    :class:`Answers`.

    ``data`` may also be a folder of transcripts, see :func:`load_folder`, which says by itself what
    was asked: ``queries`` may be left out there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> queries = '''{"version": 1, "domain": {"values": ["no", "yes"]},
    ...     "queries": {"smokes": {"kind": "randomized_response", "epsilon": "1"}}}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, file = Path(folder) / "data.csv", Path(folder) / "queries.json"
    ...     _ = data.write_text("subject,query,response\\na,smokes,yes\\nb,smokes,no\\n")
    ...     _ = file.write_text(queries)
    ...     xp.load_answers(data, file)
    Answers(2 subjects, 2 responses)
    """
    if isinstance(data, (str, os.PathLike)) and os.path.isdir(data):
        return load_folder(data, queries, complete=complete).answers
    with at("queries"):
        if queries is None:
            raise InvalidInput(
                "give the file of queries too; only a folder of transcripts has its own"
            )
        expect(queries, (str, os.PathLike), "the name of a file of queries")
    with at(os.fspath(queries), ": "):
        domain, by_id = queries_from_json(read_text(queries))
    read_answers = partial(Answers, complete=complete, filter=filter, refused=refused)
    if not isinstance(data, (str, os.PathLike)):
        return read_answers(domain, by_id, data)
    with at(os.fspath(data), ": "), _below_header(Path(data)):
        return read_answers(domain, by_id, read_table(Path(data), COLUMNS))


@contextmanager
def _below_header(data: Path) -> Iterator[None]:
    """Say from where the rows of CSV are counted: an editor counts the header too."""
    try:
        yield
    except InvalidInput as error:
        if data.suffix != ".csv":
            raise
        location = re.sub(r"^row \d+", r"\g<0> below the header", error.location)
        raise InvalidInput(error.reason, location) from None


def save_queries(
    domain: Domain, queries: Mapping[str, Query], path: PathLike, *, overwrite: bool = False
) -> None:
    """Write the file of queries that :func:`load_answers` reads, durably.

    Of files that are there already, only another file of queries is replaced, unless ``overwrite``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> queries = {"smokes": xp.randomized_response(epsilon="1")}
    >>> table = {"subject": ["a"], "query": ["smokes"], "response": ["yes"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "queries.json"
    ...     xp.audits.save_queries(xp.FiniteSet(["no", "yes"]), queries, file)
    ...     xp.load_answers(table, file)
    Answers(1 subject, 1 response)
    """
    text = queries_to_json(domain, queries)
    with at(os.fspath(path), ": "):
        if not overwrite:
            read_replaceable(path, QUERIES)
        save(path, lambda: text)


def save_answers(answers: Answers, path: PathLike) -> None:
    """Write a table of answers that :func:`load_answers` and audits read.

    The columns are subject, order (from 1 for each subject), query and response; the suffix of the
    file gives the format, as for :func:`save_losses`.
    """
    counts = answers.exchanges.tolist()
    spelled = [_spelled(answers, key, position) for key, position in answers.responses]
    columns: dict[str, list[Any]] = {
        "subject": [
            name for name, count in zip(answers.subjects, counts, strict=True) for _ in range(count)
        ],
        "order": [number for count in counts for number in range(1, count + 1)],
        "query": [answers.responses[code][0] for code in answers.codes.tolist()],
        "response": [spelled[code] for code in answers.codes.tolist()],
    }
    with at(os.fspath(path), ": "):
        write_table(columns, Path(path))


def _spelled(answers: Answers, key: str, position: int) -> Any:
    """A response as tables spell it: several values as a JSON list."""
    response = answers.queries[key].on(answers.domain).responses[position]
    return json_text(list(response)) if isinstance(response, tuple) else response


def save_losses(losses: Losses | AgainstBudget, path: PathLike) -> None:
    """Write a table of losses with a row per subject: subject, lower, upper, exchanges, basic.

    Losses against a budget have one more column, ``over``: yes, no or undecided. The suffix of the
    file gives the format: .csv, .jsonl or .parquet. In CSV, a text that a spreadsheet would take
    for a formula, such as ``=1+1``, gets an apostrophe in front.
    """
    with at(os.fspath(path), ": "):
        columns = losses.lists() if isinstance(losses, Losses) else losses.columns()
        write_table(columns, Path(path))
