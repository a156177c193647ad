"""The rounds of a study, counted beside what was said to those who asked."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger import Round
from support.ledgers import STORES, opened

QUERIES = {text: xp.randomized_response(epsilon=text) for text in ("1/4", "1/2")}
NAMES = ["ann", "bob", 3, "dora", "eve"]


@pytest.mark.parametrize("store", [name for name in STORES if name != "vfs"])
@pytest.mark.parametrize("seed", range(2))
def test_every_request_is_in_one_round(store: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    counts: dict[tuple[str | None, str], Counter[str]] = {}
    with opened(store, tmp_path) as ledger:
        ledger.register(NAMES)
        ledger.name_queries({f"query {text}": query for text, query in QUERIES.items()})
        for number in range(14):
            text = chance.choice(list(QUERIES))
            key = None if chance.random() < 0.3 else f"week {number}"
            count = counts.setdefault((key, f"query {text}"), Counter())
            free = [n for n, held in zip(NAMES, ledger.status().reserved, strict=True) if not held]
            whom: list[Any] = chance.sample(free, min(len(free), 3))
            if chance.random() < 0.7:
                replies = ledger.ask(QUERIES[text], ["no"] * len(whom), whom, key=key)
                count.update("answered" if given else "refused" for given in replies.answered)
                continue
            for made in ledger.reserve(QUERIES[text], whom[:1], key=key):
                outcome = chance.choice(["waiting", "declined"]) if made else "refused"
                count[outcome] += 1
                if made is not None and outcome == "declined":
                    _decline(ledger, json.loads(made.to_json()))
        found = ledger.rounds()
    expected = {
        Round(*name, *(count[each] for each in ("answered", "refused", "declined", "waiting")))
        for name, count in counts.items()
        if count
    }
    assert set(found) == expected
    assert len(found) == len(expected)
    weeks = [int(each.key.split()[1]) for each in found if each.key is not None]
    assert weeks == sorted(weeks)


def _decline(ledger: xp.Ledger, reservation: dict[str, Any]) -> None:
    fields = {name: reservation[name] for name in ("ledger", "subject", "sequence", "key")}
    query = xp.queries.query_from_json(reservation["query"])
    said = {**fields, "query": query.content_id, "declined": True}
    (receipt,) = ledger.receive([json.dumps(said)])
    assert receipt.outcome == "declined"


def test_without_any_request_there_are_no_rounds(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as ledger:
        ledger.register(NAMES)
        assert ledger.rounds() == ()


def test_no_key_is_taken_for_the_turn_of_another(tmp_path: Path) -> None:
    query = QUERIES["1/4"]
    with opened("sqlite", tmp_path) as ledger:
        ledger.register(NAMES)
        for key in ("week#2", "week 2", "week2"):
            ledger.record(query, ["yes"], ["ann"], key=key)
        for _ in range(2):
            ledger.record(query, ["yes", "yes"], ["ann", "ann"], key="week")
        assert ledger.status(["ann"]).exchanges.tolist() == [5]
        assert [(each.key, each.answered) for each in ledger.rounds()][-1] == ("week", 2)
        assert ledger.verify().good
