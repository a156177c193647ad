"""Values that change over many steps: what an exchange costs, and where it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from unittest import mock

import pytest

import expost as xp
from expost.loss._sweeps import Sweep
from expost.proof import certificate, verify
from support.stack_frames import in_package

DOMAIN = xp.Attributes({"a": xp.changing(range(8), times=4)})
QUERY = xp.randomized_response(epsilon="0.1")


def asked(steps: int) -> xp.Transcript:
    transcript = xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=5))
    for step in range(1, steps + 1):
        transcript = transcript.add(QUERY.about("a", at=step), step % 8)
    return transcript


def calls(work: Callable[[], object]) -> int:
    """How many functions of the package are called; a generator counts once for every item."""
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and in_package(frame.f_code.co_filename)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def test_one_more_step_does_not_go_through_all_before_it() -> None:
    costs = []
    for steps in (60, 240):
        odometer, query = xp.Odometer(asked(steps)), QUERY.about("a", at=steps + 1)
        costs.append(calls(partial(odometer.add, query, 1)))
    assert costs[1] < 2 * costs[0]


def test_too_many_steps_are_refused_before_any_work() -> None:
    transcript = asked(600)
    worked_out = AssertionError("worked out")
    with (
        mock.patch.object(Sweep, "onto", side_effect=worked_out),
        mock.patch.object(verify, "read_transcript", side_effect=worked_out),
    ):
        for use in (xp.replay, xp.Odometer, certificate):
            with pytest.raises(xp.InvalidInput, match="600 exchanges about 600 steps of a"):
                use(transcript)


@pytest.mark.parametrize("budget", [5, 100])
def test_an_exchange_that_could_not_be_read_again_is_not_decided(budget: int) -> None:
    filter_, odometer = xp.BayesianFilter(epsilon=budget), xp.Odometer(asked(537))
    with pytest.raises(xp.InvalidInput, match="expected at most 288,461 exchanges times steps"):
        filter_.decide(odometer, QUERY.about("a", at=538))


def test_every_step_counts_as_fifty_exchanges_of_an_exact_comparison() -> None:
    assert xp.Odometer(asked(3)).distinct_exchanges == 3 + 3 * 50
