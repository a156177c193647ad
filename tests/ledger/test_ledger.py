"""A ledger decides and answers as a panel does, and what it recorded stays."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import expost as xp
from expost.ledger import Broken, Ledger
from expost.ledger.adding import add
from expost.ledger.backend import Stale
from expost.sampling import InsecureSource
from support.frames import text_with_locals

SMOKES = xp.FiniteSet(["no", "yes"])
PERSON = xp.Attributes(region=["n", "s", "w"], smokes=xp.changing(["no", "yes"]))
BOX = xp.Box(age=(10, 100), weight=(40, 150))
ABOUT = xp.randomized_response(epsilon="1/2")
SCORE = xp.linear({"age": 0.01}, range=(0, 1), clip=True, epsilon="0.5")
OTHER = xp.linear({"weight": 0.01}, range=(0, 2), clip=True, epsilon="0.5")

STUDIES: dict[str, tuple[Any, Any, list[Any]]] = {
    "set": (
        xp.FiniteSet(range(4)),
        [3, 1, 2, 0, 0],
        [
            xp.randomized_response(epsilon="0.1"),
            xp.unary_encoding(variant="symmetric", epsilon="0.2"),
        ],
    ),
    "attributes": (
        PERSON,
        [
            [{"region": r, "smokes": s}] * 2
            for r, s in zip("nsnww", ["no", "yes"] * 3, strict=False)
        ],
        [ABOUT.about("region"), ABOUT.about("smokes", at=1), ABOUT.about("smokes", at=2)],
    ),
    "box": (BOX, [{"age": 20 * n, "weight": 50 + n} for n in range(1, 6)], [SCORE, OTHER]),
}
GUARDS = [
    xp.BayesianFilter(epsilon="0.6"),
    xp.SimplifiedFilter(epsilon="0.8"),
    xp.BasicFilter(epsilon="1"),
]
NAMES: list[int | str] = ["ann", "bob", 3, "dora", "eve"]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.create(
        tmp_path / "study.db", SMOKES, filter=xp.BayesianFilter(epsilon=1), every=1
    ) as made:
        made.register(["ann", "bob"])
        yield made


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.kind)
@pytest.mark.parametrize("study", STUDIES)
def test_a_ledger_answers_as_a_panel_does(study: str, guard: Any, tmp_path: Path) -> None:
    domain, values, queries = STUDIES[study]
    place = tmp_path / "study.db"
    Ledger.create(place, domain, filter=guard, source=InsecureSource(1)).close()
    with Ledger(place, source=InsecureSource(7)) as ledger:
        ledger.register(NAMES)
        panel = xp.Panel(domain, filter=guard, subjects=NAMES, source=InsecureSource(7))
        for turn in range(6 if study == "box" else 16):
            query = queries[turn % len(queries)]
            one, other = panel.decide(query), ledger.decide(query)
            assert (one.accepted == other.accepted).all()
            assert np.allclose(one.loss_at_worst.upper, other.loss_at_worst.upper)
            assert np.allclose(one.remaining, other.remaining, atol=1e-9)
            asked, replied = panel.ask(query, values), ledger.ask(query, values)
            assert asked.responses == replied.responses
            assert asked.queries == replied.queries
        status = ledger.status()
        assert (status.exchanges == panel.exchanges).all()
        assert np.allclose(status.loss.upper, panel.loss.upper, atol=1e-9)
        assert np.allclose(status.spent.upper, panel.spent.upper)
        for name in NAMES:
            assert ledger.transcript(name) == panel.transcript(name)
        answers, others = ledger.answers(), panel.answers()
        assert sorted(map(str, answers.subjects)) == sorted(map(str, others.subjects))
        assert answers.refused == others.refused
        found = ledger.verify()
        assert found.good, found


def test_no_upper_end_is_above_a_budget_that_every_response_respected(tmp_path: Path) -> None:
    query, guard = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.BayesianFilter(ratio=3**6)
    domain = xp.FiniteSet(["no", "yes"])
    with Ledger.create(tmp_path / "study.db", domain, filter=guard) as ledger:
        ledger.register(["a", "b"])
        for key in range(6):
            ledger.record(query, [0, 0], ["a", "b"], key=f"k{key}")
        ledger.record(query, [0], ["b"], key="too much")
        status = ledger.status()
    limit = guard.budget.enclosure.upper
    assert status.closed.tolist() == [False, True]
    assert status.loss.upper[0] == limit
    assert status.loss.lower[1] > limit


def test_what_was_answered_is_answered_alike_after_opening(tmp_path: Path) -> None:
    place, query = tmp_path / "study.db", xp.randomized_response(epsilon="1/4")
    with Ledger.create(place, SMOKES, filter=xp.BayesianFilter(epsilon=1)) as ledger:
        ledger.register(["ann", "bob"])
        first = ledger.ask(query, ["no", "yes"], key="one").responses
    with Ledger(place) as ledger:
        assert ledger.ask(query, ["no", "yes"], key="one").responses == first
        assert ledger.status().exchanges.tolist() == [1, 1]
        # One key for many subjects, also one after the other.
        assert ledger.ask(query, ["yes"], ["bob"], key="one").responses == first[1:]
        ledger.register(["carl"])
        assert ledger.ask(query, ["no"], ["carl"], key="one").answered.all()


def test_registering_again_resets_nothing(ledger: Ledger) -> None:
    query = xp.randomized_response(epsilon=1)
    ledger.ask(query, ["no", "no"])
    assert ledger.register(["bob", "carl", "ann"]) == 1
    assert ledger.decide(query).accepted.tolist() == [False, False, True]
    assert ledger.register(["ann"]) == 0


def test_a_refused_key_stays_refused_though_the_loss_falls(tmp_path: Path) -> None:
    query = xp.randomized_response(epsilon="1/2")
    with Ledger.create(
        tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon="1/2"), every=1
    ) as ledger:
        ledger.register(["ann"])
        ledger.record(query, ["yes"], key="first")
        assert not ledger.ask(query, ["no"], key="second").answered.any()
        # What a device sends counts, and here it brings the loss down; she is closed by it.
        assert ledger.record(query, ["no"], key="third").tolist() == [False]
        assert not ledger.ask(query, ["no"], key="second").answered.any()
        assert ledger.record(query, ["no"], key="third").tolist() == [False]
        assert ledger.record(query, ["yes"], key="first").tolist() == [True]
        assert ledger.status().closed.tolist() == [True]


def test_a_refusal_that_would_be_accepted_later_stays(tmp_path: Path) -> None:
    small, large = xp.randomized_response(epsilon="1/2"), xp.randomized_response(epsilon=1)
    with Ledger.create(
        tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1), source=InsecureSource(3)
    ) as ledger:
        ledger.register(["ann"])
        ledger.ask(small, ["no"])
        assert not ledger.ask(large, ["no"], key="large").answered.any()
        for _ in range(200):
            if ledger.decide(large).accepted.all():
                break
            ledger.ask(small, ["no"])
        assert ledger.decide(large).accepted.all()
        assert not ledger.ask(large, ["no"], key="large").answered.any()
        assert ledger.ask(large, ["no"], key="larger").answered.all()
        assert ledger.verify().good


def test_what_devices_recorded_counts_and_may_close(ledger: Ledger) -> None:
    query = xp.randomized_response(epsilon="3/4")
    accepted = ledger.record(
        query, ["yes", "yes", "yes", "no"], ["ann", "ann", "bob", "ann"], key="log"
    )
    assert accepted.tolist() == [True, False, True, False]
    assert len(ledger.transcript("ann")) == 3
    assert ledger.status().closed.tolist() == [True, False]
    again = ledger.record(
        query, ["yes", "yes", "yes", "no"], ["ann", "ann", "bob", "ann"], key="log"
    )
    assert again.tolist() == accepted.tolist()
    assert len(ledger.transcript("ann")) == 3
    found = ledger.audit()
    assert found.closed == ("ann",)
    assert found.audit is not None
    assert found.audit.broken == 1
    assert not found.good
    assert ledger.verify().good


def test_many_threads_share_commits(tmp_path: Path) -> None:
    query, names = xp.randomized_response(epsilon="1/8"), [f"s{n}" for n in range(8)]
    with Ledger.create(tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=2)) as ledger:
        ledger.register(names)
        before = ledger.tip.commits
        errors = []

        def asks(number: int) -> None:
            try:
                for turn in range(10):
                    whom = names[(number + turn) % len(names)]
                    ledger.ask(query, ["no"], [whom], key=f"{number} {turn}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=asks, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert ledger.status().exchanges.sum() == 80
        assert ledger.tip.commits - before < 60  # or else nobody waited for anybody
        assert ledger.verify().good


WORKER = """
import sys
import expost as xp
with xp.Ledger(sys.argv[1], every=1) as ledger:
    query = xp.randomized_response(epsilon="1/8")
    for turn in range(25):
        ledger.ask(query, ["no", "yes"], ["ann", "bob"], key=f"{sys.argv[2]} {turn}")
