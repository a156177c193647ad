"""How many will answer: against sessions that do it."""

from __future__ import annotations

import numpy as np
import pytest

import expost as xp
from expost.designs import forecast

DOMAIN = xp.FiniteSet(range(4))
FIRST = xp.randomized_response(epsilon="0.5")
NEXT = xp.perturbation([0, 0, 1, 1], range=(0, 1), epsilon="0.4")
GUARD = xp.BayesianFilter(epsilon="1")


def past(subjects: int, seed: int) -> tuple[xp.Answers, list[int]]:
    values = np.random.default_rng(seed).choice(4, size=subjects, p=[0.6, 0.2, 0.1, 0.1]).tolist()
    panel = xp.Panel(
        DOMAIN, filter=GUARD, subjects=range(subjects), source=xp.sampling.InsecureSource(seed)
    )
    panel.ask(FIRST, values)
    return panel.answers(), values


def test_who_answers_now_is_what_each_filter_decides() -> None:
    answers, _ = past(200, 3)
    prediction = forecast(answers, NEXT, filter=GUARD)
    decided = [GUARD.decide(answers.transcript(name), NEXT).accepted for name in answers.subjects]
    assert prediction.now == sum(decided)
    assert prediction.answering == (prediction.now,)


def test_further_rounds_are_what_really_comes_out() -> None:
    answers, values = past(4000, 5)
    prediction = forecast(answers, NEXT, filter=GUARD, rounds=5, seed=1)
    panel = xp.Panel(
        DOMAIN, filter=GUARD, subjects=range(4000), source=xp.sampling.InsecureSource(5)
    )
    panel.ask(FIRST, values)
    for predicted in prediction.answering:
        realized = int(panel.ask(NEXT, values).answered.sum())
        assert predicted == pytest.approx(realized, abs=150)
    assert prediction.answering[0] == prediction.now
    assert prediction.answering[-1] < prediction.answering[0]


def test_records_and_boxes_are_forecast_too() -> None:
    person = xp.Attributes(region=["n", "s"], smokes=["no", "yes"])
    query = xp.randomized_response(epsilon="0.5").about("smokes")
    table = {"subject": [1, 2], "query": ["q", "q"], "response": ["no", "yes"]}
    prediction = forecast(xp.Answers(person, {"q": query}, table), query, filter=GUARD, rounds=3)
    assert prediction.now == 2
    box = xp.Box(age=(0, 100))
    older = xp.linear({"age": 1}, epsilon="0.5")
    table = {"subject": [1, 2], "query": ["q", "q"], "response": [0, 100]}
    answers = xp.Answers(box, {"q": older}, table)
    prediction = forecast(answers, older, filter=GUARD, rounds=3, population=[[20], [80]])
    assert prediction.now == 2
    assert prediction.answering[1] <= 2


def test_what_cannot_be_forecast_is_said() -> None:
    answers, _ = past(10, 1)
    plain = xp.Answers(DOMAIN, {"q": FIRST}, {"subject": [1], "query": ["q"], "response": [0]})
    with pytest.raises(xp.InvalidInput, match="filter: the answers name none"):
        forecast(plain, NEXT)
    with pytest.raises(xp.InvalidInput, match="rounds: must be at least 1"):
        forecast(answers, NEXT, filter=GUARD, rounds=0)
    with pytest.raises(xp.InvalidInput, match="seed: must be at least 0"):
        forecast(answers, NEXT, filter=GUARD, rounds=2, seed=-1)
    person = xp.Attributes(smokes=xp.changing(["no", "yes"]))
    query = FIRST.about("smokes", at=1)
    table = {"subject": [1], "query": ["q"], "response": ["no"]}
    answers = xp.Answers(person, {"q": query}, table)
    assert forecast(answers, query, filter=GUARD).now == 1
    with pytest.raises(xp.InvalidInput, match="rounds: only 1 round can be forecast if values"):
        forecast(answers, query, filter=GUARD, rounds=2)


def test_values_are_drawn_from_what_is_likely_of_the_group() -> None:
    """Half of everybody says yes to a question on which they are divided, and that cancels."""
    divided = xp.perturbation([0, 0.5, 0.5, 1], range=(0, 1), epsilon="0.5")
    guard, values = xp.BayesianFilter(epsilon=2), [1, 2] * 1500
    panel = xp.Panel(
        DOMAIN, filter=guard, subjects=range(3000), source=xp.sampling.InsecureSource(2)
    )
    panel.ask(xp.randomized_response(epsilon=1), values)
    prediction = forecast(panel.answers(), divided, filter=guard, rounds=6)
    realized = [int(panel.ask(divided, values).answered.sum()) for _ in range(6)]
    assert np.abs(np.array(prediction.answering) - realized).max() < 60
