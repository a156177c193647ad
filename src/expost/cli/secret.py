"""A subject's value, from a file or a prompt without echo: never an argument, never shown."""

from __future__ import annotations

import getpass
import os
import warnings
from pathlib import Path
from typing import Any

import click

from expost.errors import InvalidInput, at, printable
from expost.files.permissions import others_may_read
from expost.files.reading import members, parse
from expost.files.regular import contents, opened

__all__ = ["read_value"]


def read_value(file: Path | None) -> Any:
    """The value as JSON: a label, a number, or an object or a list of coordinates."""
    with at("secret" if file is None else str(file), ": "):
        value = _parsed(_prompted() if file is None else _kept(file))
        if value is None:
            example = '"yes", 34 or {"age": 34}'
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
            warning = f"expost: warning: others may read {file}; chmod 600 leaves it to its owner"
            click.echo(printable(warning), err=True)
        return contents(stream)


def _prompted() -> str:
    try:
        with warnings.catch_warnings():
            # Where there is no terminal whose echo can be turned off, it only warns.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass("The subject's value, as JSON (not echoed): ")
    except (EOFError, getpass.GetPassWarning):
        raise InvalidInput("there is no terminal; give a file with --secret") from None
