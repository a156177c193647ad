"""Any bit of a database is flipped: nothing is released that was not recorded, in plain words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger import Damaged, Ledger, LedgerStopped

QUERIES = [xp.randomized_response(epsilon=epsilon) for epsilon in ("1/4", "1/2")]
NAMES = ["ann", "bob", "carl", 4]
STOPPED = (LedgerStopped, xp.InvalidInput)


def given(ledger: Ledger) -> dict[Any, list[tuple[str, Any]]]:
    answers = ledger.answers()
    return {
        name: [
            (each.query.content_id, each.response) for each in answers.transcript(name).exchanges
        ]
        for name in answers.subjects
    }


@pytest.mark.parametrize("seed", range(4))
def test_whatever_bit_is_flipped_nothing_else_is_released(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    place, kept = tmp_path / "s.db", tmp_path / "s.db.checkpoint"
    released: dict[tuple[Any, str], tuple[Any, Any]] = {}
    with Ledger.create(
        place, xp.FiniteSet(["a", "b"]), filter=xp.BayesianFilter(epsilon=2), every=1
    ) as ledger:
        ledger.register(NAMES)
        for turn in range(6):
            query, key = QUERIES[turn % 2], f"key {turn}"
            replies = ledger.ask(query, chance.choices("ab", k=4), key=key)
            for name, response in zip(NAMES, replies.responses, strict=True):
                released[name, key] = query, response
        reserved = ledger.reserve(QUERIES[0], [4], key="device")
        answers = given(ledger)
    content, lines = place.read_bytes(), kept.read_bytes()
    used = [place for place, byte in enumerate(content) if byte]  # most of a page is empty
    stopped = 0
    for _ in range(25):
        bit = 8 * chance.choice(used) + chance.randrange(8)
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        for end in ("-wal", "-shm"):
            Path(f"{place}{end}").unlink(missing_ok=True)
        place.write_bytes(flipped)
        kept.write_bytes(lines)
        try:
            ledger = Ledger(place, every=1)
        except STOPPED:
            stopped += 1
            continue
        try:
            for (name, key), (query, response) in released.items():
                commits = ledger.tip.commits
                (again,) = ledger.ask(query, ["a"], [name], key=key).responses
                # Whose key is lost is asked anew, and charged for it; that is recorded then.
                assert again in (response, None) or ledger.tip.commits > commits, bit
            assert ledger.reserve(QUERIES[0], [4], key="device") == reserved, bit
            found = given(ledger)
            assert all(found[name][: len(own)] == own for name, own in answers.items()), bit
        except STOPPED:
            stopped += 1
        finally:
            ledger._core.backend.close()
    assert stopped


def test_the_row_of_one_of_many_heads_has_another_number(tmp_path: Path) -> None:
    """Neighbours are read together, and the row is where it should be; but it is not this one."""
    place, names = tmp_path / "s.db", range(60)
    with Ledger.create(
        place, xp.FiniteSet(["a", "b"]), filter=xp.BayesianFilter(epsilon=2), every=1
    ) as ledger:
        ledger.register(names)
        for turn in range(3):
            ledger.ask(QUERIES[0], ["a"] * 60, key=f"{turn}")
        (head,) = ledger._core.backend.heads([16])
    content = bytearray(place.read_bytes())
    start = content.find(head.digest)
    # A row has its size, its number, and a head of eight or nine bytes before the first column.
    number = next(at for at in range(start - 9, start - 20, -1) if content[at] == 16)
    content[number] ^= 2
    place.write_bytes(content)
    with Ledger(place, every=1) as ledger:
        commits = ledger.tip.commits
        with pytest.raises(Damaged):
            ledger.ask(QUERIES[0], ["a"] * 60, key="new")
        assert ledger.tip.commits == commits


def test_rows_that_contradict_each_other_are_damaged_and_not_tried_for_ever(tmp_path: Path) -> None:
    """A name that nobody finds, and that is there when somebody is to be called so."""
    with Ledger.create(
        tmp_path / "s.db", xp.FiniteSet(["a", "b"]), filter=xp.BayesianFilter(epsilon=2)
    ) as ledger:
        ledger.register(NAMES)
        backend: Any = ledger._core.backend
        ledger._core.people = type(ledger._core.people)()
        backend.numbers = lambda names: [0] * len(names)
        with pytest.raises(Damaged, match="contradicts itself: nothing can be added"):
            ledger.register(["ann"])
