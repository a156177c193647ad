"""Group commit: whoever gets the turn serves all who wait, in one commit.

There is no thread of its own. A thread that finds its request served when its turn comes returns
at once; while one waits for the disk, others line up behind it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from expost.ledger.requests import Request

__all__ = ["Turns"]

# The most rows of one commit.
_MOST = 1 << 14


class Turns:
    """One line of requests, served in groups."""

    def __init__(self, serve: Callable[[Sequence[Request]], None]) -> None:
        self._serve = serve
        self._waiting: deque[Request] = deque()
        self._guard = threading.Lock()
        self.lock = threading.RLock()
        """Held by whoever reads or writes."""

    def take(self, requests: Sequence[Request]) -> None:
        """Return when requests have been served; raise what went wrong with the first of them."""
        with self._guard:
            self._waiting.extend(requests)
        with self.lock:
            while not all(request.served for request in requests):
                self._serve_some()
        for request in requests:
            if request.error is not None:
                raise request.error

    def _serve_some(self) -> None:
        group = self._next()
        try:
            self._serve(group)
        except BaseException as error:
            for request in group:
                request.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for request in group:
                request.served = True

    def _next(self) -> list[Request]:
        """Those who can be served together: no subject twice, and not too many."""
        group: list[Request] = []
        left: deque[Request] = deque()
        subjects: set[int] = set()
        rows = 0
        with self._guard:
            while self._waiting:
                request = self._waiting.popleft()
                own = request.subjects.tolist()
                fits = not group or rows + len(own) <= _MOST
                if fits and subjects.isdisjoint(own):
                    group.append(request)
                    rows += len(own)
                else:
                    left.append(request)
                subjects.update(own)  # requests of one subject stay in order
            self._waiting = left
        return group
