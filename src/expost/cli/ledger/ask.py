"""``expost ledger ask``: a simulation, with the values of subjects, which are never shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, assert_never

import click

from expost.answers import Subject
from expost.cli._inputs import check_name, read_columns
from expost.cli._options import file_option
from expost.cli._outputs import Result, prints_result, progress_line, warn
from expost.cli.ledger._options import (
    Open,
    find_query,
    ledger,
    round_key,
    round_query,
)
from expost.domains import Attributes, Box, Categories, Domain, FiniteSet
from expost.errors import InvalidInput
from expost.files.regular import others_may_read
from expost.files.tables import table_errors
from expost.panel import Replies
from expost.session._secret import NotCopyable

__all__ = ["VALUES_HELP", "command", "describe_replies", "read_values"]

#: Makes a value of a cell of CSV, which is a text.
Read = Callable[[str], Any]

_SUBJECT = "subject"
_ALONE = "value"


class SecretRows(NotCopyable):
    """The values of some subjects, which only the ledger reads."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    @property
    def rows(self) -> Sequence[Any]:
        """Return all values."""
        return self._rows


def read_values(file: Path, domain: Domain) -> tuple[list[Subject], SecretRows]:
    """Read the subjects of a table and their values, in the same order."""
    check_name(file, "values")
    if others_may_read(file.stat()):
        warn(f"{file} is readable by others; run chmod 600 {file}")
    cells, changing = _list_columns(domain)
    with table_errors(file):
        table = read_columns(file, [_SUBJECT, *cells])
        texts = file.suffix.lower() == ".csv"
        columns = [
            [read(cell) for cell in table[name]] if texts else list(table[name])
            for name, read in cells.items()
        ]
        if list(cells) == [_ALONE]:
            return list(table[_SUBJECT]), SecretRows(columns[0])
        named = domain.names is not None
        rows = [
            dict(zip(cells, row, strict=True)) if named else list(row)
            for row in zip(*columns, strict=True)
        ]
        if changing:
            rows = [
                _records_by_step(row_index, row, changing) for row_index, row in enumerate(rows, 1)
            ]
        return list(table[_SUBJECT]), SecretRows(rows)


def _records_by_step(row_index: int, row: Any, changing: Collection[str]) -> list[dict[str, Any]]:
    """Return a record for each step; columns that change have a list of the values so far."""
    lists = [row[name] for name in changing]
    lengths = {0 if isinstance(cell, str) or not hasattr(cell, "__len__") else len(cell)
               for cell in lists}  # fmt: skip
    if len(lengths) > 1 or 0 in lengths:
        raise InvalidInput(
            "expected a list for each attribute that changes, with a value for every step so far",
            f"row {row_index}",
        )
    return [
        {name: row[name][step] if name in changing else row[name] for name in row}
        for step in range(*lengths)
    ]


def _list_columns(domain: Domain) -> tuple[dict[str, Read], list[str]]:
    """Return a reader of cells for each column of a domain, and the columns that change."""
    match domain:
        case FiniteSet(names=None):
            return {_ALONE: _make_reader(domain)}, []
        case FiniteSet():
            return dict.fromkeys(domain.called(_ALONE), _parse_cell), []
        case Attributes():
            changing = [name for name in domain.names if domain[name].change]
            return {
                name: _refuse_cell if name in changing else _make_reader(domain[name].values)
                for name in domain.names
            }, changing
        case Box():
            names = domain.names or [f"x{index}" for index in range(len(domain.sides))]
            return {
                name: str if isinstance(side, Categories) else _parse_cell
                for name, side in zip(names, domain.sides, strict=True)
            }, []
        case _:
            assert_never(domain)


def _make_reader(domain: FiniteSet) -> Read:
    """Return a reader of the labels and numbers of a set."""

    def read(text: str) -> Any:
        as_number = _parse_cell(text)
        if as_number != text and domain.locate(text) is not None:
            if domain.locate(as_number) is not None:
                raise InvalidInput("a cell could be a number or a label; use JSON Lines (.jsonl)")
            return text
        return as_number

    return read


def _parse_cell(text: str) -> Any:
    """Return a cell as a number if it is one, else as it is, which no domain contains."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _refuse_cell(text: str) -> Any:
    raise InvalidInput("attributes that change need a list of values; use JSON Lines (.jsonl)")


VALUES_HELP = (
    "Table of subjects and their values: the columns 'subject', and 'value' or one for each "
    "coordinate. It stays secret: run chmod 600."
)


@click.command("ask")
@ledger
@round_query
@round_key
@file_option("--values", "VALUES", VALUES_HELP, required=True)
@prints_result
def command(open_: Open, query: str, key: str, values: Path) -> Result:
    """Simulate subjects: ask them a query and record their responses.

    Register the subjects with --kind simulated first. Responses are recorded before they are shown.
    A refusal costs the subject nothing. If you hold real values and publish about groups, use
    central differential privacy instead. Stop other processes that write to the ledger first.
    """
    with open_() as study, progress_line() as line:
        wanted = find_query(study, query)
        subjects, secret = read_values(values, study.domain)
        progress = line.counts("subjects")
        replies = study.ask(wanted, secret.rows, subjects, key=key, progress=progress)
    return describe_replies(key, replies)


def describe_replies(key: str, replies: Replies) -> Result:
    """Count and list the answers and refusals of a round."""
    columns, refused = replies.columns(), replies.refused
    no_room = sum(query is None for query in replies.queries)
    answered = [
        {"subject": name, "response": response}
        for name, response in zip(columns["subject"], columns["response"], strict=True)
    ]
    room = [("no room", f"{no_room:,}")] if no_room else []
    return Result(
        {"key": key, "answered": answered, "refused": refused, "no_room": no_room},
        [("key", key), ("answered", f"{len(answered):,}"), ("refused", f"{len(refused):,}"), *room],
    )
