"""Group commit, with requests that only say whom they concern."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from expost.ledger.turns import Turns


class Request:
    """What turns know of a request."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.served = False
        self.error: BaseException | None = None


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
            turns.take(own)  # type: ignore[arg-type]
            assert all(request.served for request in own)

    _together([lambda seed=seed: ask(seed) for seed in range(8)])  # type: ignore[misc]
    assert sorted(map(id, asked)) == sorted(id(each) for group in groups for each in group)
    for group in groups:
        assert max(Counter(number for each in group for number in each.numbers).values()) == 1
    assert len(groups) < len(asked)
    assert turns._waiting == type(turns._waiting)()
    assert not turns._taken


def test_requests_of_one_subject_stay_in_order() -> None:
    order: list[Request] = []
    turns = Turns(lambda group: order.extend(group))  # type: ignore[arg-type]
    own = [Request(1), Request(2), Request(1, 3), Request(3), Request(1)]
    turns.take(own)  # type: ignore[arg-type]
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
                turns.take([Request(number)])  # type: ignore[list-item]
            except ValueError as error:
                found.append(str(error))

    _together([lambda: ask(7)])
    turns.take([Request(1)])  # type: ignore[list-item]
    assert found == ["seven"] * 20


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
            turns.take([Request(1)])  # type: ignore[list-item]
        except KeyboardInterrupt as error:
            said.append(error)

    one, two = (
        threading.Thread(target=first),
        threading.Thread(
            target=lambda: turns.take([Request(2)])  # type: ignore[list-item]
        ),
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
            turns.take([Request(1)])  # type: ignore[list-item]
    assert not turns._waiting
    assert turns._taken is not serves


def _together(actions: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