"""


def test_several_processes_ask_at_once(ledger: Ledger, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path / "study.db")]
    workers = [subprocess.Popen([*command, str(number)]) for number in range(2)]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    rows = list(ledger._core.backend.rows())
    assert len(rows) == 100  # every request of both, answered or refused
    found = ledger.verify()
    assert found.good, found
    with Ledger(tmp_path / "study.db") as again:
        assert again.tip == ledger.tip


def test_a_forked_process_opens_its_own(ledger: Ledger) -> None:
    child = os.fork()
    if not child:
        try:
            ledger.ask(xp.randomized_response(epsilon="1/4"), ["no", "no"])
        except xp.InvalidInput as error:
            os._exit(0 if "another process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_long_request_is_recorded_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.ledger.calls._TOGETHER", 7)
    monkeypatch.setattr("expost.ledger.turns._MOST", 7)
    query = xp.randomized_response(epsilon=1)
    with Ledger.create(
        tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1), every=1
    ) as ledger:
        ledger.register(range(100))
        replies = ledger.ask(query, ["no"] * 50 + ["yes"] * 50, key="all")
        assert replies.answered.all()
        assert ledger.tip.commits > 10
        again = ledger.ask(query, ["no"] * 50 + ["yes"] * 50, key="all")
        assert again.responses == replies.responses
        assert ledger.verify().good


def test_what_is_read_as_it_comes_is_read_by_its_own_thread(tmp_path: Path) -> None:
    """Also if it asks the ledger itself; nobody else waits for it meanwhile."""
    query, threads = xp.randomized_response(epsilon="0.1"), set[int]()
    with Ledger.create(tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1)) as ledger:
        ledger.register(range(4))

        def values() -> Iterator[str]:
            threads.add(threading.get_ident())
            assert ledger.ask(query, ["no"], [3]).answered.all()
            yield from ("no", "yes")

        assert ledger.ask(query, values(), [0, 1]).answered.all()
        assert threads == {threading.get_ident()}
        assert ledger.status().exchanges.tolist() == [1, 1, 0, 1]


def test_progress_counts_who_is_asked_something(tmp_path: Path) -> None:
    query, told = xp.randomized_response(epsilon="0.1"), list[tuple[int, int]]()
    with Ledger.create(
        tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1), queries={"q": query}
    ) as ledger:
        ledger.register(range(3))

        def progress(done: int, total: int) -> None:
            told.append((done, total))

        for asked, subjects in (
            ("q", []), ("q", [1, 2]), ([None, "q"], [1, 2]), ([None, None], [1, 2]),
            ([None, "q", "q"], None),
        ):  # fmt: skip
            count = 3 if subjects is None else len(subjects)
            ledger.ask(asked, ["no"] * count, subjects, progress=progress)
        assert told == [(2, 2), (1, 1), (2, 2)]


def test_who_waits_while_the_ledger_is_closed_is_told_so(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1))
    ledger.register(range(2))
    query, found = xp.randomized_response(epsilon="0.1"), list[str]()

    def ask(call: Callable[..., Any]) -> None:
        try:
            call(query, ["no"], [0])
        except xp.InvalidInput as error:
            found.append(str(error))

    threads = [threading.Thread(target=ask, args=(each,)) for each in (ledger.ask, ledger.record)]
    with ledger._turns.lock:
        for thread in threads:
            thread.start()
        while not ledger._turns._waiting:
            time.sleep(0.001)
        ledger.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert found == ["the ledger was closed; open it again"] * 2


def test_queries_have_names(tmp_path: Path) -> None:
    query, other = xp.randomized_response(epsilon="1/4"), xp.randomized_response(epsilon="1/2")
    place = tmp_path / "s.db"
    with Ledger.create(
        place, SMOKES, filter=xp.BayesianFilter(epsilon=1), queries={"smokes": query}
    ) as ledger:
        ledger.register(["ann", "bob"])
        ledger.name_queries({"again": other})
        replies = ledger.ask(["smokes", "again"], ["no", "no"])
        assert replies.queries == ("smokes", "again")
        ledger.name_queries({"smokes": query})
        for second in ({"more": query}, {"one": SCORE, "two": SCORE}):
            with pytest.raises(xp.InvalidInput, match="is a second name: this query is called"):
                ledger.name_queries(second)
        assert set(ledger.queries) == {"smokes", "again"}
        with pytest.raises(xp.InvalidInput, match="is the name of another query"):
            ledger.name_queries({"smokes": other})
    with Ledger(place) as ledger:
        assert ledger.queries == {"smokes": query, "again": other}
        assert ledger.decide("again").accepted.shape == (2,)


def test_a_search_on_a_box_is_given(tmp_path: Path) -> None:
    search = xp.panel.Search(effort=xp.solver.Effort(nodes=1))
    with Ledger.create(
        tmp_path / "s.db", BOX, filter=xp.BayesianFilter(epsilon="0.9"), search=search
    ) as ledger:
        ledger.register(["ann"])
        value = [{"age": 30, "weight": 80}]
        for query in (SCORE, OTHER, SCORE):
            ledger.ask(query, value)
        assert ledger.verify().good


def test_a_ledger_shows_itself_and_not_values(ledger: Ledger) -> None:
    ledger.ask(xp.randomized_response(epsilon="1/4"), ["no", "yes"])
    assert repr(ledger) == "Ledger(2 subjects, 2 commits, budget 1)"
    assert str(ledger.status()).startswith("Status(2 subjects, 2 answered, 0 closed)")
    with pytest.raises(TypeError, match="not copied"):
        copy.copy(ledger)


def test_no_frame_of_an_error_holds_a_value(ledger: Ledger, monkeypatch: Any) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("the generator is gone")

    monkeypatch.setattr(ledger._core._source, "below", failing, raising=False)
    monkeypatch.setattr(ledger._core._source, "bytes", failing, raising=False)
    with pytest.raises(RuntimeError) as error:
        ledger.ask(xp.randomized_response(epsilon="1/4"), ["secret-no", "yes"][1:] * 2)
    assert "yes" not in text_with_locals(error.value)


@pytest.mark.parametrize("error", [xp.InvalidInput("busy"), Broken("full"), KeyboardInterrupt()])
def test_no_frame_of_an_error_holds_what_was_drawn(
    ledger: Ledger, monkeypatch: Any, error: BaseException
) -> None:
    def failing(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(ledger._core.backend, "append", failing)
    with pytest.raises(type(error)) as raised:
        ledger.ask(xp.randomized_response(epsilon="1/4"), ["no", "yes"])
    frames = list(traceback.walk_tb(raised.value.__traceback__))[1:]
    shown = [repr(frame.f_locals) for frame, _ in frames]
    assert not [each for each in shown if "Answer" in each]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, apsw.FullError])
def test_nothing_is_shown_of_a_commit_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Its connection would still see it. Nor does it keep another process waiting."""
    place, query = tmp_path / "s.db", xp.randomized_response(epsilon="1/4")
    ledger = Ledger.create(place, SMOKES, filter=xp.BayesianFilter(epsilon=1))
    ledger.register(["ann", "bob"])
    ledger.ask(query, ["no", "yes"])

    def failing(cursor: Any, change: Any, made: int) -> None:
        add(cursor, change, made)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("expost.ledger.sqlite.add", failing)
        with pytest.raises((error, Broken)):
            ledger.ask(query, ["no", "yes"], key="k")
    assert repr(ledger) == "Ledger(stopped by a write that failed)"
    for read in (
        lambda: ledger.transcript("ann"), ledger.status, ledger.answers, ledger.audit,
        lambda: ledger.decide(query), ledger.verify, ledger.rounds, lambda: ledger.tip,
        lambda: ledger.ask(query, ["no"], ["ann"], key="k"), lambda: ledger.register(["eve"]),
    ):  # fmt: skip
        with pytest.raises(Broken, match="an earlier write failed; open the ledger again"):
            read()
    with Ledger(place) as other:
        assert other.status().exchanges.tolist() == [1, 1]
        other.ask(query, ["no", "yes"], key="k")
        assert other.verify().good
    ledger.close()


