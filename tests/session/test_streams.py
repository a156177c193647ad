"""Sessions on a box decide nearly every query of a stream, and replays confirm it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from benchmarks.streams import BASE, Outcome, ask_all

import expost as xp
from expost.filters import Decision
from support.box_cases import Ask, Side
from support.query_streams import Stream, some_stream, violations

SMALL = [replace(BASE, norm=2.0), replace(BASE, queries=65)]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [ask_all(stream, seed=1) for stream in SMALL]


@pytest.mark.slow
def test_at_most_two_percent_of_a_stream_stay_undecided(outcomes: list[Outcome]) -> None:
    asked = sum(len(outcome.seconds) for outcome in outcomes)
    assert sum(outcome.undecided for outcome in outcomes) <= 0.02 * asked


@pytest.mark.slow
def test_a_replay_confirms_what_a_session_accepted(outcomes: list[Outcome]) -> None:
    assert xp.replay(outcomes[1].transcript).respected


@pytest.mark.slow
def test_a_session_and_a_fresh_odometer_decide_alike(outcomes: list[Outcome]) -> None:
    transcript = outcomes[1].transcript
    *before, last = transcript.exchanges
    odometer = xp.Odometer(transcript.first(len(before)))
    decision = transcript.required_filter.decide(odometer, last.query)
    assert decision.accepted
    assert decision == transcript.required_filter.decide(transcript.first(len(before)), last.query)


# make hunt MODE=streams continues.
@pytest.mark.parametrize("seed", range(10))
def test_no_adversary_brings_a_stream_over_its_budget(seed: int) -> None:
    assert list(violations(some_stream(random.Random(seed), most=15), seed)) == []


def test_a_filter_that_accepts_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = xp.BayesianFilter.decide

    def lenient(guard: xp.BayesianFilter, asked: object, query: xp.queries.Query) -> Decision:
        return replace(decide(guard, asked, query), accepted=True)

    sides, weights = (Side(-1.0, 1.0),) * 3, (3.0, 0.0, 0.0)
    asks = (Ask("logistic", weights, 0.0, "0.3", high=True),) * 5
    stream = Stream(xp.BayesianFilter(epsilon="0.6"), sides, asks, None)
    assert list(violations(stream, 1)) == []
    monkeypatch.setattr(xp.BayesianFilter, "decide", lenient)
    assert any("the formula exceeds it" in wrong for wrong in violations(stream, 1))
    assert any("a replay refuses exchange 3" in wrong for wrong in violations(stream, 1))
