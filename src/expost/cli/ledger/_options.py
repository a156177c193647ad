"""Arguments and options that the ledger commands share."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from expost.answers import Subject
from expost.cli._inputs import read_columns, read_query
from expost.cli._options import file_option, value_option
from expost.errors import InvalidInput, at, did_you_mean, unknown_name
from expost.files.regular import LARGEST_TABLE, open_for_reading, read_text
from expost.ledger import Ledger
from expost.queries import Query

__all__ = [
    "Open",
    "SubjectOptions",
    "checkpoint_file",
    "find_query",
    "find_subject",
    "ledger",
    "ledger_location",
    "read_lines",
    "round_key",
    "round_query",
    "some_subjects",
]

#: Opens the ledger of a command, for a ``with``.
Open = Callable[[], AbstractContextManager[Ledger]]

Command = TypeVar("Command", bound=Callable[..., None])

_TABLES = (".csv", ".jsonl", ".parquet")
# Comparing a name with more names than these takes longer than it helps.
_COMPARED = 10_000

checkpoint_file = file_option(
    "--checkpoint",
    "FILE",
    "Checkpoint file (rollback protection). Default: LEDGER.checkpoint, or a file in "
    "~/.local/state/expost for a server.",
)
round_query = value_option(
    "--query",
    "QUERY",
    "Name of a query in the ledger, or a file (JSON; one of several: QUERIES#ID).",
    required=True,
)
round_key = value_option(
    "--key",
    "KEY",
    "Idempotency key of the round: with the same key, no subject is asked twice. "
    "Default: a new key.",
    default=lambda: uuid.uuid4().hex,
    show_default=False,
)


class SubjectOptions(NamedTuple):
    """The subjects that a command is given, by name or in a file."""

    names: tuple[str, ...]
    file: Path | None

    def listed(self) -> Iterator[tuple[str, Subject]]:
        """Yield every subject, with where it was given in front."""
        for name in self.names:
            yield f"--subject {name}", name
        if self.file is not None:
            for row, subject in enumerate(_read_subjects(self.file), 1):
                yield f"{self.file}: row {row}", subject

    def find(self, study: Ledger) -> list[Subject] | None:
        """Return these subjects of a ledger, each once; None if none were given."""
        if not self.names and self.file is None:
            return None
        registered = dict.fromkeys(study.subjects)
        return list(
            dict.fromkeys(_find(registered, given_as, name) for given_as, name in self.listed())
        )


def some_subjects(command: Command) -> Callable[..., None]:
    """Add --subject and --subjects; the command gets ``options``."""

    @functools.wraps(command)
    def called(subject: tuple[str, ...], subjects: Path | None, **options: Any) -> None:
        command(options=SubjectOptions(subject, subjects), **options)

    name = value_option("--subject", "NAME", "Name of a subject; repeatable.", multiple=True)
    file = file_option(
        "--subjects",
        "FILE",
        "Names of subjects: a table with a column 'subject' (CSV, JSONL, Parquet), or a text file "
        "with one name per line.",
    )
    return name(file(called))


def ledger(command: Command) -> Callable[..., None]:
    """Add the argument LEDGER and --checkpoint; the command gets ``open_``, which opens it."""

    @functools.wraps(command)
    def called(location: str, checkpoint: Path | None, **options: Any) -> None:
        command(open_=lambda: Ledger(location, checkpoint=checkpoint), **options)

    return ledger_location(checkpoint_file(called))


def ledger_location(command: Command) -> Command:
    """Add the argument LEDGER and a sentence about it."""
    command.__doc__ = f"{command.__doc__}\n    LEDGER is a file, or the URL of a database."
    return click.argument("location", metavar="LEDGER")(command)


def find_query(study: Ledger, text: str) -> Query:
    """Return a query of the ledger by its name, or read one from a file."""
    queries = study.queries
    if text in queries:
        return queries[text]
    file = Path(text.partition("#")[0])
    if queries and not file.exists():
        reason = unknown_name("query", text, queries)
        raise InvalidInput(f"no such file, and {reason}", "--query")
    return read_query(Path(text), study.domain)


def find_subject(study: Ledger, text: str) -> Subject:
    """Return the subject that is named on the command line."""
    return _find(dict.fromkeys(study.subjects), f"subject {text}", text)


def _find(registered: dict[Subject, None], given_as: str, name: Subject) -> Subject:
    """Return a subject by its name; digits may be the name of a subject that is a number."""
    if isinstance(name, str | int) and name in registered:
        return name
    if isinstance(name, str) and name.removeprefix("-").isdecimal() and int(name) in registered:
        return int(name)
    suggestion = ""
    if isinstance(name, str) and len(registered) <= _COMPARED:
        suggestion = did_you_mean(name, [other for other in registered if isinstance(other, str)])
    raise InvalidInput(f"no subject {name!r} in this ledger{suggestion}", given_as)


def _read_subjects(file: Path) -> list[Subject]:
    """Return the column ``subject`` of a table, or the lines of a text file."""
    with at(str(file), ": "):
        if file.suffix.lower() not in _TABLES:
            names = [line.strip() for line in read_text(file).splitlines()]
            return [name for name in names if name]
        return list(read_columns(file, ["subject"])["subject"])


def read_lines(file: Path) -> list[bytes]:
    """Return the lines of a file that are not empty."""
    with at(str(file), ": "), open_for_reading(file, LARGEST_TABLE) as stream:
        lines = [line.strip() for line in stream.read().split(b"\n")]
    return [line for line in lines if line]
