"""Group commit: whoever has the turn serves all who wait, in one commit.

There is no thread of its own. While one waits for the disk, others line up behind it; those who
were served go on, and the first of those who were not has the next turn. Everybody is woken once,
either served or to serve: waking threads takes Python as long as an answer. They soon come again,
and a commit takes as long for one as for many: so whoever is next waits a little for as many as
there were before.
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
_PATIENCE = 0.5


class _Call:
    """Requests that came together, and the thread that waits for them."""

    __slots__ = ("left", "serves", "woken")

    def __init__(self, requests: Sequence[Request]) -> None:
        self.left = deque(requests)
        """Those that are not in any group so far."""
        self.serves = False
        """Whether it has the turn."""
        self.woken = _locked()


class Turns:
    """One line of requests, served in groups."""

    def __init__(self, serve: Callable[[Sequence[Request]], None]) -> None:
        self._serve = serve
        self._guard = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._taken = False
        self._crowded: threading.Lock | None = None
        """Released when as many wait as there were before, while somebody waits for that."""
        self._crowd = 0
        """How many were in the last group, or came meanwhile."""
        self._lasted = 0.0
        """How long it took, in seconds."""
        self.lock = threading.RLock()
        """Held by whoever reads or writes."""

    def take(self, requests: Sequence[Request]) -> None:
        """Return when requests have been served; raise what went wrong with the first of them."""
        call = _Call(requests)
        self._line_up(call)
        if call.serves:
            try:
                self._gather()
                with self.lock:
                    while not all(request.served for request in requests):
                        self._serve_some(call)
            finally:
                self._leave(call)
        for request in requests:
            if request.error is not None:
                raise request.error

    def _line_up(self, call: _Call) -> None:
        """Wait until it is served, or is to serve."""
        with self._guard:
            self._waiting.append(call)
            if not self._taken:
                self._taken = call.serves = True
                return
            if self._crowded is not None and len(self._waiting) >= self._crowd:
                self._crowded.release()
                self._crowded = None
        try:
            call.woken.acquire()
        except BaseException:  # an interrupt
            self._leave(call)
            raise

    def _leave(self, call: _Call) -> None:
        """Wait no longer, and give the turn to whoever waits the longest."""
        with self._guard:
            if call in self._waiting:  # after an interrupt
                self._waiting.remove(call)
            if call.serves:
                self._taken = bool(self._waiting)
                if self._taken:
                    self._waiting[0].serves = True
                    self._waiting[0].woken.release()

    def _gather(self) -> None:
        """Wait a little for those who were here before."""
        with self._guard:
            if len(self._waiting) >= self._crowd:
                return
            crowded = self._crowded = _locked()
        crowded.acquire(timeout=_PATIENCE * self._lasted)
        with self._guard:
            self._crowded = None

    def _serve_some(self, own: _Call) -> None:
        group, served = self._next()
        start = time.monotonic()
        try:
            self._serve(group)
        except BaseException as error:
            without_frames(error)  # which hold responses that were drawn and are not released
            for request in group:
                request.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for request in group:
                request.served = True
            with self._guard:
                self._lasted = time.monotonic() - start
                self._crowd = len(served) + len(self._waiting)
                for call in served:
                    if call is not own:
                        call.woken.release()

    def _next(self) -> tuple[list[Request], list[_Call]]:
        """Those who can be served together, no subject twice and not too many; and who is done."""
        group: list[Request] = []
        done: list[_Call] = []
        waiting: deque[_Call] = deque()
        subjects: set[int] = set()
        rows = 0
        with self._guard:
            for call in self._waiting:
                left: deque[Request] = deque()
                for request in call.left:
                    own = request.numbers
                    fits = not group or rows + len(own) <= _MOST
                    if fits and subjects.isdisjoint(own):
                        group.append(request)
                        rows += len(own)
                    else:
                        left.append(request)
                    subjects.update(own)  # requests of one subject stay in order
                call.left = left
                (waiting if left else done).append(call)
            self._waiting = waiting
        return group, done


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
