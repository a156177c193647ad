"""Saturating queries of a panel are those of each subject's transcript."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.queries import Query
from expost.sampling import InsecureSource
from expost.saturation import equal_caps
from support import panel_cases


def alone(panel: xp.Panel, subject: Any, question: Any, **options: Any) -> Query | None:
    """What a subject would be asked by itself; None if there is no room."""
    try:
        return xp.saturating(panel.transcript(subject), question, **options)
    except xp.InvalidInput as error:
        if "so nothing can be asked" in error.reason or "rule some values out" in error.reason:
            return None
        raise


def check(panel: xp.Panel, question: Any, **options: Any) -> None:
    """A column of caps or seeds has an entry for each subject."""
    ids = panel.saturating(question, **options)
    seeds = options.pop("seeds", None)
    for place, subject in enumerate(panel.subjects):
        cap = options["cap"]
        own = {
            "cap": cap[place] if isinstance(cap, list) else cap,
            "seed": seeds[place] if isinstance(seeds, list) else seeds,
        }
        query = alone(panel, subject, question, **own)
        assert (ids[place] is None) == (query is None)
        if query is not None:
            assert panel.queries[ids[place]] == query


def test_after_random_answers_they_are_those_of_each_transcript() -> None:
    generator = random.Random(5)
    domain = xp.FiniteSet(range(6))
    families = panel_cases.families(6, "0.3")
    for seed in range(6):
        panel = xp.Panel(
            domain,
            filter=xp.BayesianFilter(epsilon=4),
            subjects=range(60),
            queries={str(number): query for number, query in enumerate(families)},
            source=InsecureSource(seed),
        )
        for turn in range(4):
            values = generator.choices(range(6), k=60)
            if turn % 2:
                question = generator.sample(range(6), generator.randint(1, 5))
                caps = [generator.choice(["0.2", "0.9", "1.7", "3"]) for _ in values]
                check(panel, question, cap=caps)
                seeds = [generator.choice(["0a", "0b"]) for _ in values]
                check(panel, "value", cap=Fraction(turn, 1), seeds=seeds)
                panel.ask(panel.saturating(question, cap=caps), values)
            else:
                panel.ask([str(generator.randrange(len(families))) for _ in values], values)
    assert any(key is None for key in panel.saturating([1], cap="0.9"))


PERSON = xp.Attributes(
    region=["n", "e", "s"], smokes=xp.changing(["no", "yes"], times=1), age=xp.integers(1, 9)
)


def test_on_records_too_and_at_a_step() -> None:
    generator = random.Random(6)
    panel = xp.Panel(
        PERSON,
        filter=xp.BayesianFilter(epsilon=3),
        subjects=[f"s{number}" for number in range(40)],
        source=InsecureSource(2),
    )
    people = [
        [
            {
                "region": generator.choice("nes"),
                "smokes": generator.choice(["no", "yes"]),
                "age": generator.randint(1, 9),
            }
        ]
        for _ in range(40)
    ]
    asked = ["age >= 4", 'smokes at 1 == "yes" and age < 7', "region", 'region == "e" or age > 5']
    for question, cap in zip(asked, equal_caps(3, questions=4), strict=True):
        seeds = [f"{number % 3:02x}" for number in range(40)]
        check(panel, question, cap=cap, seeds=seeds)
        replies = panel.ask(panel.saturating(question, cap=cap, seeds=seeds), people)
        assert replies.answered.all()
        assert panel.loss.upper == pytest.approx(float(cap), abs=1e-6)


def test_who_has_no_room_is_asked_nothing_and_that_is_no_refusal() -> None:
    panel = xp.Panel(
        xp.FiniteSet(range(4)), filter=xp.BayesianFilter(epsilon=2), subjects=["a", "b", "c"]
    )
    panel.ask(xp.randomized_response(epsilon="1"), [1], ["b"])
    ids = panel.saturating([1, 2], cap=1)
    assert [key is None for key in ids] == [False, True, False]
    decisions = panel.decide(ids)
    assert decisions.accepted.tolist() == [True, False, True]
    assert decisions.loss_at_worst.upper.round(6).tolist() == [1, 1, 1]
    replies = panel.ask(ids, [1, 2, 3])
    assert replies.answered.tolist() == [True, False, True]
    assert replies.queries[1] is None
    assert replies.responses[1] is None
    assert replies.refused == ()
    assert len(replies.columns()["subject"]) == 2
    assert panel.exchanges.tolist() == [1, 1, 1]
    assert panel.answers().unanswered == {"refused": frozenset()}
    with pytest.raises(xp.InvalidInput, match="query: row 2: has a response but no query"):
        panel.record(ids, [0, 0, 0])
    assert panel.exchanges.tolist() == [1, 1, 1]


def test_a_query_is_made_once_for_all_who_are_in_one_state() -> None:
    generator = random.Random(4)
    panel = xp.Panel(
        xp.FiniteSet(range(10)),
        filter=xp.BayesianFilter(epsilon=2),
        subjects=range(1500),
        source=InsecureSource(7),
    )
    values = np.array(generator.choices(range(10), k=1500))
    for cap in equal_caps(2, questions=4):
        ids = panel.saturating(generator.sample(range(10), 3), cap=cap)
        assert panel.ask(ids, values).answered.all()
    assert len(panel.queries) < 25


def test_ties_are_settled_for_everybody_with_the_same_answers() -> None:
    """Losses that doubles cannot tell from the budget, half of them above it."""
    panel = xp.Panel(
        xp.FiniteSet([0, 1]), filter=xp.BayesianFilter(ratio=2), subjects=["a", "b", "c", "d"]
    )
    panel.saturating([0], cap="0.2")
    tiny = Fraction(1, 10**25)
    half = Fraction(1, 2)
    nearly = xp.channel([[half + tiny, half - tiny], [half, half]])
    assert panel.record(nearly, [1, 0, 0, 1]).all()
    twice = xp.channel([["1/2", "1/2"], ["1/4", "3/4"]])
    assert panel.decide(twice).accepted.tolist() == [True, False, False, True]


def test_devices_draw_themselves_what_they_are_asked() -> None:
    panel = xp.Panel(
        xp.FiniteSet(range(5)), filter=xp.BayesianFilter(epsilon=2), subjects=["a", "b"]
    )
    for cap in (1, 2):
        ids = panel.saturating([0, 1], cap=cap, subjects=["b", "a"])
        assert panel.record(ids, [0, 1], ["b", "a"]).all()
    assert panel.loss.upper.round(6).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cap": 3}, "cap: 3 is above the budget of 2; a cap is at most 2"),
        ({"cap": [1, 3]}, "row 2: cap: 3 is above the budget of 2"),
        ({"cap": [1]}, "cap: got 1 for 2 subjects"),
        ({"cap": 1, "subjects": ["x"]}, "subjects: row 1: no subject"),
        ({"cap": 1, "question": "value"}, "question: got 5 possible answers without"),
        ({"cap": 1, "question": "value", "seeds": ["0a", "0"]}, "seed: must be 1 to 64 bytes"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(options: dict[str, Any], message: str) -> None:
    panel = xp.Panel(
        xp.FiniteSet(range(5)), filter=xp.BayesianFilter(epsilon=2), subjects=["a", "b"]
    )
    question = options.pop("question", [1])
    with pytest.raises(xp.InvalidInput, match=message):
        panel.saturating(question, **options)
