"""Devices in processes of their own, which are killed at any call of the system."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

__all__ = ["killed"]

STEPS = ("open", "pwrite", "ftruncate", "fsync", "urandom", "close")


def killed(call: Callable[[], None], at: int, torn: bool) -> tuple[bool, bytes]:
    """Run in a process that is killed at a step: whether it was, and what it had released."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(writing, 1)
        _kill_at(at, torn)
        try:
            call()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        released = file.read()
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), released


def _kill_at(at: int, torn: bool) -> None:
    """Replace what the device calls of the system by what kills it, before or after a step."""
    count = 0

    def patched(name: str) -> Callable[..., Any]:
        true = getattr(os, name)

        def called(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                if torn and name == "pwrite":
                    true(given[0], given[1][: len(given[1]) // 2], given[2])
                elif torn:
                    true(*given, **named)
                os.kill(os.getpid(), signal.SIGKILL)
            return true(*given, **named)

        return called

    for name in STEPS:
        setattr(os, name, patched(name))
