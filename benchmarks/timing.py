"""How times are taken: processor time, the best of several runs, because noise only ever adds."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["best", "once"]


def once(action: Callable[[], object]) -> float:
    """Seconds for one run."""
    start = time.process_time()
    action()
    return time.process_time() - start


def best(action: Callable[[], object], runs: int = 15) -> float:
    """Seconds for the fastest of several runs."""
    return min(once(action) for _ in range(runs))
