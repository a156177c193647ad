"""Who answered lately is asked again without being looked up, and nothing is different for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import expost as xp
from expost.errors import ExpostError, InvalidInput
from expost.ledger import Broken, Ledger, Reservation, StudyPolicy
from expost.ledger.backend import Looked
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.digests import link, next_head, next_root
from expost.ledger.recent import Recent
from expost.ledger.records import Answer, Change, Head, Tip
from expost.queries import Query
from support.ledgers import SHARED, STORES, opened

QUERIES = [xp.randomized_response(epsilon=epsilon) for epsilon in ("0.25", "0.5")]
LARGE = xp.randomized_response(epsilon=8)
NAMES = ["ann", "bob", "eve"]
STUDY = StudyPolicy(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=3), "", "cd" * 16)


class Fixed:
    """Draws the same at any time, so that it does not matter how often something is drawn."""

    def below(self, limit: int) -> int:
        return limit // 3


class Watched(Recent):
    """Tells how often it knew everybody."""

    known = 0

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked | None:
        found = super().look(asked)
        type(self).known += found is not None
        return found


class Forgetful(Recent):
    """Knows nobody."""

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked | None:
        return None


Pending = list[Reservation]
"""What devices have not answered so far."""


def asks(ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]) -> Any:
    return ledger.ask(query, [*given.values()], [*given], key=key).responses


def records(ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]) -> Any:
    return ledger.record(query, [*given.values()], [*given], key=key).tolist()


def reserves(
    ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]
) -> Any:
    found = ledger.reserve(query, [*given], key=key)
    pending += [each for each in found if each is not None]
    return found


def receives(
    ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]
) -> Any:
    """All that is pending, which is declined or answered."""
    messages = []
    for each in pending:
        tree = {"ledger": each.ledger, "subject": each.subject, "sequence": each.sequence}
        tree |= {"key": each.key, "query": each.query.content_id}
        said = link(each.query.content_id, "yes")
        head = next_head(bytes.fromhex(each.previous), said, each.sequence)
        answer = {"response": "yes", "head": head.hex()}
        messages.append(json.dumps(tree | (answer if "ann" in given else {"declined": True})))
    pending.clear()
    return ledger.receive(messages)


def registers(
    ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]
) -> Any:
    return ledger.register([*given, key])


def names(ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]) -> Any:
    return ledger.name_queries({key: query})


def ends(ledger: Ledger, pending: Pending, key: str, query: Query, given: dict[str, str]) -> Any:
    return ledger.end()


VERBS = {asks: 50, records: 1, reserves: 3, receives: 5, registers: 1, names: 1, ends: 0.4}


def told(action: Callable[[], Any]) -> Any:
    """What comes of it, as one can see it."""
    try:
        return action()
    except ExpostError as error:
        return str(error)


def drawn(seed: int, steps: int = 60) -> Iterator[tuple[int, Callable[..., Any], Any]]:
    """What workers do: mostly one of them asks, then the other; some keys are used again."""
    chance, keys, own = random.Random(seed), [f"{seed}"], 0
    for step in range(steps):
        if chance.random() < 0.2:
            own = 1 - own
        keys.append(chance.choice(keys) if chance.random() < 0.1 else f"step {step}")
        (verb,) = chance.choices([*VERBS], [*VERBS.values()])
        subjects = chance.sample(NAMES, chance.choice([1, 1, 2, 3]))
        given = {name: chance.choice(["no", "yes"]) for name in subjects}
        yield own, verb, (keys[-1], chance.choice(QUERIES), given)


def played(store: str, folder: Path, memory: type[Recent], seed: int) -> tuple[Any, ...]:
    """All that two workers see of one store, and where it is in the end."""
    folder.mkdir()
    with ExitStack() as stack:
        stack.enter_context(patch("expost.ledger.core.Recent", memory))
        ledgers = two_workers(store, folder, stack)
        pending: Pending = []
        seen = [
            told(partial(verb, ledgers[own], pending, *given)) for own, verb, given in drawn(seed)
        ]
        assert ledgers[0].verify().good
        return seen, ledgers[1].tip, ledgers[1].status().exchanges.tolist()


def two_workers(store: str, folder: Path, stack: ExitStack) -> list[Ledger]:
    """Of one study, in which some are registered."""
    doors, place = stack.enter_context(STORES[store](folder, STUDY))
    first = doors()
    Checkpoint(place, STUDY.content_id, 1).write(first.tip())
    ledgers = [
        stack.enter_context(Ledger.on(door, place, every=1, source=Fixed()))
        for door in (first, doors())
    ]
    ledgers[0].register(NAMES)
    return ledgers


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("store", sorted(SHARED))
def test_nobody_is_asked_in_a_closed_study_whose_device_has_answered_since(
    store: str, who: int, tmp_path: Path
) -> None:
    """Its answer is taken in, whoever of two workers has closed the study."""
    with ExitStack() as stack:
        ledgers = two_workers(store, tmp_path, stack)
        pending: Pending = []
        for key in ("k", "l"):
            reserves(ledgers[0], pending, key, QUERIES[0], {NAMES[len(pending)]: "no"})
        ledgers[who].end()
        for each in list(pending):
            (receipt,) = receives(ledgers[0], [each], "", QUERIES[0], {"ann": "no"})
            assert receipt.outcome == "recorded"
        for name in NAMES:
            with pytest.raises(InvalidInput, match="the study is closed"):
                ledgers[0].ask(QUERIES[0], ["no"], [name])


@pytest.mark.parametrize("store", sorted(SHARED))
def test_two_workers_see_what_they_would_see_if_everybody_were_looked_up(
    store: str, tmp_path: Path
) -> None:
    """To the root of all commits, whatever the other one did in between."""
    Watched.known, seeds = 0, 50 if store == "memory" else 12
    for seed in range(seeds):
        found = played(store, tmp_path / f"{seed}", Watched, seed)
        assert found == played(store, tmp_path / f"{seed} looked up", Forgetful, seed)
    assert Watched.known > 3 * seeds


@pytest.mark.parametrize("lines", [[b"other\n"], []])
def test_all_are_forgotten_once_somebody_else_has_committed(lines: list[bytes]) -> None:
    """Also where there are as many commits as there would be, as in a copy that was restored."""
    head = Head(1, b"h" * 32, b"t" * 8, False, "", 1)
    own = Change(answers=[Answer("k", 1, 1, 1, head, head)])
    first = Tip(1, b"r" * 32)
    second = Tip(2, next_root(first.root, [b"own\n"]))
    recent = Recent()
    recent.note(own, [b"first\n"], first)
    assert recent.look([("l", [1])]) is None
    recent.note(own, [b"own\n"], second)
    known = recent.look([("l", [1]), ("m", [])])
    assert known is not None
    assert [list(each) for each in known.heads] == [[head], []]
    assert recent.look([("l", [1, 2])]) is None
    recent.note(own, [b"own\n"], Tip(3, next_root(second.root, lines)))
    assert recent.look([("l", [1])]) is None


@pytest.mark.parametrize("store", STORES)
def test_nobody_is_looked_up_who_has_just_answered(store: str, tmp_path: Path) -> None:
    with opened(store, tmp_path) as ledger:
        ledger.register(NAMES)
        ledger.ask(QUERIES[0], ["no"], ["ann"])
        looked = patch.object(
            ledger._core.backend, "look", side_effect=AssertionError("somebody was looked up")
        )
        with looked:
            ledger.ask(QUERIES[0], ["no"], ["ann"])
            assert ledger.ask(QUERIES[0], ["no"], ["ann"], key="k").answered.all()
            with pytest.raises(AssertionError):
                ledger.ask(QUERIES[0], ["no"], ["bob"])


@pytest.mark.parametrize("store", STORES)
def test_who_repeats_a_request_writes_nothing(store: str, tmp_path: Path) -> None:
    """So it is told what became of it while others write, or when the disk is full."""
    with opened(store, tmp_path) as ledger:
        ledger.register(NAMES)
        due = {
            key: ledger.ask(query, ["no"], ["ann"], key=key).responses
            for key, query in {"k": QUERIES[0], "l": QUERIES[0], "refused": LARGE}.items()
        }
        assert due["refused"] == (None,)
        full = patch.object(ledger._core.backend, "append", side_effect=Broken("the disk is full"))
        with full:
            for key, responses in due.items():
                query = LARGE if key == "refused" else QUERIES[0]
                assert ledger.ask(query, ["no"], ["ann"], key=key).responses == responses
            with pytest.raises(Broken):
                ledger.ask(QUERIES[0], ["no"], ["ann"], key="m")


@pytest.mark.parametrize("store", STORES)
def test_who_repeats_what_was_asked_long_ago_does_not_wait_for_who_writes(
    store: str, tmp_path: Path
) -> None:
    """Nobody remembers that key, so it is tried, and looked up where that cannot be recorded."""
    with opened(store, tmp_path) as ledger:
        ledger.register(NAMES)
        due = ledger.ask(QUERIES[0], ["no"], ["ann"], key="k").responses
        ledger._core._recent._keys.clear()
        ledger.ask(QUERIES[0], ["no"], ["ann"], key="l")
        busy = InvalidInput("another process holds the ledger and does not let go")
        with patch.object(ledger._core.backend, "append", side_effect=busy) as held:
            assert ledger.ask(QUERIES[0], ["no"], ["ann"], key="k").responses == due
            assert held.call_count == 1
            with pytest.raises(InvalidInput, match="does not let go"):
                ledger.ask(QUERIES[0], ["no"], ["ann"], key="m")
        assert ledger.ask(QUERIES[0], ["no"], ["ann"], key="m").answered.all()
        assert ledger.verify().good
