"""Group commit, with requests that only say whom they concern."""

from __future__ import annotations

import ctypes
import linecache
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from expost.errors import ExpostError
from expost.ledger.calls import Ready
from expost.ledger.turns import Turns, _Call


class Request:
    """What turns know of a request."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.served = False
        self.error: BaseException | None = None


def take(turns: Turns, *requests: Request) -> None:
    turns.take(Ready(cast(Any, requests)))


class Errand:
    """One request, with something that goes wrong on the way."""

    def __init__(self, number: int, before: Any = None, after: Any = None) -> None:
        self.request = Request(number)
        self._wrong = before, after
        self.empty = False
        self.prepared, self.finished = list[int](), list[int]()

    def prepare(self) -> Any:
        self.prepared.append(threading.get_ident())
        if self._wrong[0] is not None:
            raise self._wrong[0]
        return [] if self.empty else [self.request]

    def finish(self) -> None:
        assert self.request.served or self.request.error is None
        self.finished.append(threading.get_ident())
        if self._wrong[1] is not None:
            raise self._wrong[1]


def served_after_another(
    errands: Sequence[Errand], others: Callable[[Sequence[Any]], None] = lambda group: None
) -> list[BaseException | None]:
    """What errands end with that come while somebody else is served, and wait in this order."""
    entered, go = threading.Event(), threading.Event()

    def serve(group: Sequence[Any]) -> None:
        if group[0].numbers == [0]:
            entered.set()
            assert go.wait(10)
        else:
            others(group)

    turns, found = Turns(serve), [None] * len(errands)

    def take_one(place: int) -> None:
        try:
            turns.take(cast(Any, errands[place]))
        except BaseException as error:
            found[place] = cast(Any, error)

    threads = [threading.Thread(target=lambda: take(turns, Request(0)))]
    threads += [threading.Thread(target=take_one, args=(n,)) for n in range(len(errands))]
    threads[0].start()
    assert entered.wait(10)
    for count, thread in enumerate(threads[1:], 1):
        thread.start()
        while len(turns._waiting) < count:
            time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert not turns._taken
    assert not turns._waiting
    return list(found)


def test_every_request_is_served_once_and_nobody_is_in_a_group_twice() -> None:
    groups: list[list[Request]] = []

    def serve(group: Sequence[Any]) -> None:
        groups.append(list(group))
        time.sleep(0.0005)

    turns, asked = Turns(serve), list[Request]()

    def ask(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(40):
            own = [Request(*chance.sample(range(9), chance.randint(1, 3))) for _ in range(2)]
            asked.extend(own)
            take(turns, *own)
            assert all(request.served for request in own)

    _together([partial(ask, seed) for seed in range(8)])
    assert sorted(map(id, asked)) == sorted(id(each) for group in groups for each in group)
    for group in groups:
        assert max(Counter(number for each in group for number in each.numbers).values()) == 1
    assert len(groups) < len(asked)
    assert turns._waiting == type(turns._waiting)()
    assert not turns._taken


def test_requests_of_one_subject_stay_in_order() -> None:
    order: list[Request] = []
    turns = Turns(lambda group: order.extend(cast(Any, group)))
    own = [Request(1), Request(2), Request(1, 3), Request(3), Request(1)]
    take(turns, *own)
    for number in (1, 2, 3):
        concerned = [each for each in order if number in each.numbers]
        assert concerned == [each for each in own if number in each.numbers]


def test_an_error_is_that_of_its_group_alone() -> None:
    def serve(group: Sequence[Any]) -> None:
        if any(7 in each.numbers for each in group):
            raise ValueError("seven")

    turns, found = Turns(serve), list[str]()

    def ask(number: int) -> None:
        for _ in range(20):
            try:
                take(turns, Request(number))
            except ValueError as error:
                found.append(str(error))

    _together([lambda: ask(7)])
    take(turns, Request(1))
    assert found == ["seven"] * 20


def test_every_thread_of_a_group_that_fails_has_an_error_of_its_own() -> None:
    """One that all raise would have the frames of each, with what they asked."""
    errands = [Errand(number) for number in range(1, 5)]
    wrong = ValueError("all")

    def fails(group: Sequence[Any]) -> None:
        raise wrong

    found = served_after_another(errands, fails)
    assert [str(error) for error in found] == ["all"] * 4
    assert len({*map(id, found), id(wrong)}) == 5
    for error in cast(list[BaseException], found):
        assert [each.name for each in traceback.extract_tb(error.__traceback__)] == [
            "take_one", "take",
        ]  # fmt: skip
        assert error.__context__ is None


def test_nobody_who_has_left_is_given_the_turn() -> None:
    """Who has nothing to be served may leave while others are prepared, one of whom is stopped."""
    turns, entered, go = Turns(lambda group: None), threading.Event(), threading.Event()

    class Slow(Errand):
        def prepare(self) -> Any:
            entered.set()
            assert go.wait(10)
            raise KeyboardInterrupt

    turns._taken = True  # somebody serves, until all have come
    nothing, slow, last = Errand(1), Slow(2), Errand(3)
    nothing.empty = True
    calls = [_Call(cast(Any, each)) for each in (nothing, slow, last)]
    turns._waiting.extend(calls)
    calls[2].serves = True
    serving = threading.Thread(target=_interrupted, args=(turns, calls[2]))
    serving.start()
    assert entered.wait(10)
    assert calls[0].served  # its thread is awake, and leaves
    turns._leave(calls[0])
    go.set()
    serving.join(10)
    assert not serving.is_alive()
    assert [call.serves for call in calls] == [False, True, False]


def _interrupted(turns: Turns, call: Any) -> None:
    with suppress(KeyboardInterrupt):
        turns._serve_some(call)
    turns._leave(call)


def test_one_thread_does_the_errands_of_all() -> None:
    errands = [Errand(number) for number in range(1, 6)]
    assert served_after_another(errands) == [None] * 5
    assert len({thread for each in errands for thread in each.prepared + each.finished}) == 1
    assert all(len(each.prepared) == len(each.finished) == 1 for each in errands)


def test_what_is_wrong_with_an_errand_is_told_to_its_thread_alone() -> None:
    one, two = ValueError("before"), ValueError("after")
    errands = [Errand(1), Errand(2, before=one), Errand(3, after=two), Errand(4)]
    assert served_after_another(errands) == [None, one, two, None]
    assert [each.request.served for each in errands] == [True, False, True, True]
    # It is tried again by the thread itself, for whoever served had to go on.
    assert len(errands[2].finished) == 2
    frames = [frame.name for frame in traceback.extract_tb(one.__traceback__)]
    assert frames == ["take_one", "take"]


def test_an_errand_that_fails_alone_needs_nobody_to_be_served() -> None:
    turns, wrong = Turns(lambda group: pytest.fail("nobody is to be served")), ValueError("before")
    for _ in range(2):
        with pytest.raises(ValueError, match="before"):
            turns.take(cast(Any, Errand(1, before=wrong)))
    assert not turns._taken
    assert not turns._waiting


def test_an_interrupt_in_an_errand_of_another_thread_ends_it_and_no_other() -> None:
    errands = [Errand(1), Errand(2, before=KeyboardInterrupt()), Errand(3)]
    first, second, third = served_after_another(errands)
    assert isinstance(first, KeyboardInterrupt)  # which it was in reality
    assert type(second) is ExpostError
    assert str(second) == "another thread was interrupted; nothing of this is recorded"
    assert third is None
    assert [each.request.served for each in errands] == [False, False, True]
    errands = [Errand(1), Errand(2, after=KeyboardInterrupt()), Errand(3)]
    assert [type(each) for each in served_after_another(errands)] == [
        KeyboardInterrupt, KeyboardInterrupt, type(None),
    ]  # fmt: skip
    assert [each.request.served for each in errands] == [True] * 3


def test_an_interrupt_while_serving_hands_the_turn_on() -> None:
    entered, go = threading.Event(), threading.Event()
    calls = []

    def serve(group: Sequence[Any]) -> None:
        calls.append([each.numbers for each in group])
        if len(calls) == 1:
            entered.set()
            go.wait(10)
            raise KeyboardInterrupt

    turns, said = Turns(serve), list[BaseException]()

    def first() -> None:
        try:
            take(turns, Request(1))
        except KeyboardInterrupt as error:
            said.append(error)

    one, two = (
        threading.Thread(target=first),
        threading.Thread(target=lambda: take(turns, Request(2))),
    )
    one.start()
    assert entered.wait(10)
    two.start()
    while not turns._waiting:
        time.sleep(0.001)
    go.set()
    one.join(10)
    two.join(10)
    assert not one.is_alive()
    assert not two.is_alive()
    assert len(said) == 1
    assert calls == [[[1]], [[2]]]


def test_who_is_in_the_group_of_somebody_who_is_interrupted_is_told_so() -> None:
    """Nothing is a success because nobody said otherwise."""
    entered, go, calls = threading.Event(), threading.Event(), list[int]()

    def serve(group: Sequence[Any]) -> None:
        calls.append(len(group))
        if len(calls) == 1:
            entered.set()
            go.wait(10)
        else:
            raise KeyboardInterrupt

    turns, said = Turns(serve), list[BaseException]()

    def ask(number: int) -> None:
        try:
            take(turns, Request(number))
        except BaseException as error:
            said.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    threads[0].start()
    assert entered.wait(10)
    for thread in threads[1:]:
        thread.start()
    while len(turns._waiting) < 2:
        time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert calls == [1, 2]
    assert sorted(type(error).__name__ for error in said) == ["Broken", "KeyboardInterrupt"]
    assert not turns._taken


def test_interrupts_at_every_line_leave_nobody_waiting() -> None:
    """One in each line of the thread that serves, and one more while it deals with that."""
    for twice in (False, True):
        for stop in range(1, 400):
            turns, own, other = Turns(lambda group: None), Request(1), Request(2)
            waiting = threading.Thread(target=_quietly, args=(turns, other))
            left = [stop, 6] if twice else [stop]

            def trace(frame: Any, event: str, argument: Any, left: list[int] = left) -> Any:
                if "turns.py" not in frame.f_code.co_filename:
                    return None
                # On leaving a block Python is at its first line again, and does not expect errors.
                here = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
                if event == "line" and left and not here.lstrip().startswith("with"):
                    left[0] -= 1
                    if not left[0]:
                        del left[0]
                        raise KeyboardInterrupt
                return trace

            turns._taken = True  # until the other one is in the line
            waiting.start()
            while not turns._waiting:
                time.sleep(0)
            turns._taken = False
            sys.settrace(trace)
            try:
                take(turns, own)
                ended = bool(left)
            except KeyboardInterrupt:
                ended = False
            finally:
                sys.settrace(None)
            if turns._waiting:
                take(turns, Request(3))
            waiting.join(10)
            assert not waiting.is_alive(), f"after line {stop}"
            assert not turns._taken
            if ended:
                break
        assert stop > 20


def interrupted_at_random(seconds: float, seed: int) -> Counter[str]:
    """What becomes of threads that ask again and again while any of them is interrupted."""
    chance, found, over = random.Random(seed), Counter[str](), threading.Event()
    turns = Turns(lambda group: time.sleep(chance.random() / 5000))

    def asks(number: int) -> None:
        while not over.is_set():
            errand, end = Errand(number, ValueError() if chance.random() < 0.2 else None), "served"
            errand.empty = chance.random() < 0.2
            try:
                turns.take(cast(Any, errand))
                assert errand.empty or errand.request.served
                assert errand.request.error is None
                assert len(errand.prepared) == 1 <= len(errand.finished)
            except (KeyboardInterrupt, ExpostError, ValueError) as error:
                end = type(error).__name__
            found[end] += 1

    def again(number: int) -> None:
        while not over.is_set():
            with suppress(KeyboardInterrupt):  # which may come outside of a call as well
                asks(number)

    threads = [threading.Thread(target=again, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.random() / 1000)
        number, error = chance.choice(threads).ident, ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(cast(int, number)), error)
    over.set()
    for thread in threads:
        thread.join(20)
    assert [thread.is_alive() for thread in threads] == [False] * 8
    assert not turns._taken
    assert not turns._waiting
    return found


def test_interrupts_at_any_time_in_any_thread_leave_nobody_waiting() -> None:
    found = interrupted_at_random(1.5, seed=20)
    assert found["served"] > found["KeyboardInterrupt"] > 100
    assert found["ValueError"] > 100
    assert found["Broken"]


def _quietly(turns: Turns, request: Request) -> None:
    with suppress(ExpostError):
        take(turns, request)


@pytest.mark.parametrize("serves", [False, True])
def test_whoever_is_interrupted_while_waiting_leaves_the_line(serves: bool) -> None:
    """Also if the turn was just handed to them: somebody else has to get it then."""
    turns = Turns(lambda group: None)
    turns._taken = True  # somebody is serving

    def interrupted(call: Any, timeout: float = -1) -> None:
        call.serves = serves
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("expost.ledger.turns._Call.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            take(turns, Request(1))
    assert not turns._waiting
    assert turns._taken is not serves


def _together(actions: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
