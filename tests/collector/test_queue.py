"""Requests that wait for a commit are answered even if it fails in a way that nobody foresaw."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from expost.collector._metrics import Metrics
from expost.collector._problems import RequestProblem
from expost.collector._queue import SyncQueue


class FailingLedger:
    """A ledger with an error of which nothing is known, except that it may name a subject."""

    def sync(self, requests: Any) -> Any:
        raise KeyError("ann")


def test_an_unforeseen_error_answers_all_and_closes_the_queue() -> None:
    reasons: list[str] = []

    async def fail() -> None:
        ledger = cast(Any, FailingLedger())
        queue = SyncQueue(ledger, cast(Any, None), Metrics(), reasons.append)
        running = asyncio.create_task(queue.run())
        answers = [queue.submit(b"{}", "token") for _ in range(3)]
        done = await asyncio.gather(*answers, return_exceptions=True)
        assert [getattr(problem, "status", None) for problem in done] == [503] * 3
        with pytest.raises(RequestProblem, match="stopping"):
            queue.submit(b"{}", "token")
        await running

    asyncio.run(asyncio.wait_for(fail(), 10))
    assert reasons == ["error of expost: KeyError"]
