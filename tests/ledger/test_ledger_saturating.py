"""Saturating queries of a ledger are those of each subject's transcript, and are recorded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.ledger import Ledger, StudyPolicy
from expost.saturation import equal_caps
from expost.saturation.saturated import saturated
from support.ledgers import STORES, opened

DOMAIN = xp.FiniteSet(range(6))
GUARD = xp.BayesianFilter(epsilon=2)
POLICY = StudyPolicy(DOMAIN, GUARD, "a study", "cd" * 16)
PERSON = xp.Attributes(region=["n", "e", "s"], smokes=["no", "yes"])


def alone(ledger: Ledger, subject: Any, question: Any, **options: Any) -> Any:
    """What a subject would be asked by itself; None if there is no room."""
    try:
        return xp.saturating(ledger.transcript(subject), question, **options)
    except xp.InvalidInput as error:
        if "so nothing can be asked" in error.reason:
            return None
        raise


def check(ledger: Ledger, question: Any, caps: list[str], seed: str | None = None) -> list[Any]:
    names: list[Any] = ledger.saturating(question, cap=caps, seeds=seed).tolist()
    for subject, name, cap in zip(ledger.subjects, names, caps, strict=True):
        query = alone(ledger, subject, question, cap=cap, seed=seed)
        assert (name is None) == (query is None)
        if query is not None:
            assert ledger.queries[name] == query
    return names


@pytest.mark.parametrize("store", sorted(STORES))
def test_they_are_those_of_each_transcript(store: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    with opened(store, tmp_path, POLICY) as ledger:
        ledger.register(range(20))
        ledger.ask(xp.randomized_response(epsilon="0.3"), chance.choices(range(6), k=20))
        seen = set[bool]()
        for _ in range(4):
            question = chance.sample(range(6), chance.randint(1, 5))
            caps = [chance.choice(["0.2", "0.9", "1.4", "2"]) for _ in range(20)]
            names = check(ledger, question, caps)
            check(ledger, "value", caps, seed="0a")
            seen.update(name is None for name in names)
            accepted = ledger.decide(names).accepted.tolist()
            assert accepted == [name is not None for name in names]
            replies = ledger.ask(names, chance.choices(range(6), k=20))
            assert replies.refused == ()
            assert replies.answered.tolist() == accepted
            assert list(replies.queries) == names
            assert [each is None for each in replies.responses] == [not each for each in accepted]
        assert seen == {True, False}
        assert ledger.verify().good


def test_every_response_ends_at_the_cap_and_states_share_their_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(*state: Any) -> Any:
        made.append(state)
        return saturated(*state)

    monkeypatch.setattr("expost.panel.saturating.saturated", counted)
    place = tmp_path / "study.db"
    with Ledger.create(place, DOMAIN, filter=GUARD) as ledger:
        ledger.register(range(500))
        values = [number % 6 for number in range(500)]
        questions = "value >= 4", "value < 2", [0, 2, 4]
        for question, cap in zip(questions, equal_caps("2", questions=3), strict=True):
            names = ledger.saturating(question, cap=cap)
            replies = ledger.ask(names, values)
            assert replies.answered.all()
            loss = ledger.status().loss
            assert (loss.upper <= float(cap) * (1 + 1e-12)).all()
            assert (loss.lower >= float(cap) - 2.0**-19).all()
        assert len(made) <= 7
        assert len(ledger.queries) <= 7
        assert ledger.saturating("value < 5", cap="2").tolist() == [None] * 500
    with Ledger(place) as again:  # names are recorded, for every other process
        assert set(names) <= set(again.queries)
        assert again.verify().good


def test_devices_are_sent_their_own_queries(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "study.db", PERSON, filter=GUARD) as ledger:
        ledger.register(["ann", "bob", "eve"])
        people = [{"region": r, "smokes": s} for r, s in (("n", "no"), ("s", "yes"), ("e", "no"))]
        ledger.ask(ledger.saturating('smokes == "yes"', cap=1), people)
        names = ledger.saturating('region == "n"', cap=["2", "2", "1"])
        assert names[2] is None
        one, two, none = ledger.reserve(names)
        assert none is None
        for reservation, name in ((one, names[0]), (two, names[1])):
            assert reservation is not None
            assert reservation.query == ledger.queries[name]
        assert ledger.decide(names).accepted.tolist() == [False] * 3  # reserved, or asked nothing


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "study.db", DOMAIN, filter=GUARD) as ledger:
        ledger.register(range(3))
        before = ledger.tip
        for options, line in (
            ({"cap": 3}, "cap"),
            ({"cap": [1, 2]}, "cap: there are 2 for 3 subjects"),
            ({"cap": 1, "subjects": [0, 7]}, "nobody in the ledger is called so"),
        ):
            with pytest.raises(xp.InvalidInput, match=line):
                ledger.saturating("value < 2", **options)
        assert ledger.tip == before
        names = ledger.saturating("value < 2", cap=1, subjects=[0, 1])
        assert ledger.ask([names[0], None], [1, 1], [0, 1]).answered.tolist() == [True, False]
        with pytest.raises(xp.InvalidInput, match="query: row 2: nothing was asked here"):
            ledger.record([names[0], None], [1, 1], [1, 2])
        assert ledger.ask([None] * 3, [0, 1, 2]).answered.tolist() == [False] * 3
        ledger.end()
        with pytest.raises(xp.InvalidInput, match="the study is closed"):
            ledger.saturating("value < 2", cap=2)


def test_what_is_remembered_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("expost.ledger.saturating._MOST", 1)
    with Ledger.create(tmp_path / "study.db", DOMAIN, filter=GUARD) as ledger:
        ledger.register(range(30))
        for turn in range(3):
            ledger.ask(xp.randomized_response(epsilon="0.2"), np.arange(30) % 6)
            check(ledger, [1, 2], [str(1 + turn / 4)] * 30)
