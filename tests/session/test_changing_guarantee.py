"""The guarantee where values change: whole interactions with every adaptive analyst, in rationals.

Every transcript of accepted questions is one that some analyst reaches. Its probability must not
differ by more than e^budget between any two true sequences, whether or not they keep the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import pytest

import expost as xp
from expost.domains import Frozen
from expost.queries import Query
from support.changing_devices import (
    Answered,
    Game,
    Path,
    Question,
    Record,
    Records,
    eager,
    in_any_order,
    in_order,
    lazy,
    nearest,
    silent,
    unfrozen,
)

COIN: dict[Record, tuple[int, ...]] = {(0,): (2, 1), (1,): (1, 2)}
DIE: dict[Record, tuple[int, ...]] = {(0,): (4, 2, 1), (1,): (2, 3, 2), (2,): (1, 2, 4)}
BOTH: dict[Record, tuple[int, ...]] = {
    (0, 0): (3, 1),
    (0, 1): (2, 2),
    (1, 0): (2, 2),
    (1, 1): (1, 3),
}


def sequences(*sizes: int, steps: int, constant: int = 0) -> tuple[Records, ...]:
    """All true sequences of records, in which the first places do not change."""
    fixed = product(*map(range, sizes[:constant]))
    moving = list(product(product(*map(range, sizes[constant:])), repeat=steps))
    return tuple(tuple((*x, *each) for each in rest) for x in fixed for rest in moving)


@dataclass(frozen=True)
class Study:
    """A domain with a budget, what is asked of it, and the device as it should be."""

    domain: xp.Attributes
    ratio: int
    game: Game
    device: Answered

    @cached_property
    def queries(self) -> list[Query]:
        result: list[Query] = []
        for question in self.game.questions:
            names = [self.domain.names[place] for place in question.about]
            rows = [[Fraction(w, sum(row)) for w in row] for row in question.rows.values()]
            changes = any(self.domain[name].change is not None for name in names)
            channel = xp.channel(rows, responses=list(question.responses))
            result.append(channel.about(*names, at=question.step if changes else None))
        return result

    @cached_property
    def _known(self) -> dict[Path, tuple[xp.Odometer, list[bool]]]:
        return {}

    def accepts(self, path: Path, number: int) -> bool:
        """What the filter decides, which is a function of the tally."""
        return self._decided(tuple(sorted(path, key=str)))[1][number]

    def _decided(self, tally: Path) -> tuple[xp.Odometer, list[bool]]:
        if tally not in self._known:
            if tally:
                number, response = tally[-1]
                odometer = self._decided(tally[:-1])[0].add(self.queries[number], response)
            else:
                odometer = xp.Odometer(xp.Transcript(self.domain))
            guard = xp.BayesianFilter(ratio=self.ratio)
            accepted = [guard.accepts(odometer, query) for query in self.queries]
            self._known[tally] = odometer, accepted
        return self._known[tally]

    def worst(self, device: Answered, allowed: Callable[[Path], bool] = in_any_order) -> float:
        return self.game.worst(device, self.accepts, allowed)


def coins(times: int, *, steps: int, ratio: int, most: int, ordered: bool = False) -> Study:
    """A coin that is asked about at every step."""
    questions = tuple(Question((0,), step, COIN) for step in range(1, steps + 1))
    domain = xp.Attributes(x=xp.changing([0, 1], times=times))
    game = Game(questions, sequences(2, steps=steps), most, ordered)
    return Study(domain, ratio, game, eager([times]))


def numbers() -> Study:
    """Three numbers, of which a value goes to a neighbor at most."""
    questions = tuple(Question((0,), step, DIE) for step in (1, 2, 3))
    game = Game(questions, sequences(3, steps=3), 4)
    return Study(xp.Attributes(x=xp.changing([0, 1, 2], max_step=1)), 16, game, nearest(1))


def records() -> Study:
    """One attribute that does not change, one that changes once, and questions about both."""
    domain = xp.Attributes(a=[0, 1], x=xp.changing([0, 1], times=1))
    questions = (
        Question((0,), 1, COIN),
        *(Question((1,), step, COIN) for step in (1, 2, 3)),
        Question((0, 1), 2, BOTH),
    )
    game = Game(questions, sequences(2, 2, steps=3, constant=1), 4)
    return Study(domain, 8, game, eager([0, 1]))


STUDIES = {
    "constant": coins(0, steps=3, ratio=4, most=5),
    "once": coins(1, steps=3, ratio=8, most=5),
    "twice": coins(2, steps=4, ratio=16, most=5),
    "by one": numbers(),
    "records": records(),
}


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_no_analyst_learns_more_than_the_budget_of_any_true_sequence(study: Study) -> None:
    assert study.worst(study.device) == study.ratio


# Deliberately broken devices.


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_device_that_does_not_freeze_is_caught(study: Study) -> None:
    assert study.worst(unfrozen) > study.ratio


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_device_that_is_silent_when_it_is_frozen_is_caught(study: Study) -> None:
    assert study.worst(silent(study.device)) == math.inf


def test_counting_changes_at_asked_steps_alone_is_right_in_their_order_and_in_no_other() -> None:
    study = coins(1, steps=3, ratio=8, most=5, ordered=True)
    assert study.worst(lazy(1), in_order(study.game.questions)) == study.ratio
    assert study.worst(lazy(1)) == 4 * study.ratio


# The sessions themselves.


class Fixed:
    """A source that says what it is told to."""

    def __init__(self) -> None:
        self.next, self.limit = 0, 1

    def below(self, limit: int) -> int:
        self.limit = limit
        return self.next


def chances(session: xp.Session, source: Fixed, query: Query) -> dict[Any, Fraction]:
    """The exact distribution of what a session answers; it answers each time."""
    found: dict[Any, Fraction] = {}
    source.next, source.limit = 0, 1
    while source.next < source.limit:
        response = session.ask(query)
        found[response] = found.get(response, Fraction(0)) + Fraction(1, source.limit)
        source.next += 1
    return found


@pytest.mark.parametrize("name", ["constant", "once", "by one", "records"])
def test_a_session_answers_for_the_frozen_record_of_a_step_whenever_it_is_asked(name: str) -> None:
    study = STUDIES[name]
    names = study.domain.names
    for true in study.game.sequences:
        answered, source = study.device(true, []), Fixed()
        guard = xp.BasicFilter(epsilon=10**6)
        session = xp.Session(study.domain, true[0], filter=guard, source=source)
        for now in range(1, len(true) + 1):
            if now > 1:
                moved = [i for i in range(len(names)) if true[now - 1][i] != true[now - 2][i]]
                session.next({names[place]: true[now - 1][place] for place in moved})
            for question, query in zip(study.game.questions, study.queries, strict=True):
                # All steps at the end, and before it the one that has just come.
                if question.step == now or (now == len(true) and question.step < now):
                    record = answered[question.step - 1]
                    assert record is not None
                    expected = {y: question.likelihood(record, y) for y in question.responses}
                    assert chances(session, source, query) == expected


def interactions(study: Study) -> float:
    """The worst ratio when real sessions decide, answer and refuse, each of one true sequence."""
    start = xp.Transcript(study.domain, xp.BayesianFilter(ratio=study.ratio))
    reached = {told(start): (start, [Fraction(1)] * len(study.game.sequences))}
    worst = Fraction(1)
    for _ in range(study.game.most):
        longer: dict[object, tuple[xp.Transcript, list[Fraction]]] = {}
        for (transcript, before), query in product(reached.values(), study.queries):
            seen: dict[object, tuple[xp.Transcript, list[Fraction]]] = {}
            for place, true in enumerate(study.game.sequences):
                for after, chance in outcomes(transcript, true, query):
                    known = seen.setdefault(told(after), (after, [Fraction(0)] * len(before)))
                    known[1][place] += before[place] * chance
            for _, joint in seen.values():
                assert min(joint) > 0
                worst = max(worst, max(joint) / min(joint))
            seen.pop(told(transcript), None)  # refused
            longer |= seen
        reached = longer
    return float(worst)


def told(transcript: xp.Transcript) -> object:
    """What an analyst knows of a coin, but for the order."""
    return tuple(sorted((each.query.step, each.response) for each in transcript.exchanges))


def outcomes(
    transcript: xp.Transcript, true: Records, query: Query
) -> list[tuple[xp.Transcript, Fraction]]:
    """What may happen when a query is given to a session, with the probability of each."""
    source, found = Fixed(), []
    while source.next < source.limit:
        session = xp.Session.resume(transcript, list(true), source=source)
        try:
            session.ask(query)
        except xp.BudgetExceeded:
            return [(transcript, Fraction(1))]
        found.append((session.transcript, Fraction(1, source.limit)))
        source.next += 1
    return found


def test_real_sessions_keep_the_budget_for_every_pair_of_true_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = coins(0, steps=2, ratio=4, most=3)
    assert interactions(study) == 4
    monkeypatch.setattr(
        Frozen, "next", lambda self, wanted: Frozen(self.domain, wanted, self.changes)
    )
    assert interactions(study) == 8
