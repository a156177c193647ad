"""A running collector: the ledger, the journals, the queue, and what the endpoints share."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from expost._types import PathLike
from expost.answers import Subject
from expost.collector._groups import SMALLEST, too_small
from expost.collector._jobs import Jobs
from expost.collector._journal import Journal
from expost.collector._metrics import Metrics
from expost.collector._problems import RequestProblem
from expost.collector._queue import SyncQueue
from expost.collector._state import ServiceState
from expost.collector._tokens import ADMINISTRATOR, AUDITOR, BY_NAME, Credential, Token
from expost.errors import InvalidInput
from expost.ledger import Ledger, Round
from expost.ledger._opening import checkpoint_file
from expost.ledger._requests import DEVICE

__all__ = ["Service", "Settings"]

LOG = logging.getLogger("expost.collector")

# Identical requests of one token are recorded once in this many seconds.
_REPEAT_SECONDS = 3600.0
_MOST_REPEATS = 10_000
# The age of counts that are shown again.
_FRESH_SECONDS = 1.0
_STATES_SECONDS = 60.0
# How many seconds' requests a token may send at once.
_BURST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a collector is run."""

    database: PathLike
    checkpoint: PathLike | None = None
    #: The smallest group that an analyst may ask about.
    smallest_group: int = SMALLEST
    #: Requests a second that each token may send in the long run.
    rate: float = 20.0


