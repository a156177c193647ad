"""The command line in processes of its own, which can be killed at any of their steps."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import expost as xp
from expost.cli.main import main

__all__ = ["STEPS", "asking", "many_times", "moving_on", "stopping_at", "together"]

STEPS: list[tuple[Any, str]] = [
    (os, "open"),
    (fcntl, "flock"),
    (os, "ftruncate"),
    (os, "pwrite"),
    (os, "fsync"),
    (os, "replace"),
    (os, "fchmod"),
    (os, "close"),
    (click, "echo"),
]

# Forked from a process that has imported what takes long; a name that is not there is skipped.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["pytest", "click", "expost.cli.ask", "expost.cli.next"])


def together(*calls: tuple[Callable[..., None], tuple[Any, ...]]) -> list[int | None]:
    """Run functions of this module at the same time, each in a process; how they ended."""
    processes = [_context.Process(target=target, args=args) for target, args in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def many_times(times: int, out: Path, arguments: list[str]) -> None:
    """Run a command again and again; what it prints is appended to a file."""
    _write_to(out)
    sys.argv = ["expost", *arguments]
    for _ in range(times):
        with suppress(SystemExit):
            main()


def asking(times: int, out: Path, transcript: Path, name: str) -> None:
    """Ask a file about two values again and again; what is released is appended to another file."""
    session = xp.FileSession(transcript, "a")
    query = xp.channel([["1/2", "1/2"]] * 2, responses=[f"{name}-x", f"{name}-y"])
    with out.open("a", encoding="utf-8") as released:
        for _ in range(times):
            released.write(f"{session.ask(query)}\n")
            released.flush()


def moving_on(times: int, transcript: Path, history: Path) -> None:
    """Go on from step to step."""
    session = xp.FileSession(transcript, xp.session.HistoryFile(history))
    for _ in range(times):
        session.next()


def stopping_at(step: int, done: bool, out: Path, log: Path, arguments: list[str]) -> None:
    """Run a command, but be killed at a step: before it, or when it is done."""
    _write_to(out)
    taken = 0

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            nonlocal taken
            taken += 1
            number = taken
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
            if number == step and not done:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*positional, **named)
            if number == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for module, name in STEPS:
        setattr(module, name, watched(name, getattr(module, name)))
    sys.argv = ["expost", *arguments]
    main()


def _write_to(out: Path) -> None:
    sys.stdout = out.open("a", encoding="utf-8")
    sys.stderr = out.with_suffix(".err").open("a", encoding="utf-8")
