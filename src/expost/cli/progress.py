"""A line on standard error while something takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from expost.solver import Effort, Progress

__all__ = ["Line", "progress_line", "watched"]

_PATIENCE = 1.0
_BAR = 30


@contextmanager
def watched(effort: Effort) -> Iterator[tuple[Effort, Line]]:
    """The effort of a command with a progress line, and that line."""
    with progress_line() as line:
        yield replace(effort.with_work_limit(), progress=line), line


@contextmanager
def progress_line() -> Iterator[Line]:
    """A line about searches; on a terminal it is erased at the end."""
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
        """Which of several searches is next."""
        self._stage = f"{text}  "
        self._show(text)

    def exchanges(self, number: int, total: int) -> None:
        """Which exchange is decided again, of how many."""
        self.stage(f"exchange {number:,} of {total:,}")

    def waits_for(self, file: Path) -> None:
        """Which file another process has."""
        self._show(f"waiting for another process to let go of {file}")

    def __call__(self, progress: Progress) -> None:
        loss = progress.loss
        self._show(
            f"{self._stage}{progress.nodes:,} nodes  lower {loss.lower:.4f}  "
            f"upper {loss.upper:.4f}  gap {loss.width:.2g}"
        )

    def count(self, done: int, total: int, what: str, left: float | None = None) -> None:
        """How many are done, as a bar, and about how many seconds are left."""
        full = _BAR * done // total
        text = f"[{'#' * full}{'.' * (_BAR - full)}] {done:,} of {total:,} {what}"
        self._show(text if left is None else f"{text}, about {_duration(left)} left")

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
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
