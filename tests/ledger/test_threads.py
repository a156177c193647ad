"""Threads share one ledger: they share commits, and nothing else."""

from __future__ import annotations

import linecache
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger import Ledger, LedgerBroken, _engine
from support.scripted_devices import HALF, OTHER, ScriptedDevice, a_ledger, reserved
from support.stack_frames import text_with_locals

_PATIENCE = 30


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run calls in threads; return what each returned or raised."""
    found: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            found[number] = calls[number]()
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "a thread waits forever"
    return found


def queued(ledger: Ledger, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run calls in threads that all wait before the first of them is served."""
    with ledger._engine.lock:
        release = threading.Event()

        def wait() -> None:
            while len(ledger._engine._queue) < len(calls):
                time.sleep(0.001)
            release.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        results: list[Any] = []
        runner = threading.Thread(target=lambda: results.extend(together(calls)))
        runner.start()
        assert release.wait(_PATIENCE)
        waiting.join()
    runner.join(_PATIENCE)
    assert not runner.is_alive()
    return results


def test_calls_that_wait_share_a_commit(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["first"])
        before = ledger.tip.commit_number
        calls = [partial(ledger.register, [number]) for number in range(8)]
        assert queued(ledger, calls) == [1] * 8
        assert ledger.tip.commit_number == before + 1
        assert sorted(map(str, ledger.subjects)) == sorted(["first", *map(str, range(8))])
        assert ledger.verify().good


def test_many_threads_make_fewer_commits_than_calls(tmp_path: Path) -> None:
    query, names = xp.randomized_response(epsilon="1/100"), [f"s{number}" for number in range(8)]
    with a_ledger(tmp_path, budget=20) as ledger:
        ledger.register(names, kind="simulated")
        before = ledger.tip.commit_number

        def ask(number: int) -> None:
            for turn in range(10):
                name = names[number]
                assert ledger.ask(query, ["no"], [name], key=f"{turn}").answered.all()

        found = together([partial(ask, number) for number in range(8)])
        assert found == [None] * 8
        assert ledger.status().exchanges.tolist() == [10] * 8
        # 80 calls of two commits each, if no thread waited for another.
        assert ledger.tip.commit_number - before < 120
        assert ledger.verify().good


def test_threads_that_ask_the_same_subject_record_everything_once(tmp_path: Path) -> None:
    with a_ledger(tmp_path, budget=20) as ledger:
        ledger.register(["ann"])
        ann = ScriptedDevice(ledger)
        calls = [lambda: reserved(ledger, OTHER, ["ann"], "same")] * 6
        assert queued(ledger, calls) == [["reserved"]] * 6
        message = ann.answer(ledger, OTHER)
        receipts = queued(ledger, [lambda: ledger.receive([message])] * 6)
        assert len(set(receipts)) == 1
        keys = [f"{number}" for number in range(6)]
        found = queued(ledger, [partial(reserved, ledger, OTHER, ["ann"], k) for k in keys])
        assert sorted(each[0] for each in found) == ["reserved"] + ["waiting"] * 5
        assert len(ledger.transcript("ann")) == 1
        assert ledger.verify().good


