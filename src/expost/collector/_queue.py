"""Sync requests that arrive together share one commit.

One task takes whatever is in the queue, hands it to the ledger in a thread, and wakes the waiters.
While a commit runs, the next requests gather. No answer leaves before its commit, its checkpoint
line and the record of handed reservations are durable.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from expost.collector._metrics import Metrics
from expost.collector._problems import RequestProblem, unavailable
from expost.collector._state import ServiceState
from expost.ledger import Ledger, Receipt, SyncAnswer
from expost.ledger.errors import LedgerStopped

__all__ = ["SyncQueue"]

# Requests and bytes that one commit takes.
_BATCH_REQUESTS, _BATCH_BYTES = 4096, 16 << 20
# A commit waits so long for requests that arrive together: each shares its two synchronized writes.
_GATHER_SECONDS = 0.002
# Bytes that may wait. A request that finds more is refused.
_QUEUE_BYTES = 64 << 20


class _Entry(NamedTuple):
    content: bytes
    #: The name of the token that sent it.
    token: str
    answered: asyncio.Future[SyncAnswer]


class SyncQueue:
    """The queue of a ledger; ``on_failure`` is called if the ledger stops."""

    def __init__(
        self,
        ledger: Ledger,
        state: ServiceState,
        metrics: Metrics,
        on_failure: Callable[[str], None],
    ) -> None:
        self._ledger, self._state, self._metrics = ledger, state, metrics
        self._on_failure = on_failure
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def submit(self, content: bytes, token: str) -> asyncio.Future[SyncAnswer]:
        """Add the sync request of a token; the future has its answer when that is durable."""
        if self._closed:
            raise unavailable("the collector is stopping", 5)
        if self._bytes + len(content) > _QUEUE_BYTES:
            raise unavailable("too many requests are waiting")
        self._bytes += len(content)
        entry = _Entry(content, token, asyncio.get_running_loop().create_future())
        self._entries.append(entry)
        self._filled.set()
        return entry.answered

    async def run(self) -> None:
        """Commit what arrives, until the queue is closed."""
        while not self._closed:
            await self._filled.wait()
            self._filled.clear()
            while self._entries and not self._closed:
                await asyncio.sleep(_GATHER_SECONDS)
                await self._commit(self._take())

    def _take(self) -> list[_Entry]:
        batch: list[_Entry] = []
        size = 0
        while self._entries and len(batch) < _BATCH_REQUESTS and size < _BATCH_BYTES:
            entry = self._entries.popleft()
            self._bytes -= len(entry.content)
            if not entry.answered.cancelled():  # its client has gone
                batch.append(entry)
                size += len(entry.content)
        return batch

    async def _commit(self, batch: list[_Entry]) -> None:
        try:
            answers = await asyncio.to_thread(self._sync, batch)
        except Exception as error:
            # Nothing is known to be durable, so nothing is answered. Only errors of a stopped
            # ledger are written without values; of others, the kind is shown.
            stopped = isinstance(error, LedgerStopped)
            self._on_failure(str(error) if stopped else f"error of expost: {type(error).__name__}")
            self.close()
            for entry in batch:
                _fail(entry)
            return
        for entry, answer in zip(batch, answers, strict=True):
            if entry.answered.cancelled():
                continue
            if answer is None:
                problem = RequestProblem(401, "token-invalid", "the token was revoked")
                entry.answered.set_exception(problem)
            elif isinstance(answer, SyncAnswer):
                entry.answered.set_result(answer)
            else:  # it was read before it was queued
                _fail(entry)

    def _sync(self, batch: list[_Entry]) -> list[SyncAnswer | Receipt | None]:
        """Commit a batch; return an answer for each, None if its token was revoked meanwhile."""
        start = time.perf_counter()
        answers = self._ledger.sync([entry.content for entry in batch])
        revoked = self._state.hand_out(
            (answer.subject, entry.token)
            for entry, answer in zip(batch, answers, strict=True)
            if isinstance(answer, SyncAnswer) and answer.reservation is not None
        )
        self._metrics.commits.observe(time.perf_counter() - start)
        receipts = [
            receipt
            for answer in answers
            if isinstance(answer, SyncAnswer)
            for receipt in answer.receipts
        ]
        self._metrics.count_messages(Counter(receipt.outcome for receipt in receipts))
        return [
            None if entry.token in revoked else answer
            for entry, answer in zip(batch, answers, strict=True)
        ]

    def close(self) -> None:
        """Finish the running commit; refuse everything else."""
        self._closed = True
        self._filled.set()
        while self._entries:
            _fail(self._entries.popleft())


def _fail(entry: _Entry) -> None:
    if not entry.answered.done():
        entry.answered.set_exception(unavailable("the collector is stopping", 5))
