"""Queries, answers and secret values, from the files that commands are given."""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from expost.answers import Answers, no_such_query, queries_from_json
from expost.cli import _parsing
from expost.cli._outputs import Line, warn
from expost.domains import Domain, domain_from_json, join_names
from expost.errors import InvalidInput, at, did_you_mean
from expost.files.kinds import QUERY, explain_wrong_kind
from expost.files.reading import has_duplicate_key, members, parse
from expost.files.regular import open_for_reading, others_may_read, read_contents, read_text
from expost.queries import About, Query
from expost.session import HistoryFile

if TYPE_CHECKING:
    from expost.audits._bad_files import BadFiles
    from expost.audits._folder import Gathered

__all__ = [
    "about_options",
    "check_name",
    "find_attributes",
    "list_files",
    "open_history",
    "read_attributes",
    "read_changes",
    "read_domain",
    "read_many",
    "read_query",
    "read_record",
    "read_value",
]


def read_query(path: Path, domain: Domain) -> Query:
    """The query that a file holds, or that one of a file of queries has as its id."""
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
                raise InvalidInput(f"is no file of queries, so there is no {key!r} in it")
            query = Query.from_json(text)
            query.on(domain)
            return query
        own, queries = queries_from_json(text)
        if key is None:
            known = ", ".join(f"{file}#{each}" for each in list(queries)[:3])
            raise InvalidInput(f"is a file of queries; name one of them, such as {known}")
        if key not in queries:
            raise no_such_query(key, queries)
        if own != domain:
            raise InvalidInput("is not that of the subject", "domain")
        return queries[key]


def list_files(error: BadFiles) -> None:
    """Print a line for each entry of a folder that cannot be used, if there are several."""
    if len(error.files) > 1:
        for each in error.files:
            click.echo(f"expost: {each}", err=True)


def read_many(data: Path, queries: Path | None, line: Line) -> Gathered:
    """What a folder of transcripts holds, or a table, which names no filter."""
    # One subject needs none of it.
    from expost.audits._bad_files import BadFiles
    from expost.audits._folder import Gathered, load_folder
    from expost.audits._tables import load_answers

    if data.is_dir():
        try:
            return load_folder(
                data, queries, progress=lambda done, total: line.count(done, total, "transcripts")
            )
        except BadFiles as error:
            line.clear()
            list_files(error)
            raise
    if queries is None:
        with at(str(data), ": "), open_for_reading(data, most=sys.maxsize):
            raise InvalidInput("a table needs --queries QUERIES too")
    return Gathered(load_answers(data, queries), 0, (None,))


def read_value(file: Path | None) -> Any:
    """The value as JSON: a label, a number, or an object or a list of coordinates."""
    return _read(file, "secret", "The subject's value", '"yes", 34 or {"age": 34}')


def read_record(file: Path | None) -> Any:
    """The record at the first step, as JSON."""
    return _read(file, "changes", "The record at the first step", '{"age": 34, "smokes": "no"}')


def read_changes(file: Path | None) -> Any:
    """What changed since the step before, as JSON."""
    return _read(file, "changes", "What changed", '{"smokes": "yes"}, or {} if nothing changed')


def open_history(file: Path, line: Line) -> HistoryFile:
    """The records of a subject whose attributes change; others must not write to the file."""
    return HistoryFile(file, waiting=lambda: line.waits_for(file), warn=warn)


def check_name(file: Path, option: str, *, made: bool = False) -> None:
    """Refuse what is no file without showing it: perhaps it is the value itself.

    Where a file may be ``made``, it is refused only if it reads like a value.
    """
    if file.exists() or file.is_symlink():
        return
    if not made:
        reason = "there is no such file (what was given is not shown); it takes the name of a file"
        raise InvalidInput(reason, f"--{option}")
    if _parsed(str(file)) is not None:
        reason = "is a value (and is not shown); it takes the name of a file"
        raise InvalidInput(reason, f"--{option}")