class Service:
    """Everything that the endpoints use. Create it in the event loop that serves them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        store = checkpoint_file(settings.database, settings.checkpoint)
        self.checkpoint = store.path
        self.writer = Ledger(settings.database, checkpoint=self.checkpoint)
        self.writer.sync([])  # claims the ledger, so that no other collector has the journals
        self.reader = Ledger(settings.database, checkpoint=self.checkpoint)
        study = self.writer.policy.content_id
        self.state = ServiceState(Journal(Path(f"{self.checkpoint}.collector"), study))
        self.request_log = Journal(Path(f"{self.checkpoint}.requests"), study)
        self.policy = self.writer.policy.to_json()
        self.study = study
        self.metrics = Metrics()
        self.queue = SyncQueue(self.writer, self.state, self.metrics, self._fail)
        self.jobs = Jobs(settings.database, self.checkpoint)
        #: Set when no further request is taken.
        self.stopping = asyncio.Event()
        self.failure = ""
        self._waiting: defaultdict[Subject, set[asyncio.Event]] = defaultdict(set)
        self._allowances: dict[str, tuple[float, float]] = {}
        self._recorded: dict[tuple[str, str], float] = {}
        #: Counts requests that asked something: counts from before them are not shown.
        self.rounds_made = 0
        self._rounds: tuple[int, float, tuple[Round, ...]] | None = None
        self._rounds_lock = threading.Lock()
        self._states: tuple[float, dict[str, float]] | None = None
        self._states_lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._queue_task = asyncio.create_task(self.queue.run())

    def first_token(self, *, new: bool) -> Credential | None:
        """Make an administrator token if there never was one, or if a new one is wanted."""
        existing = any(ADMINISTRATOR in token.scopes for token in self.state.tokens.values())
        if existing and not new:
            return None
        return self.state.add_token([ADMINISTRATOR], "printed at the start")

    def _fail(self, reason: str) -> None:
        """Stop serving, because the ledger has stopped."""
        self.failure = reason
        LOG.error("the ledger has stopped: %s", reason)
        self.stop()

    def stop(self) -> None:
        """Take no further request; finish the running commit."""
        self.stopping.set()
        self.queue.close()
        self.jobs.close()
        self.wake(list(self._waiting))

    async def close(self) -> None:
        """Release the ledger, when nothing uses it any longer."""
        self.stop()
        await self._queue_task
        self.reader.close()
        self.writer.close()
        self.request_log.close()
        self.state.close()

    # -- requests

    def check_rate(self, token: Token) -> None:
        """Refuse a token that sends too many requests."""
        rate, now = self.settings.rate, time.monotonic()
        most = max(rate * _BURST_SECONDS, 1.0)
        left, last = self._allowances.get(token.name, (most, now))
        left = min(most, left + (now - last) * rate)
        if left < 1:
            seconds = max(1, round((1 - left) / rate))
            raise RequestProblem(
                429, "too-many-requests", "this token sends too many requests",
                headers={"Retry-After": str(seconds)}, rate=rate,
            )  # fmt: skip
        self._allowances[token.name] = left - 1, now

    async def record_request(self, token: Token, request: str, about: Mapping[str, Any]) -> None:
        """Record who asks what, durably, before it is answered."""
        key, now = (token.name, f"{request} {about}"), time.monotonic()
        if now - self._recorded.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        if len(self._recorded) >= _MOST_REPEATS:
            self._recorded.clear()
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"time": moment, "token": token.name, "request": request, "about": about}
        await asyncio.to_thread(self.request_log.append, [entry])
        self._recorded[key] = now

    # -- subjects

    async def members(
        self, token: Token, group: str | None, subjects: Iterable[Subject] | None = None
    ) -> list[Subject]:
        """Return the subjects that a token may ask about: everybody, a group, or by name."""
        if subjects is not None:
            if group is not None:
                raise RequestProblem(400, "invalid-body", "expected a group or subjects, not both")
            if BY_NAME not in token.scopes:
                raise RequestProblem(403, "scope-missing", "this needs a token that asks by name")
            return list(dict.fromkeys(subjects))
        everybody = await self.everybody()
        sees_names = token.scopes.intersection((BY_NAME, AUDITOR))
        if not sees_names and len(everybody) < self.settings.smallest_group:
            raise too_small(len(everybody), self.settings.smallest_group)
        if group is None:
            return everybody
        members = self.state.groups.get(group)
        if members is None:
            raise RequestProblem(404, "unknown-group", "there is no such group")
        present = [subject for subject in everybody if subject in members]
        if not sees_names and len(present) < self.settings.smallest_group:  # some have withdrawn
            raise too_small(len(present), self.settings.smallest_group)
        return present

    async def everybody(self) -> list[Subject]:
        """Return all subjects with devices that have not withdrawn."""

        def read() -> list[Subject]:
            withdrawn = self.reader.withdrawn
            names = self.reader.subjects_of_kind(DEVICE)
            return [subject for subject in names if subject not in withdrawn]

        return await asyncio.to_thread(read)

    def has_answered(self, subject: Subject) -> bool:
        """Return whether the ledger has an exchange of a subject."""
        try:
            return bool(self.reader.status([subject]).exchanges[0])
        except InvalidInput:  # a restored backup has lost the registration
            return False

    def counted_rounds(self) -> tuple[Round, ...]:
        """Return what became of every round, at most a second old."""
        with self._rounds_lock:
            version, now = self.rounds_made, time.monotonic()
            if self._rounds is None or self._rounds[0] != version or now > self._rounds[1]:
                self._rounds = version, now + _FRESH_SECONDS, self.reader.rounds()
            return self._rounds[2]

    def count_states(self) -> dict[str, float]:
        """Count subjects by what can be asked of them, at most a minute old; for metrics."""
        with self._states_lock:
            if self._states is None or time.monotonic() > self._states[0]:
                status = self.reader.status()
                active = np.array(status.states) == "active"
                counts = {
                    "subjects": float(len(status)),
                    "active_subjects": float(active.sum()),
                    "used_up_budgets": float((status.remaining[active] <= 0).sum()),
                }
                self._states = time.monotonic() + _STATES_SECONDS, counts
            return self._states[1]

    def call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in the event loop, from another thread."""
        self._loop.call_soon_threadsafe(function, *arguments)

    # -- devices that wait for a reservation

    def wake(self, subjects: Collection[Subject]) -> None:
        """Let waiting devices of these subjects sync again."""
        for subject in subjects:
            for event in self._waiting.pop(subject, ()):
                event.set()

    async def wait_for_reservation(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until a device should sync again; return whether it should."""
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def watch(self, subject: Subject) -> asyncio.Event:
        """Return an event that is set when a subject gets a reservation."""
        event = asyncio.Event()
        self._waiting[subject].add(event)
        return event

    def unwatch(self, subject: Subject, event: asyncio.Event) -> None:
        """Forget an event."""
        events = self._waiting.get(subject)
        if events is not None:
            events.discard(event)
            if not events:
                del self._waiting[subject]
