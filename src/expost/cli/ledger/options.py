"""Arguments and options that the commands about ledgers share."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from expost.answers import Subject
from expost.cli.options import path
from expost.cli.progress import Line
from expost.cli.questions import read_query
from expost.errors import InvalidInput, at
from expost.files.regular import read_text
from expost.files.tables import read_table
from expost.ledger import Ledger
from expost.queries import Query

__all__ = [
    "Open",
    "asked",
    "checkpoint_file",
    "in_parts",
    "ledger",
    "named_or_all",
    "read_subjects",
    "round_key",
    "round_query",
    "some_subjects",
    "subject_called",
    "subjects_done",
]

Open = Callable[[], AbstractContextManager[Ledger]]
"""Opens the ledger of a command, for a ``with``."""

Command = TypeVar("Command", bound=Callable[..., None])

_TABLES = (".csv", ".jsonl", ".parquet")
_TOGETHER = 1 << 14

checkpoint_file = click.option(
    "--checkpoint",
    type=path,
    metavar="FILE",
    help="How far a ledger had come. By default beside its file, or in ~/.local/state/expost.",
)
round_query = click.option(
    "--query",
    required=True,
    metavar="QUERY",
    help="A query that the ledger knows by name, or a file (JSON; one of several: QUERIES#ID).",
)
round_key = click.option(
    "--key",
    default=lambda: uuid.uuid4().hex,
    metavar="KEY",
    show_default="a new one",
    help="Names this round for good: with the same key nobody is asked twice.",
)
some_subjects = click.option(
    "--subject",
    "subjects",
    multiple=True,
    metavar="NAME",
    help="Only these; by default everybody.",
)


def ledger(command: Command) -> Callable[..., None]:
    """The argument LEDGER; the command gets ``open_``, which opens it."""

    @functools.wraps(command)
    def called(place: str, checkpoint: Path | None, **others: Any) -> None:
        command(open_=lambda: Ledger(place, checkpoint=checkpoint), **others)

    return click.argument("place", metavar="LEDGER")(checkpoint_file(called))


def asked(study: Ledger, text: str) -> Query:
    """A query by the name that the ledger has for it, or from a file."""
    known = study.queries
    if text in known:
        return known[text]
    file = Path(text.partition("#")[0])
    if known and not file.exists():
        some = ", ".join(list(known)[:3])
        reason = f"neither a file nor a query that the ledger knows, such as {some}"
        raise InvalidInput(reason, f"--query {text}")
    return read_query(Path(text), study.domain)


def read_subjects(file: Path) -> list[Subject]:
    """The subjects of a table, by its column ``subject``; or a name on each line of a text."""
    with at(str(file), ": "):
        if file.suffix.lower() not in _TABLES:
            names = [line.strip() for line in read_text(file).splitlines()]
            return [name for name in names if name]
        table = read_table(file, ["subject"])
        if "subject" not in list(table.columns if hasattr(table, "columns") else table):
            raise InvalidInput("has no column 'subject'")
        return list(table["subject"])


def subject_called(study: Ledger, text: str) -> Subject:
    """Whoever is called so; what was typed may be the name of one that is a number."""
    names = set(study.subjects)
    if text in names:
        return text
    if text.removeprefix("-").isdecimal() and int(text) in names:
        return int(text)
    raise InvalidInput("nobody in the ledger is called so", f"--subject {text}")


def named_or_all(study: Ledger, texts: Sequence[str]) -> list[Subject]:
    """Those that are named, or everybody."""
    return [subject_called(study, text) for text in texts] or list(study.subjects)


def subjects_done(line: Line) -> Callable[[int, int], None]:
    """What shows on the line how many subjects are done."""
    return lambda done, total: line.count(done, total, "subjects")


def in_parts(subjects: Sequence[Subject], line: Line) -> Iterator[tuple[int, int]]:
    """Where each part of very many subjects starts and ends; the line says how far it is."""
    for start in range(0, len(subjects), _TOGETHER):
        end = min(start + _TOGETHER, len(subjects))
        yield start, end
        line.count(end, len(subjects), "subjects")
