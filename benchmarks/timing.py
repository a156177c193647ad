"""Processor time of actions: the best of several runs, because noise only ever adds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["best", "once", "timed"]

Result = TypeVar("Result")


def timed(action: Callable[[], Result]) -> tuple[Result, float]:
    """Run an action; return its result and its seconds."""
    start = time.process_time()
    result = action()
    return result, time.process_time() - start


def once(action: Callable[[], object]) -> float:
    """Measure the seconds of one run."""
    return timed(action)[1]


def best(action: Callable[[], object], runs: int = 15) -> float:
    """Measure the seconds of the fastest of several runs."""
    return min(once(action) for _ in range(runs))
