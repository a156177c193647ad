"""Results, progress, pages and figures: what commands print and which files they may replace."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from expost._format import align_columns, format_fixed, format_number
from expost.cli._options import flag_option
from expost.errors import InvalidInput, at, make_printable
from expost.files.canonical import json_text, plain_tree
from expost.files.regular import check_not_input

if TYPE_CHECKING:
    from expost.loss import Odometer
    from expost.numbers import Enclosure
    from expost.solver import Effort, Progress

__all__ = [
    "Line",
    "Result",
    "as_json",
    "check_output",
    "check_picture",
    "count_lines",
    "modification_date",
    "prints_result",
    "progress_line",
    "show_json",
    "show_lines",
    "show_result",
    "todays_date",
    "warn",
    "with_progress",
]


def warn(message: str) -> None:
    """Print a warning on standard error, and continue."""
    click.echo(make_printable(f"expost: warning: {message}"), err=True)


as_json = flag_option("--json", "Print JSON.", parameter="as_json")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command."""

    #: For programs; a function makes a tree that is large only if it is printed.
    tree: dict[str, Any] | Callable[[], dict[str, Any]]
    #: For people: texts, and rows of tables.
    lines: Iterable[str | tuple[str, ...]]
    exit_code: int = 0


def prints_result(command: Callable[..., Result]) -> Callable[..., None]:
    """Add ``--json`` to a command; print the result that it returns, and exit with its code."""

    @functools.wraps(command)
    def called(as_json: bool, **options: Any) -> None:
        show_result(command(**options), as_json=as_json)

    return as_json(called)


def show_result(result: Result, *, as_json: bool) -> None:
    """Print a result for programs, or for people, and exit with its code if that is not zero."""
    if as_json:
        show_json(result.tree() if callable(result.tree) else result.tree)
    else:
        show_lines(result.lines)
    if result.exit_code:
        raise click.exceptions.Exit(int(result.exit_code))


def show_json(tree: dict[str, Any]) -> None:
    """Print the tree of a result."""
    click.echo(json_text(plain_tree(tree), indent=2))


def show_lines(lines: Iterable[str | tuple[str, ...]]) -> None:
    """Print texts, and rows in aligned columns, without control characters."""
    for is_table, group in groupby(lines, key=lambda line: isinstance(line, tuple)):
        for line in align_columns(list(group)) if is_table else map(str, group):
            click.echo(make_printable(line))


def count_lines(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return a line for each count; its label is the name in JSON, with spaces."""
    return [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()]


_PATIENCE = 1.0
_BAR = 30


@contextmanager
def with_progress(effort: Effort) -> Iterator[tuple[Effort, Line]]:
    """Show a progress line; yield the effort of a command that reports to it, and the line."""
    with progress_line() as line:
        yield replace(effort.with_work_limit(), progress=line), line


@contextmanager
def progress_line() -> Iterator[Line]:
    """Show a line about searches; on a terminal it is erased at the end."""
    line = Line(live=sys.stderr.isatty())
    try:
        yield line
    finally:
        line.clear()


class Line:
    """Redrawn five times a second on a terminal; otherwise a line now and then."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._next = time.monotonic() + _PATIENCE
        self._pause = 0.2 if live else _PATIENCE
        self._width = 0
        self._stage = ""

    def stage(self, text: str) -> None:
        """Show which of several searches is next."""
        self._stage = f"{text}  "
        self._show(text)

    def exchanges(self, exchange: int, total: int) -> None:
        """Show which exchange is decided again, and how many there are."""
        self.stage(f"exchange {exchange:,} of {total:,}")

    def losses_along(self, odometer: Odometer) -> list[Enclosure]:
        """Return the loss at the start and after each response, with its number on the line."""
        losses, total = [], len(odometer)
        for count in range(total + 1):
            self.stage(f"response {count:,} of {total:,}")
            losses.append(odometer.loss_after(count))
        return losses

    def waits_for(self, file: Path) -> None:
        """Show which file another process has locked."""
        self._show(f"waiting for another process to let go of {file}")

    def __call__(self, progress: Progress) -> None:
        loss = progress.loss
        self._show(
            f"{self._stage}{progress.nodes:,} nodes  lower {format_fixed(loss.lower, 4)}  "
            f"upper {format_fixed(loss.upper, 4)}  gap {format_number(loss.width, 2)}"
        )

    def count(self, done: int, total: int, unit: str, seconds: float | None = None) -> None:
        """Show a bar of the share that is done, and about how many seconds remain."""
        full = _BAR * done // total
        text = f"[{'#' * full}{'.' * (_BAR - full)}] {done:,} of {total:,} {unit}"
        self._show(text if seconds is None else f"{text}, about {_duration(seconds)} left")

    def counts(self, unit: str) -> Callable[[int, int], None]:
        """Return a function that shows how many of all are done, in this unit."""
        return lambda done, total: self.count(done, total, unit)

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if self._live:
            self._width = max(self._width, len(text))
            print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
            self._pause *= 2
        self._next = now + self._pause

    def clear(self) -> None:
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    return (
        f"{format_fixed(seconds, 0)} s" if seconds < 100 else f"{format_fixed(seconds / 60, 0)} min"
    )


def check_output(out: Path | None, kind: str, *read: Path | None) -> None:
    """Refuse an output file that the command also reads, or that has content of another kind.

    Call it before the work. A new file, an empty one, and one of the same kind may be written.

    Args:
        out: The output file; None if the command writes none.
        kind: The kind of content that the command writes.
        read: The files that the command reads.

    Raises:
        InvalidInput: The command must not write this file.
    """
    from expost.files.kinds import check_replaceable  # expost doctor runs without numpy

    if out is None:
        return
    check_not_input(out, *(path for path in read if path is not None))
    with at(str(out), ": "):
        check_replaceable(out, kind)


_FORMATS = (".png", ".svg", ".pdf")


def check_picture(picture: Path | None, *read: Path | None) -> None:
    """Refuse a name of no known format, in no folder, or of a file that must not be replaced."""
    from expost.files.kinds import PICTURE

    if picture is None:
        return
    check_output(picture, PICTURE, *read)
    if picture.suffix.lower() not in _FORMATS:
        raise InvalidInput("the name of a picture must end in .png, .svg or .pdf", str(picture))
    if not picture.parent.is_dir():
        reason = f"the picture cannot be saved: there is no folder {picture.parent}"
        raise InvalidInput(reason, str(picture))


def modification_date(file: Path) -> str:
    """Return when a file was last written, so that the same file always gives the same page."""
    time = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC)
    return f"{time:%Y-%m-%d}, when the file was last written"


def todays_date() -> str:
    return f"{datetime.now(tz=UTC):%Y-%m-%d}"
