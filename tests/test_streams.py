"""Sessions on a box decide nearly every query of a stream, and replays confirm it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.streams import BASE, Outcome, ask_all

import expost as xp

SMALL = [replace(BASE, norm=2.0), replace(BASE, queries=65)]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [ask_all(stream, seed) for stream in SMALL for seed in (1, 2)]


def test_at_most_two_percent_of_a_stream_stay_undecided(outcomes: list[Outcome]) -> None:
    asked = sum(len(outcome.seconds) for outcome in outcomes)
    assert sum(outcome.undecided for outcome in outcomes) <= 0.02 * asked


def test_a_replay_confirms_what_a_session_accepted(outcomes: list[Outcome]) -> None:
    assert xp.replay(outcomes[2].transcript).kept


def test_a_session_and_a_fresh_odometer_decide_alike(outcomes: list[Outcome]) -> None:
    transcript = outcomes[2].transcript
    *before, last = transcript.exchanges
    odometer = xp.Odometer(transcript.first(len(before)))
    decision = transcript.guard.decide(odometer, last.query)
    assert decision.accepted
    assert decision == transcript.guard.decide(transcript.first(len(before)), last.query)
