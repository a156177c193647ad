"""The composition experiment against sessions that know nothing of it, and against points."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from examples.paper.runs import BUDGETS, Run, run, run_transcript
from examples.paper.streams import LINEAR, SMOOTH, STEEP, STREAMS, Stream

import expost as xp

SEED = 5
FEW = replace(SMOOTH, name="few", number=9, epsilon="0.2")


@cache
def of(stream: Stream, index: int = 0) -> Run:
    return run(stream, SEED, index)


STREAMS_TRIED = [LINEAR, STEEP, FEW]


@pytest.mark.parametrize("stream", STREAMS_TRIED, ids=lambda stream: stream.name)
@pytest.mark.parametrize("kind", ["simplified", "bayesian"])
def test_a_filter_accepts_in_a_run_what_it_accepts_in_a_session(stream: Stream, kind: str) -> None:
    result = of(stream)
    guards = {"simplified": xp.SimplifiedFilter, "bayesian": xp.BayesianFilter}
    transcript = run_transcript(stream, SEED, 0, result.responses)
    for place in (4, 9):
        filter_ = guards[kind](BUDGETS[place])
        odometer, count = xp.Odometer(xp.Transcript(stream.box)), 0
        queries = [exchange.query for exchange in transcript.exchanges]
        refused = next(itertools.islice(_queries(stream), len(queries), None))
        for query, response in zip([*queries, refused], [*result.responses, None], strict=True):
            if not filter_.decide(odometer, query).accepted:
                break
            odometer, count = odometer.add(query, response), count + 1
        assert result.traces["ungrouped"].accepted[kind][place] == count


def _queries(stream: Stream) -> itertools.chain[xp.queries.Query]:
    generator = np.random.default_rng([SEED, stream.number, 0])
    generator.integers(2**62)  # which seeds the responses
    return itertools.chain(stream.queries(generator))


@pytest.mark.parametrize("stream", STREAMS_TRIED, ids=lambda stream: stream.name)
def test_no_two_points_contradict_a_loss(stream: Stream) -> None:
    result = of(stream)
    transcript = run_transcript(stream, SEED, 0, result.responses)
    points = np.random.default_rng(1).uniform(-1, 1, (500, stream.dimension))
    points[:250] = np.sign(points[:250])
    logs = np.zeros(len(points))
    trace = result.traces["ungrouped"]
    assert len(trace.losses) == len(transcript) + 1
    for exchange, loss in zip(transcript.exchanges, trace.losses[1:], strict=True):
        theta = exchange.query.tree()
        score = points @ np.array(theta["weights"]) + theta["intercept"]
        share = (score + 1) / 2 if stream.link == "linear" else 1 / (1 + np.exp(-score))
        high = exchange.response == 1
        growth = np.expm1(float(stream.epsilon))
        logs += np.log1p(growth * (share if high else 1 - share))
        assert loss.upper >= logs.max() - logs.min() - 1e-9


@pytest.mark.parametrize("stream", STREAMS_TRIED, ids=lambda stream: stream.name)
def test_groups_are_looser_and_no_worse_than_basic_composition(stream: Stream) -> None:
    result = of(stream)
    groups, complete = result.traces["groups"], result.traces["ungrouped"]
    for loose, tight in zip(groups.losses, complete.losses, strict=False):
        assert loose.upper >= tight.lower
    for kind in ("simplified", "bayesian"):
        for place, budget in enumerate(BUDGETS):
            basic = int(budget / Fraction(stream.epsilon))
            assert basic <= groups.accepted[kind][place]
            assert basic <= complete.accepted[kind][place]
    for trace in (groups, complete):
        for simple, bayesian in zip(*trace.accepted.values(), strict=True):
            assert simple <= bayesian


def test_linear_scores_stay_within_the_range() -> None:
    for query in itertools.islice(LINEAR.queries(np.random.default_rng(2)), 50):
        theta = query.tree()
        assert abs(theta["intercept"]) + np.abs(theta["weights"]).sum() == pytest.approx(1)


def test_no_two_streams_share_their_numbers() -> None:
    assert len({stream.number for stream in STREAMS.values()}) == len(STREAMS)


def test_the_printed_set_up_stops_about_where_basic_composition_does() -> None:
    counts = [of(STEEP, index).traces["ungrouped"].accepted["bayesian"][-1] for index in range(6)]
    assert 10 <= np.median(counts) <= 12
    assert max(counts) < 21
