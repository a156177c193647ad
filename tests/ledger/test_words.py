"""New queries and responses get their numbers, also if somebody interrupts that."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import expost as xp
from expost.ledger import Ledger, words

OLD, NEW, OTHER = (xp.randomized_response(epsilon=each) for each in ("0.25", "0.5", "0.125"))


class Interrupting:
    """Interrupts the line with some number, of those that give numbers to words."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, given: Any) -> Any:
        return self._line if frame.f_code.co_filename == words.__file__ else None

    def _line(self, frame: FrameType, event: str, given: Any) -> Any:
        self.left -= event == "line"
        if not self.left:
            raise KeyboardInterrupt
        return self._line


def interrupted(ledger: Ledger, line: int) -> bool:
    """Ask something new, and whether that came to an end."""
    known = sys.gettrace()
    sys.settrace(Interrupting(line))
    try:
        ledger.ask(NEW, ["no"], ["ann"], key="k")
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(known)
    return True


def test_who_interrupts_a_new_query_can_go_on_and_loses_nothing(tmp_path: Path) -> None:
    domain, guard = xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=9)
    for line in range(1, 1000):
        place = tmp_path / f"{line}.db"
        with Ledger.create(place, domain, filter=guard) as ledger:
            ledger.register(["ann", "bob"])
            ledger.ask(OLD, ["no", "yes"])
            done = interrupted(ledger, line)
            if not ledger._core.stopped:
                ledger.ask(OTHER, ["yes"], ["bob"])
                assert ledger.ask(NEW, ["no"], ["ann"], key="k").answered.all()
                assert ledger.verify().good
        with Ledger(place) as ledger:
            assert ledger.ask(NEW, ["no"], ["ann"], key="k").answered.all()
            assert ledger.ask(OTHER, ["yes"], ["bob"]).answered.all()
            assert ledger.verify().good
        if done:
            break
    assert 30 < line < 999
