"""Group commit: whoever has the turn serves all who wait, in one commit.

There is no thread of its own. While one waits for the disk, others line up behind it; those who
were served go on, and the first of those who were not has the next turn. Everybody is woken once,
either served or to serve, and one by the other: waking threads takes Python as long as an answer,
and longer if several are awake, of which one can run. They soon come again, and a commit takes as
long for one as for many: so whoever is next waits a little for as many as there were before, and
the last of these has the turn. It also reads what all of them ask for, and says what became of it:
that takes less time than to go from one thread to the next.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from itertools import pairwise
from typing import Protocol

from expost.errors import ExpostError
from expost.ledger.errors import Broken
from expost.ledger.requests import Request
from expost.session.secret import without_frames

__all__ = ["Errand", "Turns"]

# The most rows of one commit.
_MOST = 1 << 14

# What of the time of a commit it may take to wait for others: the more, the more often they come.
_LEAST_PATIENCE, _MOST_PATIENCE = 1 / 16, 1.0


class Errand(Protocol):
    """What a thread comes for. Whoever has the turn does this for it, and the thread waits."""

    def prepare(self) -> Sequence[Request]:
        """What is to be served; an error is raised where it came from."""

    def finish(self) -> None:
        """Make of it what is returned, once all of it was served without an error."""


class _Call:
    """An errand, and the thread that waits for it."""

    __slots__ = (
        "_errand", "_woken", "after", "error", "finished", "gone", "left", "prepared", "requests",
        "serves",
    )  # fmt: skip

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self.prepared = False
        self.requests: Sequence[Request] = ()
        self.left: Sequence[Request] = ()
        """Those that are not in any group so far."""
        self.error: BaseException | None = None
        """Why they could not be prepared."""
        self.finished = False
        self.serves = False
        """Whether it has the turn."""
        self.gone = False
        """Whether it waits no longer."""
        self.after: _Call | None = None
        """Whom it wakes then."""
        self._woken = threading.Lock()
        self._woken.acquire()

    @property
    def served(self) -> bool:
        """Whether nothing is left to be done but to finish it."""
        return self.prepared and all(request.served for request in self.requests)

    def prepare(self) -> None:
        """Know its requests, or why there are none; an errand is not prepared twice."""
        if self.requests:  # whoever did it was interrupted then
            self.prepared = True
            return
        self.error = ExpostError("another thread was interrupted; nothing of this is recorded")
        try:
            requests = self._errand.prepare()
            self.requests, self.left, self.error = requests, requests, None
        except Exception as error:
            self.error = without_frames(error)  # which are those of another thread
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            self.prepared = True

    @property
    def wrong(self) -> BaseException | None:
        """The first error."""
        errors = (self.error, *(request.error for request in self.requests))
        return next((error for error in errors if error is not None), None)

    def finish(self) -> None:
        if not self.finished:
            self._errand.finish()
            self.finished = True

    def wait(self, timeout: float = -1) -> None:
        """Wait until it is woken, because something above has changed."""
        self._woken.acquire(timeout=timeout)

    def wake(self) -> None:
        """By whoever has the guard. Who is woken already will look again in any case."""
        if self._woken.locked():
            self._woken.release()


class _Group:
    """Requests that are served together."""

    __slots__ = ("calls", "done", "requests", "server")

    def __init__(self, server: _Call, requests: list[Request], calls: list[_Call]) -> None:
        self.server = server
        """Whose thread serves them."""
        self.requests = requests
        self.calls = calls
        """All of whose requests are served then."""
        self.done = False
        """Whether they were, or each knows what was wrong; this has to be said, not assumed."""


class Turns:
    """One line of requests, served in groups."""

    def __init__(self, serve: Callable[[Sequence[Request]], None]) -> None:
        self._serve = serve
        self._guard = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._taken = False
        self._group: _Group | None = None
        """Which is served now."""
        self._gathering: _Call | None = None
        """Who has the turn and waits for others."""
        self._crowd = 0
        """How many were in the last group, or came meanwhile."""
        self._lasted = 0.0
        """How long it took, in seconds."""
        self._patience = _MOST_PATIENCE
        self.lock = threading.RLock()
        """Held by whoever reads or writes."""

    def take(self, errand: Errand) -> None:
        """Return when an errand is done; raise what went wrong first."""
        call = _Call(errand)
        try:
            self._wait(call)
            if call.serves:
                with self.lock:
                    while not call.served:
                        self._serve_some(call)
            self._leave(call)
        except BaseException:
            try:
                self._leave(call)
            finally:  # for the first one may be interrupted as well
                self._leave(call)
            raise
        if call.wrong is not None:
            raise call.wrong
        call.finish()

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
        """Wait no longer; give the turn to whoever waits the longest, and wake who comes after it.

        Wherever this is interrupted, doing it again does the rest.
        """
        self._end(call)
        with self._guard:
            call.gone = True
            if call in self._waiting:  # after an interrupt, or if there was nothing to serve
                self._waiting.remove(call)
            if self._gathering is call:
                self._gathering = None
            if call.serves:
                first = self._waiting[0] if self._waiting else None
                if first is None:
                    call.serves = self._taken = False
                else:  # in one go: at any time one of them has the turn
                    call.after, first.serves, call.serves = first, True, False
            if call.after is not None:
                call.after.wake()

    def _serve_some(self, server: _Call) -> None:
        start = time.monotonic()
        self._prepare()
        group = self._next(server)
        try:
            if group.requests:
                self._serve(group.requests)
            group.done = True
            for call in group.calls:
                if call.wrong is None:
                    with suppress(Exception):  # which it finds itself
                        call.finish()
        except Exception as error:
            without_frames(error)  # which hold responses that were drawn and are not released
            for request in group.requests:
                request.error = copy(error)  # for each gets the frames of who raises it
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            self._lasted = time.monotonic() - start
            self._end(server)

    def _end(self, server: _Call) -> None:
        """All of its group know what became of it, also after an interrupt: then of nothing."""
        group = self._group
        if group is None or group.server is not server:
            return
        for request in group.requests:
            if not group.done and request.error is None:
                request.error = Broken("another thread was interrupted; open the ledger again")
            request.served = True
        with self._guard:
            self._crowd = len(group.calls) + len(self._waiting)
            staying = [call for call in group.calls if not (call.serves or call.gone)]
            for call, after in pairwise(staying):
                call.after = after
            if staying:
                staying[0].wake()
            self._group = None

    def _prepare(self) -> None:
        """Know what all want who wait by now."""
        with self._guard:
            new = [call for call in self._waiting if not call.prepared]
        for call in new:
            call.prepare()

    def _next(self, server: _Call) -> _Group:
        """Those who can be served together: no subject twice, and not too many."""
        requests: list[Request] = []
        left: list[tuple[_Call, list[Request]]] = []
        subjects: set[int] = set()
        rows = 0
        with self._guard:
            for call in self._waiting:
                rest: list[Request] = []
                for request in call.left:
                    own = request.numbers
                    fits = not requests or rows + len(own) <= _MOST
                    if fits and subjects.isdisjoint(own):
                        requests.append(request)
                        rows += len(own)
                    else:
                        rest.append(request)
                    subjects.update(own)  # requests of one subject stay in order
                left.append((call, rest))
            # From here on whoever ends this wakes them, whatever happens.
            ending = [call for call, rest in left if call.prepared and not rest]
            self._group = group = _Group(server, requests, ending)
            for call, rest in left:
                call.left = rest
            self._waiting = deque(call for call, rest in left if rest or not call.prepared)
        return group
