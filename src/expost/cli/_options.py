"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "about",
    "composition_delta",
    "file_option",
    "flag_option",
    "next_query",
    "out_option",
    "page_date",
    "path",
    "queries_file",
    "search_options",
    "step",
    "transcript_file",
    "value_option",
]

Command = TypeVar("Command", bound=Callable[..., None])

path = click.Path(path_type=Path)


def value_option(
    name: str, metavar: str, text: str, *, parameter: str = "", **attributes: Any
) -> Callable[[Command], Command]:
    """Return an option with a value, for the parameter of its name or for another one."""
    names = [name, parameter] if parameter else [name]
    return click.option(*names, metavar=metavar, help=text, **attributes)


def flag_option(name: str, text: str, *, parameter: str = "") -> Callable[[Command], Command]:
    """Return an option that is given or not."""
    names = [name, parameter] if parameter else [name]
    return click.option(*names, is_flag=True, help=text)


def file_option(
    name: str, metavar: str, text: str, **attributes: Any
) -> Callable[[Command], Command]:
    """Declare an option that names a file or a folder; ``text`` is its help."""
    return value_option(name, metavar, text, type=path, **attributes)


def out_option(metavar: str, text: str, **attributes: Any) -> Callable[[Command], Command]:
    """Declare ``--out`` and ``-o``: the file or the folder that a command writes."""
    return click.option("--out", "-o", type=path, metavar=metavar, help=text, **attributes)


transcript_file = click.argument("file", type=path, metavar="FILE")
next_query = file_option(
    "--query",
    "QUERY",
    "Next query (JSON), or one query of a file of queries: QUERIES#ID.",
    required=True,
)
queries_file = file_option(
    "--queries",
    "QUERIES",
    "File of queries (JSON). Not needed for a folder of transcripts or a ledger.",
)
composition_delta = value_option(
    "--delta", "D", "Delta of composition rules. Default: that of FILE's filter."
)

about = value_option(
    "--about",
    "NAMES",
    "Attributes of a record: one, as in smokes, or several together, as in smokes,region.",
)
step = value_option(
    "--at",
    "STEP",
    "Time step, from 1, if one of these attributes changes.",
    parameter="step",
    type=int,
)

page_date = value_option(
    "--date", "DATE", "Date shown on the page (any text). Default: modification time of the input."
)

_nodes = click.option(
    "--nodes", type=int, help="Maximum nodes of each search (box domains). Default: 100,000."
)
_threads = click.option(
    "--threads", type=int, default=1, help="Threads of each search (box domains): 1 or 2."
)


def search_options(*, threads: bool = True) -> Callable[[Command], Callable[..., None]]:
    """Add options for the effort of searches on a box; the command gets ``effort``."""
    from expost.solver import GAP, Effort  # loads NumPy, which doctor reports if it is missing

    width = "Largest width of the loss interval on a box, in nats."
    gap_option = click.option("--gap", type=float, default=GAP, help=width)

    def decorate(command: Command) -> Callable[..., None]:
        @functools.wraps(command)
        def called(gap: float, nodes: int | None, threads: int = 1, **options: Any) -> None:
            command(effort=Effort(gap, nodes, threads), **options)

        return gap_option(_nodes(_threads(called) if threads else called))

    return decorate
