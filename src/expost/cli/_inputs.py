"""Queries, answers and secret values, from the files that commands are given."""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.answers import no_such_query, queries_from_json
from expost.cli._outputs import Line, warn
from expost.cli._parsing import parse_labels
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at, read_at
from expost.files.kinds import QUERY, explain_wrong_kind
from expost.files.reading import has_duplicate_key, members, parse
from expost.files.regular import open_for_reading, others_may_read, read_contents, read_text
from expost.files.tables import column_names, read_table
from expost.queries import Query
from expost.session import HistoryFile

if TYPE_CHECKING:
    from expost.audits._answer_files import LoadedTranscripts

__all__ = [
    "ABOUT_OPTIONS",
    "check_name",
    "is_ledger",
    "open_history",
    "option_names",
    "read_answers",
    "read_attributes",
    "read_changes",
    "read_columns",
    "read_domain",
    "read_query",
    "read_record",
    "read_value",
]

_DATABASE = b"SQLite format 3\0"


def read_query(path: Path, domain: Domain) -> Query:
    """Read the query in a file, or the one with an id in a file of queries."""
    file, key = path, None
    if not path.exists() and "#" in path.name:
        name, _, key = path.name.partition("#")
        file = path.with_name(name)
    with at(str(file), ": "):
        text = read_text(file)
        with explain_wrong_kind(QUERY, text):
            tree = parse(text)
        if not (isinstance(tree, dict) and "queries" in tree):
            if key is not None:
                raise InvalidInput(f"not a file of queries; leave out #{key}")
            query = Query.from_json(text)
            query.on(domain)
            return query
        query_domain, queries = queries_from_json(text)
        if key is None:
            examples = ", ".join(f"{file}#{query_id}" for query_id in list(queries)[:3])
            raise InvalidInput(f"is a file of queries; name one of them, such as {examples}")
        if key not in queries:
            raise no_such_query(key, queries)
        if query_domain != domain:
            raise InvalidInput("its domain differs from the subject's")
        return queries[key]


def is_ledger(location: Path) -> bool:
    """Return whether a file is a database, as a ledger is."""
    if not location.is_file():
        return False
    with at(str(location), ": "), open_for_reading(location, most=sys.maxsize) as file:
        return file.read(len(_DATABASE)) == _DATABASE


def read_answers(data: Path, queries: Path | None, line: Line) -> LoadedTranscripts:
    """Load the answers in a folder of transcripts, or in a table, which names no filter."""
    # Imported here, because commands on one transcript do not need it.
    from expost.audits._answer_files import LoadedTranscripts, load_answers, load_folder

    if data.is_dir():
        return load_folder(data, queries, progress=line.counts("transcripts"))
    if is_ledger(data):
        reason = "is a ledger; write its answers to a table with expost ledger answers"
        raise InvalidInput(reason, os.fspath(data))
    if queries is None:
        with at(str(data), ": "), open_for_reading(data, most=sys.maxsize):
            raise InvalidInput("a table requires --queries QUERIES")
    return LoadedTranscripts(load_answers(data, queries), 0, (None,))


def read_columns(file: Path, names: Sequence[str]) -> Any:
    """Read columns of a table by name; raise an error if one is missing."""
    table = read_table(file, names)
    for name in names:
        if name not in table:
            present = ", ".join(map(repr, column_names(table)))
            raise InvalidInput(f"column {name!r} is missing; there are {present}")
    return table


def read_value(file: Path | None) -> Any:
    """Read the value as JSON: a label, a number, or an object or a list of coordinates."""
    return _read_secret(file, "secret", "The subject's value", '"yes", 34 or {"age": 34}')


def read_record(file: Path | None) -> Any:
    """Read the record at the first step, as JSON."""
    return _read_secret(
        file, "changes", "The record at the first step", '{"age": 34, "smokes": "no"}'
    )


def read_changes(file: Path | None) -> Any:
    """Read the changes since the step before, as JSON."""
    return _read_secret(
        file, "changes", "What changed", '{"smokes": "yes"}, or {} if nothing changed'
    )


def open_history(file: Path, line: Line) -> HistoryFile:
    """Open the records of a subject whose attributes change; others must not write to the file."""
    return HistoryFile(file, waiting=lambda: line.waits_for(file), warn=warn)


def check_name(file: Path, option: str, *, may_create: bool = False) -> None:
    """Refuse a missing file without showing its name, which may be the value itself.

    With ``may_create``, refuse only a name that reads like a value.
    """
    if file.exists() or file.is_symlink():
        return
    if not may_create:
        reason = "no such file (name not shown, in case it is the value itself)"
        raise InvalidInput(reason, f"--{option}")
    if _parse_secret(str(file)) is not None:
        reason = "is a value, not the name of a file (not shown)"
        raise InvalidInput(reason, f"--{option}")


def _read_secret(file: Path | None, option: str, description: str, example: str) -> Any:
    if file is not None:
        check_name(file, option)
    with at(option if file is None else str(file), ": "):
        text = _prompt_secret(description, option) if file is None else _read_secret_file(file)
        value = _parse_secret(text)
        if value is None and has_duplicate_key(text):
            raise InvalidInput("a name appears twice (not shown)")
        if value is None:
            raise InvalidInput(f"not a value in JSON; write {example} (contents not shown)")
        return value


def _parse_secret(text: str) -> Any:
    try:
        value = parse(text)
        return members(value, optional=None) if isinstance(value, dict) else value
    except InvalidInput:
        return None  # its message says where in the text, and so something about the text


def _read_secret_file(file: Path) -> str:
    with open_for_reading(file) as stream:
        if others_may_read(os.fstat(stream.fileno())):
            warn(f"{file} is readable by others; run chmod 600 {file}")
        return read_contents(stream)


def _prompt_secret(description: str, option: str) -> str:
    try:
        with warnings.catch_warnings():
            # Where there is no terminal whose echo can be turned off, it only warns.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"{description}, as JSON (not echoed): ")
    except (EOFError, getpass.GetPassWarning):
        raise InvalidInput(f"stdin is not a terminal; use --{option} FILE") from None


def read_attributes(text: str) -> tuple[str, ...]:
    """Parse the attributes after ``--about``."""
    with at("--about"):
        return tuple(parse_labels(text))


#: The options for the arguments of ``about``.
ABOUT_OPTIONS = {"about": "--about", "at": "--at"}


@contextmanager
def option_names(options: Mapping[str, str]) -> Iterator[None]:
    """Replace the names of arguments in errors by those of the options."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.reason, options.get(error.location, error.location)) from None


def read_domain(path: Path) -> Domain:
    """Read a domain from its own file, a transcript or a file of queries."""
    tree = parse(read_text(path))
    if isinstance(tree, dict) and "version" in tree and "domain" in tree:
        return read_at("domain", domain_from_json, tree["domain"])
    return domain_from_json(tree)
