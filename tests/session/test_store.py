"""A session has a store, and anybody can write one."""

from __future__ import annotations

import json
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path

import pytest

import expost as xp
from expost.session._session import Memory, Store

START = xp.Transcript(xp.FiniteSet(["a", "b", "c"]), xp.BayesianFilter(epsilon="3"))
QUERY = xp.randomized_response(epsilon="0.5")


class Rows(Store):
    """A row for each exchange, in a database."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("create table if not exists exchanges (epsilon, response)")

    @contextmanager
    def turn(self, odometer: xp.Odometer) -> Iterator[xp.Odometer]:
        self.database.execute("begin immediate")
        try:
            rows = "select epsilon, response from exchanges limit -1 offset ?"
            for epsilon, response in self.database.execute(rows, (len(odometer),)).fetchall():
                odometer = odometer.add(xp.randomized_response(epsilon), response)
            yield odometer
        except BaseException:
            self.database.execute("rollback")
            raise
        if self.database.in_transaction:
            self.database.execute("rollback")  # a refusal

    def record(self, exchange: xp.transcript.Exchange) -> None:
        row = str(exchange.query.epsilon), exchange.response
        self.database.execute("insert into exchanges values (?, ?)", row)
        self.database.execute("commit")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Rows]]:
    opened = [Rows(tmp_path / "rows.db") for _ in range(3)]
    yield opened
    for store in opened:
        store.database.close()


def test_a_store_is_handed_one_exchange_and_sessions_share_what_it_keeps(
    stores: list[Rows],
) -> None:
    *first, last = stores
    sessions = [xp.Session.resume(START, "a", store=store) for store in first]
    answers = []
    with suppress(xp.BudgetExceeded):
        for session in cycle(sessions):
            answers.append(session.ask(QUERY))
    assert len(answers) >= 6
    late = xp.Session.resume(START, "b", store=last)
    with pytest.raises(xp.BudgetExceeded):
        late.ask(QUERY)
    assert [exchange.response for exchange in late.transcript.exchanges] == answers
    assert xp.realized_loss(late.transcript).upper <= 3


class Full(Memory):
    """Cannot record."""

    def record(self, exchange: xp.transcript.Exchange) -> None:
        row = json.dumps([exchange.response])
        raise OSError(f"no space left for a row of {len(row)} bytes")


class Picky(Memory):
    """Takes no query twice, and says so in a dry run too."""

    def check(self, transcript: xp.Transcript, query: object) -> None:
        if any(exchange.query == query for exchange in transcript.exchanges):
            raise xp.InvalidInput("was asked before", "query")


def test_what_a_store_cannot_record_is_not_released() -> None:
    session = xp.Session.resume(START, "a", store=Full())
    with pytest.raises(OSError, match="no space left for a row") as caught:
        session.ask(QUERY)
    assert len(session.transcript) == 0
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "ask" in [frame.name for frame in trace.stack]
    assert "record" not in [frame.name for frame in trace.stack]
    assert "Exchange(" not in str([frame.locals for frame in trace.stack])


def test_what_a_store_does_not_take_is_refused_before_a_response_is_drawn() -> None:
    session = xp.Session.resume(START, "a", store=Picky())
    session.ask(QUERY)
    for refuses in (session.decide, session.ask):
        with pytest.raises(xp.InvalidInput, match="query: was asked before"):
            refuses(QUERY)
    assert len(session.transcript) == 1


def test_what_is_no_store_is_refused_by_a_line() -> None:
    with pytest.raises(xp.InvalidInput, match="store: must be a store with methods turn, record"):
        xp.Session.resume(START, "a", store=json)  # type: ignore[arg-type]