def test_an_error_stays_with_its_caller(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"], kind="imported")
        new = xp.randomized_response(epsilon="1/7")
        found = queued(
            ledger,
            [
                lambda: ledger.register(["bob"]),
                lambda: ledger.register(["carl", "ann"]),  # of another kind
                lambda: ledger.record(new, ["yes"], ["nobody"]),
                lambda: ledger.register(["dora"]),
                lambda: reserved(ledger, HALF, ["ann"]),
            ],
        )
        assert (found[0], found[3]) == (1, 1)
        assert [type(found[number]) for number in (1, 2, 4)] == [xp.InvalidInput] * 3
        assert "is registered as imported, not as device" in str(found[1])
        assert set(ledger.subjects) == {"ann", "bob", "dora"}
        assert ledger.queries == {}
        assert ledger.verify().good


def test_a_write_that_fails_fails_all_that_shared_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"])

        def failing(commit: Any) -> None:
            raise LedgerBroken("the disk is full")

        monkeypatch.setattr(ledger._engine.backend, "commit", failing)
        found = queued(ledger, [partial(ledger.register, [n]) for n in range(4)])
        assert [str(each) for each in found] == ["the disk is full"] * 4
        assert len({id(each) for each in found}) == 4  # each thread raises an error of its own
        assert isinstance(together([ledger.status])[0], LedgerBroken)


def test_threads_that_wait_while_a_ledger_is_closed_are_told_so(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    ledger.register(["ann"])
    calls = [lambda: ledger.register(["bob"]), lambda: ledger.reserve(HALF, ["ann"])]
    results: list[Any] = []
    with ledger._engine.lock:
        runner = threading.Thread(target=lambda: results.extend(together(calls)))
        runner.start()
        while not ledger._engine._queue:
            time.sleep(0.001)
        ledger.close()
    runner.join(_PATIENCE)
    assert [str(each) for each in results] == ["the ledger is closed; open it again"] * 2
    with Ledger(tmp_path / "study.db") as again:
        assert again.subjects == ("ann",)


class _Interrupted:
    """Raises KeyboardInterrupt in its thread, at the nth line of the engine that is executed."""

    def __init__(self, line: int) -> None:
        self.left = line
        self.raised = False

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != _engine.__file__:
            return None
        # Python checks for signals between the lines of a block, and never on its way out of one.
        source = linecache.getline(_engine.__file__, frame.f_lineno).strip()
        if event == "line" and not self.raised and not source.startswith("with "):
            self.left -= 1
            if self.left < 0:
                self.raised = True
                raise KeyboardInterrupt
        return self


def test_an_interrupt_at_any_line_leaves_no_thread_waiting(tmp_path: Path) -> None:
    raised = 0
    for line in range(50):
        place = tmp_path / f"{line}"
        place.mkdir()
        ledger, interrupt = a_ledger(place), _Interrupted(line)
        ledger.register(["first"])

        def interrupted(ledger: Ledger = ledger, interrupt: Any = interrupt) -> Any:
            sys.settrace(interrupt)
            try:
                return ledger.register(["interrupted"])
            finally:
                sys.settrace(None)

        others = [partial(ledger.register, [n]) for n in range(2)]
        found = together([others[0], interrupted, others[1]])
        raised += interrupt.raised
        assert isinstance(found[1], KeyboardInterrupt if interrupt.raised else (int, LedgerBroken))
        ledger.close()
        with Ledger(place / "study.db") as again:
            for number in (0, 1):
                result = found[0 if number == 0 else 2]
                assert result == 1 or isinstance(result, LedgerBroken), (line, found)
                assert number in again.subjects or result != 1
            assert again.verify().good
    assert raised > 20


def test_an_interrupted_thread_takes_no_call_of_another_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was interrupted after it took the queue and before it served anyone."""
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"])
        serve, first = ledger._engine._run_calls, [True]

        def interrupted(calls: Any) -> None:
            if first and first.pop():
                raise KeyboardInterrupt
            serve(calls)

        monkeypatch.setattr(ledger._engine, "_run_calls", interrupted)
        found = queued(ledger, [partial(ledger.register, [n]) for n in range(3)])
        kinds = sorted(type(each).__name__ for each in found)
        assert kinds == ["KeyboardInterrupt", "LedgerBroken", "LedgerBroken"]


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"])
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            lines = []
            for call in (
                lambda: ledger.reserve(HALF), ledger.status, lambda: ledger.register(["bob"]),
                lambda: ledger.receive([b""], dry_run=True), lambda: ledger.tip,
            ):  # fmt: skip
                try:
                    call()
                    lines.append("nothing was raised")
                except BaseException as error:
                    lines.append(f"{type(error).__name__}: {error}")
            os.write(writing, "\n".join(lines).encode())
            os._exit(0)
        os.close(writing)
        assert os.waitpid(child, 0)[1] == 0
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().decode().splitlines()
        line = "InvalidInput: the ledger was opened in another process; open it again in this one"
        assert lines == [line] * 5
        # The parent continues.
        assert reserved(ledger, HALF) == ["reserved"]
        assert ledger.verify().good


class _Failing:
    def below(self, limit: int) -> int:
        raise RuntimeError("the generator is gone")

    def bytes(self, count: int) -> bytes:
        raise RuntimeError("the generator is gone")


class TestFrames:
    """No frame of an error has a value or a response in it."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Any:
        guard = xp.BayesianFilter(epsilon=1)
        domain = xp.FiniteSet([f"secret-{number}" for number in range(1000)])
        with Ledger.create(tmp_path / "s.db", domain, filter=guard) as made:
            made.register(["ann", "bob"], kind="simulated")
            yield made

    VALUES = ("secret-911", "secret-922")

    def test_a_source_that_fails_shows_no_value(self, ledger: Ledger) -> None:
        ledger._source = _Failing()
        with pytest.raises(RuntimeError) as error:
            ledger.ask(HALF, list(self.VALUES))
        assert "secret-9" not in text_with_locals(error.value)

    def test_bad_arguments_show_no_value(self, ledger: Ledger) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: ledger.ask(HALF, [*self.VALUES, "secret-933"]),
            lambda: ledger.ask(HALF, ["secret-911", "secret-9999"]),
            lambda: ledger.ask(HALF, list(self.VALUES), ["ann", "eve"]),
            lambda: ledger.ask("no such query", list(self.VALUES)),
            lambda: ledger.ask(HALF, list(self.VALUES), key="\n"),
        ]
        for call in calls:
            with pytest.raises(xp.InvalidInput) as error:
                call()
            assert "secret-9" not in text_with_locals(error.value)

    @pytest.mark.parametrize(
        "error", [xp.InvalidInput("busy"), LedgerBroken("full"), KeyboardInterrupt(), MemoryError()]
    )
    def test_a_commit_that_fails_shows_no_draw(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        """The first commit is the reservation, and the second has the responses."""
        commit, left = ledger._engine.backend.commit, [1]

        def failing(given: Any) -> None:
            if not left[0]:
                raise error
            left[0] -= 1
            commit(given)

        monkeypatch.setattr(ledger._engine.backend, "commit", failing)
        with pytest.raises(type(error)) as raised:
            ledger.ask(HALF, list(self.VALUES))
        frames = list(traceback.walk_tb(raised.value.__traceback__))[1:]
        shown = [
            repr(frame.f_locals) for frame, _ in frames if "expost" in frame.f_code.co_filename
        ]
        assert shown
        assert not [each for each in shown if "secret-9" in each or "positions=" in each]


def test_random_calls_of_many_threads_are_one_history(tmp_path: Path) -> None:
    """Whatever the order was, every budget is respected and every message is recorded once."""
    names = list(range(6))
    query = xp.randomized_response(epsilon="1/4")
    with a_ledger(tmp_path) as ledger:
        ledger.register(names)

        def live(number: int) -> int:
            chance, phone = random.Random(number), ScriptedDevice(ledger, number)
            for turn in range(6):
                if reserved(ledger, query, [number], f"{turn}") == ["reserved"]:
                    message = phone.answer(ledger, query, chance.choice(["no", "yes"]))
                    for _ in range(chance.randint(1, 2)):
                        assert ledger.receive([message])[0].outcome == "recorded"
            return len(phone.sent)

        sent = together([partial(live, number) for number in names])
        assert ledger.status().exchanges.tolist() == sent
        assert min(sent) >= 4
        assert ledger.audit().good
        assert ledger.verify().good
