"""A line on standard error while a search takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from expost.extrema import Effort, Progress

__all__ = ["watched"]

_PATIENCE = 1.0


@contextmanager
def watched(effort: Effort) -> Iterator[Effort]:
    """The effort with a progress line, which is gone in the end if it was on a terminal."""
    line = _Line(live=sys.stderr.isatty())
    yield replace(effort, progress=line)
    line.clear()


class _Line:
    """Renewed five times a second on a terminal; elsewhere a line now and then."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._next = time.monotonic() + _PATIENCE
        self._pause = 0.2 if live else _PATIENCE
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        loss = progress.loss
        text = (
            f"{progress.nodes:,} nodes  lower {loss.lower:.4f}  upper {loss.upper:.4f}  "
            f"gap {loss.width:.2g}"
        )
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
