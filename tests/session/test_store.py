"""One suite for every store of a session: what Store promises, in memory, in a file, in a database.

A new store joins by a line in ``STORES``.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.filters import Decision
from expost.queries import Query
from expost.sampling import Source
from expost.session._file_session import FileStore
from expost.session._session import Halt, Memory, Store
from support.stack_frames import text_with_locals

SECRET = "the-secret-label"
DOMAIN = xp.FiniteSet(["a", "b", SECRET])
START = xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon="3"))
QUERY = xp.randomized_response(epsilon="0.5")
BLIND = xp.channel([["1/2", "1/2"]] * 3, responses=["x", "y"])  # no response looks like the secret


class Rows(Store):
    """A row for each exchange, in a database."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.database.execute("create table if not exists exchanges (query, response)")

    @contextmanager
    def turn(self, odometer: xp.Odometer) -> Iterator[xp.Odometer]:
        self.database.execute("begin immediate")
        try:
            rows = "select query, response from exchanges limit -1 offset ?"
            for query, response in self.database.execute(rows, (len(odometer),)).fetchall():
                odometer = odometer.add(xp.queries.query_from_json(json.loads(query)), response)
            yield odometer
        except BaseException:
            self.database.execute("rollback")
            raise
        if self.database.in_transaction:
            self.database.execute("rollback")  # a refusal

    def record(self, exchange: xp.transcript.Exchange) -> None:
        row = exchange.query.to_json(), exchange.response
        self.database.execute("insert into exchanges values (?, ?)", row)
        self.database.execute("commit")


@dataclass
class Shelf:
    """Makes stores of one subject, which share what they record unless they keep nothing."""

    new: Callable[[], Store]
    shared: bool = True
    opened: ExitStack = field(default_factory=ExitStack)

    def store(self) -> Store:
        store = self.new()
        if isinstance(store, Rows):
            self.opened.callback(store.database.close)
        return store

    def session(self, source: Source | None = None, store: Store | None = None) -> xp.Session:
        store = store or self.store()
        return xp.Session.resume(_first(store), SECRET, store=store, source=source)

    def recorded(self, session: xp.Session) -> xp.Transcript:
        """Return what a store holds, read by another one."""
        if not self.shared:
            return session.transcript
        store = self.store()
        with store.turn(xp.Odometer(_first(store))) as odometer:
            return odometer.transcript


def _first(store: Store) -> xp.Transcript:
    """Return the transcript that a session of a store starts from."""
    return store.load() if isinstance(store, FileStore) else START


def file_shelf(folder: Path) -> Shelf:
    START.save(folder / "subject.json")
    return Shelf(lambda: FileStore(folder / "subject.json"))


STORES: dict[str, Callable[[Path], Shelf]] = {
    "memory": lambda folder: Shelf(Memory, shared=False),
    "file": file_shelf,
    "rows of a user": lambda folder: Shelf(lambda: Rows(folder / "rows.db")),
}


@pytest.fixture(params=STORES)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    shelf = STORES[request.param](tmp_path)
    with shelf.opened:
        yield shelf


def mentions_secret(error: BaseException) -> bool:
    # The domain is public, and lists all values.
    return SECRET in text_with_locals(error).replace(repr(DOMAIN), "")


def test_a_response_is_recorded_before_it_is_returned(shelf: Shelf) -> None:
    session = shelf.session()
    responses = []
    for query in (QUERY, BLIND, QUERY):
        responses.append(session.ask(query))
        recorded = shelf.recorded(session)
        assert [exchange.response for exchange in recorded.exchanges] == responses
        assert recorded == session.transcript


@pytest.mark.parametrize("shelf", [name for name in STORES if name != "memory"], indirect=True)
def test_sessions_share_one_budget(shelf: Shelf) -> None:
    *first, last = (shelf.session() for _ in range(4))
    answers = []
    with suppress(xp.BudgetExceeded):
        for session in cycle(first):
            answers.append(session.ask(QUERY))
    assert len(answers) >= 6
    for session in (*first, last):
        with pytest.raises(xp.BudgetExceeded):
            session.ask(QUERY)
        assert [exchange.response for exchange in session.transcript.exchanges] == answers
        assert session.loss.upper == pytest.approx(xp.realized_loss(session.transcript).upper)
        assert session.loss.upper <= 3


