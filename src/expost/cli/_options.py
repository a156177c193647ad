"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from expost.solver import GAP, Effort

__all__ = [
    "about",
    "composition_delta",
    "file_option",
    "next_query",
    "out_option",
    "page_date",
    "path",
    "queries_file",
    "search_options",
    "step",
    "transcript_file",
]

Command = TypeVar("Command", bound=Callable[..., None])

path = click.Path(path_type=Path)


def file_option(
    name: str, metavar: str, text: str, **attributes: Any
) -> Callable[[Command], Command]:
    """Declare an option that names a file or a folder; ``text`` is what ``--help`` says."""
    return click.option(name, type=path, metavar=metavar, help=text, **attributes)


def out_option(metavar: str, text: str, **attributes: Any) -> Callable[[Command], Command]:
    """Declare ``--out`` and ``-o``: the file or the folder that a command writes."""
    return click.option("--out", "-o", type=path, metavar=metavar, help=text, **attributes)


transcript_file = click.argument("file", type=path, metavar="FILE")
next_query = file_option(
    "--query",
    "QUERY",
    "The next query (JSON); of a file of queries, one by its id: QUERIES#ID.",
    required=True,
)
queries_file = file_option(
    "--queries",
    "QUERIES",
    "All queries about their value (JSON); a folder of transcripts or a ledger needs none.",
)
composition_delta = click.option(
    "--delta", metavar="D", help="For composition; that of the file's filter by default."
)

about = click.option(
    "--about",
    metavar="NAMES",
    help="Of a record: the attribute, smokes, or some of them together, smokes,region.",
)
step = click.option(
    "--at", "step", type=int, metavar="STEP", help="The step, if one of them changes."
)

page_date = click.option(
    "--date", metavar="DATE", help="Of the page, any text; by default, when FILE was last written."
)

_gap = click.option(
    "--gap", type=float, default=GAP, help="On a box: how wide the loss may be, in nats."
)
_nodes = click.option("--nodes", type=int, help="On a box: the limit of nodes of every search.")
_threads = click.option(
    "--threads", type=int, default=1, help="On a box: 1, or 2 for one per side."
)


def search_options(*, threads: bool = True) -> Callable[[Command], Callable[..., None]]:
    """Add options for the effort of searches on a box; the command gets ``effort``."""

    def decorate(command: Command) -> Callable[..., None]:
        @functools.wraps(command)
        def called(gap: float, nodes: int | None, threads: int = 1, **options: Any) -> None:
            command(effort=Effort(gap, nodes, threads), **options)

        return _gap(_nodes(_threads(called) if threads else called))

    return decorate
