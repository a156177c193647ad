"""Decisions over a box, against an oracle that looks for points and knows nothing of searches."""

from __future__ import annotations

import random
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.filters._filter import Filter
from support.box_cases import Case, some_ask, some_case

FILTERS: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]


def reached(case: Case, seed: int) -> float:
    """A loss that two points of the box prove."""
    highest, lowest = case.extremes(np.random.default_rng(seed), 200)
    with mpmath.workdps(50):
        return float(case.sampled_loss(highest, lowest))


@pytest.mark.parametrize("seed", range(60))
def test_an_accepted_query_keeps_the_budget_whatever_the_response(seed: int) -> None:
    generator = random.Random(seed)
    case = some_case(generator, coordinates=3, queries=6, noise=False)
    ask = some_ask(generator, case.sides, 2.0, generator.choice(["0.1", "1", "2"]), noise=False)
    worst = 0.0
    for high in (False, True):
        longer = Case(case.sides, (*case.asks, replace(ask, high=high)))
        worst = max(worst, reached(longer, seed))
    odometer = xp.Odometer(case.transcript)
    for factor in (0.3, 0.9, 0.99, 1.01, 1.2):
        budget = repr(max(1e-3, factor * worst))
        for kind in FILTERS:
            decision = kind(epsilon=budget).decide(odometer, ask.query)
            if decision.accepted:
                assert worst <= float(budget) * (1 + 1e-12)
                assert not decision.undecided
            elif kind is xp.BayesianFilter and not decision.undecided:
                assert decision.loss_at_worst.lower > float(budget) * (1 - 1e-12)
            assert decision.loss_at_worst.upper >= worst * (1 - 1e-12) or decision.accepted
    # Nothing lies between what two points reach and what is certified but the gap.
    assert xp.BayesianFilter(epsilon=repr(1.05 * worst + 0.02)).decide(odometer, ask.query).accepted


def test_three_queries_of_a_tenth_fit_three_tenths_exactly() -> None:
    query = xp.linear([1], epsilon="0.1")
    for kind in FILTERS:
        filter_ = kind(epsilon="0.3")
        odometer = xp.Odometer(xp.Transcript(xp.Box([(0, 1)])))
        for _ in range(3):
            assert filter_.decide(odometer, query).accepted
            odometer = odometer.add(query, 1)
        assert not filter_.decide(odometer, query).accepted


def steep(count: int) -> xp.Transcript:
    generator = np.random.default_rng(4)
    transcript = xp.Transcript(xp.Box([(-1, 1)] * 6))
    for i in range(count):
        weights = generator.uniform(-10, 10, 6).tolist()
        transcript = transcript.add(xp.logistic(weights, epsilon="0.1"), i % 2)
    return transcript


def test_a_decision_that_is_not_reached_within_the_nodes_is_refused_and_says_so() -> None:
    transcript, query = steep(25), xp.logistic([1] * 6, epsilon="0.1")
    loss = xp.realized_loss(transcript, gap=0.05)
    filter_ = xp.BayesianFilter(epsilon=repr(loss.upper + 0.1))
    hurried = xp.Odometer(transcript, effort=xp.solver.Effort(nodes=1))
    decision = filter_.decide(hurried, query)
    assert (decision.accepted, decision.undecided) == (False, True)
    assert decision.loss_at_worst.lower < loss.upper + 0.1 < decision.loss_at_worst.upper
    patient = xp.Odometer(transcript, effort=xp.solver.Effort(nodes=10_000))
    assert filter_.decide(patient, query).accepted


def test_a_decision_is_the_same_for_a_fresh_odometer_and_for_one_that_grew() -> None:
    transcript, query = steep(8), xp.logistic([3] * 6, epsilon="0.1")
    grown = xp.Odometer(xp.Transcript(transcript.domain))
    filter_ = xp.BayesianFilter(epsilon="0.8")
    for exchange in transcript.exchanges:
        filter_.decide(grown, query)
        _ = grown.loss
        grown = grown.add(exchange.query, exchange.response)
    assert filter_.decide(grown, query) == filter_.decide(xp.Odometer(transcript), query)
    assert grown.loss == xp.Odometer(transcript).loss == xp.realized_loss(transcript)
    assert grown.history[-1] == grown.loss


@pytest.mark.parametrize("kind", FILTERS)
def test_the_largest_epsilon_is_accepted_and_a_little_more_is_not(kind: type[Filter]) -> None:
    transcript = steep(6)
    query = xp.logistic([2, -1, 0, 3, 1, 1], epsilon="5")
    odometer, filter_ = xp.Odometer(transcript), kind(epsilon="0.9")
    largest = filter_.decide(odometer, query).largest_epsilon
    assert largest is not None
    assert filter_.decide(odometer, xp.logistic([2, -1, 0, 3, 1, 1], epsilon=largest)).accepted
    more = filter_.decide(odometer, xp.logistic([2, -1, 0, 3, 1, 1], epsilon=float(largest) * 1.03))
    assert not more.accepted


def test_the_largest_epsilon_of_a_large_budget_is_found() -> None:
    odometer = xp.Odometer(xp.Transcript(xp.Box([(0, 1)])))
    decision = xp.BayesianFilter(epsilon=1000).decide(odometer, xp.linear([1], epsilon=1))
    assert decision.largest_epsilon is not None
    assert decision.largest_epsilon > 100


def test_a_session_on_a_box_asks_until_the_budget_is_used() -> None:
    person = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    query = xp.logistic({"age": -0.06, "sex": -1.5}, intercept=4, epsilon="0.5")
    filter_ = xp.BayesianFilter(epsilon="2")
    session = xp.Session(
        person, {"age": 34, "sex": 0}, filter=filter_, source=xp.sampling.InsecureSource(2)
    )
    while session.decide(query).accepted:
        session.ask(query)
    with pytest.raises(xp.BudgetExceeded) as refusal:
        session.ask(query)
    assert len(session.transcript) >= 4
    assert session.loss.upper <= 2
    assert "34" not in str(refusal.value)
    assert xp.Session.resume(session.transcript, {"age": 34, "sex": 0}).loss == session.loss