def _read(file: Path | None, option: str, what: str, example: str) -> Any:
    if file is not None:
        check_name(file, option)
    with at(option if file is None else str(file), ": "):
        text = _prompted(what, option) if file is None else _kept(file)
        value = _parsed(text)
        if value is None and has_duplicate_key(text):
            raise InvalidInput("gives a name twice (which one is not shown here)")
        if value is None:
            raise InvalidInput(f"must be JSON, such as {example} (what it is is not shown here)")
        return value


def _parsed(text: str) -> Any:
    try:
        value = parse(text)
        return members(value, optional=None) if isinstance(value, dict) else value
    except InvalidInput:
        return None  # its message says where in the text, and so something about the text


def _kept(file: Path) -> str:
    with open_for_reading(file) as stream:
        if others_may_read(os.fstat(stream.fileno())):
            warn(f"others may read {file}; chmod 600 leaves it to its owner")
        return read_contents(stream)


def _prompted(what: str, option: str) -> str:
    try:
        with warnings.catch_warnings():
            # Where there is no terminal whose echo can be turned off, it only warns.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"{what}, as JSON (not echoed): ")
    except (EOFError, getpass.GetPassWarning):
        raise InvalidInput(f"there is no terminal; give a file with --{option}") from None


_ABOUT_OPTIONS = {"about": "--about", "at": "--at"}


def read_attributes(text: str) -> tuple[str, ...]:
    """What was typed after ``--about``."""
    with at("--about"):
        return tuple(_parsing.labels(text))


def find_attributes(
    answers: Answers, text: str | None, step: int | None, *, key: str | None
) -> tuple[tuple[str, ...], int | None] | None:
    """The attributes that an estimate is about, and the step; None on a set, or a whole box.

    By default it is the only attribute that was asked about, or what the query ``key`` is about,
    and the only step.
    """
    if text is None and step is None and not answers.domain.kinds:
        return None
    answered = dict.fromkeys(name for name, _ in answers.given)
    asked = {name: query for name in answered if isinstance(query := answers.queries[name], About)}
    if not asked:
        place = "--at" if text is None else "--about"
        raise InvalidInput("no query is about some attributes; leave it out", place)
    names = _names(asked, text, key)
    return names, _step(asked, names, key) if step is None else step


@contextmanager
def about_options() -> Iterator[None]:
    """Errors about attributes and steps name what was typed."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.reason, _ABOUT_OPTIONS.get(error.place, error.place)) from None


def _names(asked: Mapping[str, About], text: str | None, key: str | None) -> tuple[str, ...]:
    known = tuple(dict.fromkeys(name for query in asked.values() for name in query.names))
    if text is not None:
        names = read_attributes(text)
        for name in names:
            if name not in known:
                reason = (
                    f"nobody was asked about {name!r}; they were asked about {join_names(known)}"
                )
                raise InvalidInput(reason + did_you_mean(name, known), "--about")
        return names
    if key is not None and key in asked:
        return asked[key].names
    if len(known) > 1:
        raise InvalidInput(
            f"say about which attribute, of {join_names(known)}; or about some of them together, "
            f"such as {','.join(known[:2])}",
            "--about",
        )
    return known


def _step(asked: Mapping[str, About], names: tuple[str, ...], key: str | None) -> int | None:
    if key is not None and key in asked:
        return asked[key].step
    steps = {query.step for query in asked.values() if set(names) & set(query.names)} - {None}
    if len(steps) > 1:
        told = join_names([str(each) for each in sorted(filter(None, steps))])
        raise InvalidInput(
            f"say at which step; {join_names(names)} was asked about at {told}", "--at"
        )
    return next(iter(steps), None)


def read_domain(path: Path) -> Domain:
    """The domain in a file: of a transcript, of a file of queries, or nothing else than one."""
    tree = parse(read_text(path))
    if isinstance(tree, dict) and "version" in tree and "domain" in tree:
        with at("domain"):
            return domain_from_json(tree["domain"])
    return domain_from_json(tree)