class Counting:
    """Draws the first response, and counts the draws."""

    draws = 0

    def below(self, limit: int) -> int:
        self.draws += 1
        return 0


def test_a_refused_query_draws_and_records_nothing(shelf: Shelf) -> None:
    source = Counting()
    session = shelf.session(source)
    too_much = xp.randomized_response(epsilon=4)
    session.decide(too_much)
    with pytest.raises(xp.BudgetExceeded):
        session.ask(too_much)
    assert source.draws == 0
    assert shelf.recorded(session) == START
    session.ask(QUERY)


class Failing:
    """Has no randomness."""

    def below(self, limit: int) -> int:
        raise OSError("no randomness")


def test_nothing_is_recorded_if_sampling_fails(shelf: Shelf) -> None:
    session = shelf.session(Failing())
    with pytest.raises(OSError, match="no randomness") as caught:
        session.ask(QUERY)
    assert not mentions_secret(caught.value)
    assert shelf.recorded(session) == session.transcript == START
    shelf.session().ask(QUERY)


def test_what_a_store_cannot_record_is_not_released(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shelf.store()
    session = shelf.session(store=store)

    def record(exchange: xp.transcript.Exchange) -> None:
        row = json.dumps([exchange.response])
        raise OSError(f"no space left for a row of {len(row)} bytes")

    with monkeypatch.context() as patch:
        patch.setattr(store, "record", record, raising=False)
        with pytest.raises(OSError, match="no space left for a row") as caught:
            session.ask(BLIND)
    assert "Exchange(" not in text_with_locals(caught.value)
    assert not mentions_secret(caught.value)
    assert shelf.recorded(session) == session.transcript == START
    session.ask(BLIND)
    assert len(shelf.recorded(session)) == 1


def test_what_a_store_does_not_take_is_refused_before_a_response_is_drawn(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, store = Counting(), shelf.store()
    session = shelf.session(source, store)
    session.ask(QUERY)
    draws = source.draws

    def check(transcript: xp.Transcript, query: Query) -> None:
        if any(exchange.query == query for exchange in transcript.exchanges):
            raise xp.InvalidInput("was asked before", "query")

    monkeypatch.setattr(store, "check", check, raising=False)
    for refuses in (session.decide, session.ask):
        with pytest.raises(xp.InvalidInput, match="query: was asked before"):
            refuses(QUERY)
    assert source.draws == draws
    assert len(shelf.recorded(session)) == 1


class Slow(xp.sampling.InsecureSource):
    """Lets other threads run between the decision and the record."""

    def below(self, limit: int) -> int:
        time.sleep(0.0005)
        return super().below(limit)


def test_threads_are_answered_one_after_the_other(shelf: Shelf) -> None:
    session = shelf.session(Slow(1))
    answers: list[object] = []

    def ask() -> None:
        with suppress(xp.BudgetExceeded):
            while True:
                answers.append(session.ask(QUERY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorded = [exchange.response for exchange in shelf.recorded(session).exchanges]
    assert sorted(map(str, recorded)) == sorted(map(str, answers))
    assert len(recorded) >= 6
    assert session.loss.upper <= 3


def test_an_analyst_asks_until_it_halts(shelf: Shelf) -> None:
    def analyst(transcript: xp.Transcript, decide: Callable[[Query], Decision]) -> Query | Halt:
        assert decide(QUERY).accepted or len(transcript) >= 5
        return xp.session.HALT if len(transcript) == 5 else QUERY

    session = shelf.session()
    transcript = xp.session.interact(analyst, session)
    assert transcript == shelf.recorded(session)
    assert len(transcript) == 5


@pytest.mark.parametrize("store", [json, 7])
def test_what_is_no_store_is_refused_by_a_line(store: Any) -> None:
    with pytest.raises(xp.InvalidInput, match="store: must be a store with methods turn, record"):
        xp.Session.resume(START, "a", store=store)
