"""A subject's value, from a file or a prompt without echo: never an argument, never shown."""

from __future__ import annotations

import getpass
import os
import warnings
from pathlib import Path
from typing import Any

from expost.cli.progress import Line
from expost.cli.show import warn
from expost.errors import InvalidInput, at
from expost.files.reading import members, parse, repeats
from expost.files.regular import contents, opened, others_may_read
from expost.session import HistoryFile

__all__ = ["check_name", "open_history", "read_changes", "read_record", "read_value"]


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
        if value is None and repeats(text):
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
    with opened(file) as stream:
        if others_may_read(os.fstat(stream.fileno())):
            warn(f"others may read {file}; chmod 600 leaves it to its owner")
        return contents(stream)


def _prompted(what: str, option: str) -> str:
    try:
        with warnings.catch_warnings():
            # Where there is no terminal whose echo can be turned off, it only warns.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"{what}, as JSON (not echoed): ")
    except (EOFError, getpass.GetPassWarning):
        raise InvalidInput(f"there is no terminal; give a file with --{option}") from None