def test_a_checkpoint_that_fails_lets_nothing_be_shown(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(lines: bytes) -> int:
        raise Broken("the disk is full")

    monkeypatch.setattr(ledger._core.checkpoint.place, "append", full)
    with pytest.raises(Broken, match="the disk is full"):
        ledger.ask(xp.randomized_response(epsilon="1/4"), ["no", "yes"], key="k")
    for read in (lambda: ledger.transcript("ann"), ledger.status, ledger.answers):
        with pytest.raises(Broken, match="open the ledger again"):
            read()


@pytest.mark.parametrize("name", ["queries", "responses"])
def test_a_query_that_comes_with_its_first_answer_while_words_are_read_is_known(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    backend = ledger._core.backend
    real = getattr(backend, name)
    with Ledger(tmp_path / "study.db") as other:

        def reading(after: int = 0) -> Any:
            monkeypatch.setattr(backend, name, real)
            found = real(after)
            other.ask(xp.randomized_response(epsilon="1/7"), ["no"], ["bob"])
            return found

        monkeypatch.setattr(backend, name, reading)
        assert len(ledger.queries) in (0, 1)
        assert len(ledger.queries) == 1
        assert ledger.verify().good


def test_a_commit_that_somebody_else_was_faster_with_does_not_draw_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a commit fails may depend on what was drawn, so what was drawn stays."""
    query = xp.randomized_response(epsilon="0.1")
    answered = {}
    for name, failures in (("smooth", 0), ("bumpy", 3)):
        with Ledger.create(
            tmp_path / f"{name}.db",
            xp.FiniteSet(range(1000)),
            filter=xp.BayesianFilter(epsilon=1),
            source=InsecureSource(5),
        ) as ledger:
            ledger.register(NAMES)
            backend = ledger._core.backend
            left, append = [Stale()] * failures, backend.append

            def stumbling(*change: Any, left: Any = left, append: Any = append) -> Any:
                if left:
                    raise left.pop()
                return append(*change)

            monkeypatch.setattr(backend, "append", stumbling)
            answered[name] = list(ledger.ask(query, [7] * len(NAMES)).responses)
            assert not left
    assert answered["smooth"] == answered["bumpy"]
