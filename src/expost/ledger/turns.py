"""Group commit: whoever gets the turn serves all who wait, in one commit.

There is no thread of its own. While one waits for the disk, others line up behind it; those who
were served go on without having a turn. They soon come again, and a commit takes as long for one
as for many: so whoever is next waits a little for as many as there were before.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from expost.ledger.requests import Request
from expost.session.secret import without_frames

__all__ = ["Turns"]

# The most rows of one commit.
_MOST = 1 << 14

# What of the time of a commit it may take to wait for others.
_PATIENCE = 0.2


class Turns:
    """One line of requests, served in groups."""

    def __init__(self, serve: Callable[[Sequence[Request]], None]) -> None:
        self._serve = serve
        self._guard = threading.Lock()
        self._came = threading.Condition(self._guard)
        self._ended = threading.Condition(self._guard)
        self._waiting: deque[Request] = deque()
        self._taken = False
        self._crowd = 0
        """How many were in the last group, or came meanwhile."""
        self._lasted = 0.0
        """How long it took, in seconds."""
        self.lock = threading.RLock()
        """Held by whoever reads or writes."""

    def take(self, requests: Sequence[Request]) -> None:
        """Return when requests have been served; raise what went wrong with the first of them."""
        if self._line_up(requests):
            try:
                self._gather()
                with self.lock:
                    while not _served(requests):
                        self._serve_some()
            finally:
                with self._guard:
                    self._taken = False
                    self._ended.notify_all()
        for request in requests:
            if request.error is not None:
                raise request.error

    def _line_up(self, requests: Sequence[Request]) -> bool:
        """Wait for the turn; False if whoever had it before has served these as well."""
        with self._guard:
            self._waiting.extend(requests)
            self._came.notify()
            while self._taken and not _served(requests):
                self._ended.wait()
            if _served(requests):
                return False
            self._taken = True
            return True

    def _gather(self) -> None:
        """Wait a little for those who were here before."""
        end = time.monotonic() + _PATIENCE * self._lasted
        with self._guard:
            while len(self._waiting) < self._crowd and (left := end - time.monotonic()) > 0:
                self._came.wait(left)

    def _serve_some(self) -> None:
        group, start = self._next(), time.monotonic()
        try:
            self._serve(group)
        except BaseException as error:
            without_frames(error)  # which hold responses that were drawn and are not released
            for request in group:
                request.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            with self._guard:
                for request in group:
                    request.served = True
                self._lasted = time.monotonic() - start
                self._crowd = len(group) + len(self._waiting)
                self._ended.notify_all()

    def _next(self) -> list[Request]:
        """Those who can be served together: no subject twice, and not too many."""
        group: list[Request] = []
        left: deque[Request] = deque()
        subjects: set[int] = set()
        rows = 0
        with self._guard:
            while self._waiting:
                request = self._waiting.popleft()
                own = request.numbers
                fits = not group or rows + len(own) <= _MOST
                if fits and subjects.isdisjoint(own):
                    group.append(request)
                    rows += len(own)
                else:
                    left.append(request)
                subjects.update(own)  # requests of one subject stay in order
            self._waiting = left
        return group


def _served(requests: Sequence[Request]) -> bool:
    return all(request.served for request in requests)
