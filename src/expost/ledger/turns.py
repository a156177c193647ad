"""Group commit: whoever has the turn serves all who wait, in one commit.

There is no thread of its own. While one waits for the disk, others line up behind it; those who
were served go on, and the first of those who were not has the next turn. Everybody is woken once,
either served or to serve: waking threads takes Python as long as an answer. They soon come again,
and a commit takes as long for one as for many: so whoever is next waits a little for as many as
there were before, and the last of these has the turn.
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

# What of the time of a commit it may take to wait for others: the more, the more often they come.
_LEAST_PATIENCE, _MOST_PATIENCE = 1 / 16, 1.0


class _Call:
    """Requests that came together, and the thread that waits for them."""

    __slots__ = ("_woken", "left", "requests", "serves")

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.left = deque(requests)
        """Those that are not in any group so far."""
        self.serves = False
        """Whether it has the turn."""
        self._woken = threading.Lock()
        self._woken.acquire()

    @property
    def served(self) -> bool:
        return all(request.served for request in self.requests)

    def wait(self, timeout: float = -1) -> None:
        """Wait until it is woken, because something above has changed."""
        self._woken.acquire(timeout=timeout)

    def wake(self) -> None:
        """By whoever has the guard. Who is woken already will look again in any case."""
        if self._woken.locked():
            self._woken.release()


class Turns:
    """One line of requests, served in groups."""

    def __init__(self, serve: Callable[[Sequence[Request]], None]) -> None:
        self._serve = serve
        self._guard = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._taken = False
        self._gathering: _Call | None = None
        """Who has the turn and waits for others."""
        self._crowd = 0
        """How many were in the last group, or came meanwhile."""
        self._lasted = 0.0
        """How long it took, in seconds."""
        self._patience = _MOST_PATIENCE
        self.lock = threading.RLock()
        """Held by whoever reads or writes."""

    def take(self, requests: Sequence[Request]) -> None:
        """Return when requests have been served; raise what went wrong with the first of them."""
        call = _Call(requests)
        try:
            self._wait(call)
            if call.serves:
                with self.lock:
                    while not call.served:
                        self._serve_some(call)
        finally:
            if call.serves or not call.served:
                self._leave(call)
        for request in requests:
            if request.error is not None:
                raise request.error

    def _wait(self, call: _Call) -> None:
        """Wait until it is served, or is to serve and has gathered others."""
        with self._guard:
            self._waiting.append(call)
            if not self._taken:
                self._taken = call.serves = True
            elif self._gathering is not None and len(self._waiting) >= self._crowd:
                # Whoever was waiting for this one would have to be woken; and this one is awake.
                self._gathering.serves, self._gathering = False, None
                call.serves = True
                self._patience = min(_MOST_PATIENCE, self._patience * 2)
        while not call.served:
            if not call.serves:
                call.wait()
            elif self._gathered(call):
                return

    def _gathered(self, call: _Call) -> bool:
        """Wait a little for those who were here before; False if one of them has the turn now."""
        with self._guard:
            if len(self._waiting) >= self._crowd:
                return True
            self._gathering = call
        call.wait(self._patience * self._lasted)
        with self._guard:
            if call.serves:  # they have not come
                self._gathering = None
                self._patience = max(_LEAST_PATIENCE, self._patience / 2)
            return call.serves

    def _leave(self, call: _Call) -> None:
        """Wait no longer, and give the turn to whoever waits the longest."""
        with self._guard:
            if call in self._waiting:  # after an interrupt
                self._waiting.remove(call)
            if self._gathering is call:
                self._gathering = None
            if call.serves:
                self._taken = bool(self._waiting)
                if self._taken:
                    self._waiting[0].serves = True
                    self._waiting[0].wake()

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
                        call.wake()

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
