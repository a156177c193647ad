"""Replays: every decision respects the budget, and an honest transcript never exceeds it."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import expost as xp
from expost.filters._filter import Filter
from expost.knowledge import confidence_change
from expost.report._explanation import explain
from support import integer_boxes, random_cases

Run = Callable[..., tuple[int, str, str]]

TWO = xp.FiniteSet(["y", "n"])
FLIP = xp.randomized_response(epsilon=1)
BOX, POINT = xp.Box([(-1, 1)] * 3), [0.5, 0.0, -0.5]
PURE: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]


def answered(responses: str, filter_: Filter | None) -> xp.Transcript:
    transcript = xp.Transcript(TWO, filter_)
    for response in responses:
        transcript = transcript.add(FLIP, response)
    return transcript


@pytest.mark.parametrize("kind", PURE)
def test_a_lucky_end_does_not_make_up_for_what_the_filter_refuses(kind: type[Filter]) -> None:
    found = xp.replay(answered("yyynnn", kind(epsilon=1)))
    assert (found.respected, found.first_refused) == (False, 2)
    assert found.loss.upper < 1e-9
    assert 2.99 < found.peak.lower <= found.peak.upper < 3.01


def test_without_a_filter_there_is_a_peak_and_no_verdict() -> None:
    found = xp.replay(answered("yyn", None))
    assert (found.respected, found.first_refused, found.filter) == (None, None, None)
    assert found.peak.upper == pytest.approx(2)
    assert found.loss.upper == pytest.approx(1)


def test_an_empty_transcript_is_respected() -> None:
    found = xp.replay(answered("", xp.BayesianFilter(epsilon=1)))
    assert (found.respected, found.peak) == (True, xp.numbers.Enclosure(0.0, 0.0))


def test_a_query_with_a_delta_is_refused_by_a_pure_filter() -> None:
    leaky = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]], delta="1e-6")
    transcript = xp.Transcript(TWO, xp.BayesianFilter(epsilon=1)).add(leaky, 0)
    assert xp.replay(transcript).first_refused == 1


@pytest.mark.parametrize("end", list(itertools.product("yn", repeat=3)))
def test_the_order_decides(end: tuple[str, ...]) -> None:
    found = xp.replay(answered("".join(end), xp.BayesianFilter(epsilon=2)))
    losses = [abs("".join(end[:i]).count("y") * 2 - i) for i in range(3)]
    refused = [i + 1 for i, loss in enumerate(losses) if loss + 1 > 2]
    assert found.respected is not bool(refused)
    assert found.first_refused == (refused[0] if refused else None)


@settings(max_examples=40)
@given(random_cases.transcripts())
def test_a_replay_is_every_decision_on_its_prefix(transcript: xp.Transcript) -> None:
    domain = transcript.domain
    spent = xp.Odometer(transcript).spent.upper
    for kind in PURE:
        for share in (0.4, 0.9):
            again = xp.Transcript(domain, kind(epsilon=repr(max(1e-6, share * spent))))
            for exchange in transcript.exchanges:
                again = again.add(exchange.query, exchange.response)
            found = xp.replay(again)
            assert (found.respected, found.first_refused) == integer_boxes.respected_exactly(again)
            assert found.loss.upper <= found.peak.upper


@pytest.mark.parametrize("seed", range(40))
def test_what_is_certain_on_a_box_of_integers_is_true_of_its_points(seed: int) -> None:
    case = integer_boxes.random_decision_case(random.Random(seed))
    assert list(integer_boxes.complaints(case)) == []


@cache
def near_the_limit() -> xp.Transcript:
    """What a session answered until its loss was closer to the budget than a report looks."""
    generator = np.random.default_rng(5)
    filter_ = xp.BayesianFilter(epsilon="0.5")
    session = xp.Session(BOX, POINT, filter=filter_, source=xp.sampling.InsecureSource(1))
    for epsilon in ("0.2", "0.1"):
        with suppress(xp.BudgetExceeded):
            while True:
                weights = generator.uniform(-1, 1, 3).tolist()
                session.ask(xp.logistic(weights, epsilon=epsilon))
    return session.transcript


def test_an_honest_transcript_is_never_above_its_budget(run: Run, tmp_path: Path) -> None:
    transcript = near_the_limit()
    # What a report finds at its own gap is above the budget, or this shows nothing.
    effort = xp.solver.Effort(gap=0.05)
    assert xp.realized_loss(transcript, gap=0.05).upper > 0.5
    again = xp.Session.resume(transcript, POINT, effort=effort)
    assert again.loss.upper <= 0.5
    assert again.decide(xp.logistic([1, 1, 1], epsilon=1)).loss.upper <= 0.5
    found = xp.replay(transcript, gap=0.05)
    assert found.respected
    assert found.loss.upper <= found.peak.upper <= 0.5
    account = explain(xp.replay(transcript, gap=0.05))
    assert all(step.loss.upper <= 0.5 for step in account.steps)
    path = tmp_path / "honest.json"
    transcript.save(path)
    told = json.loads(run("loss", path, "--gap", "0.05", "--json")[1])
    assert told["budget_respected"] is True
    assert told["loss"]["upper"] <= told["peak"]["upper"] <= 0.5


def test_more_nodes_only_decide_what_was_undecided() -> None:
    transcript = near_the_limit()
    verdicts = [xp.replay(transcript, nodes=nodes).respected for nodes in (1, 30, 100_000)]
    assert verdicts[0] is None
    assert verdicts[-1] is True
    assert False not in verdicts


def test_a_replay_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    xp.replay(answered("yn", xp.BayesianFilter(1)), progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_on_a_box_is_that_of_the_history(seed: int) -> None:
    generator = np.random.default_rng(seed)
    transcript = xp.Transcript(xp.Box([(-1, 1)] * 2))
    for _ in range(15):
        query = xp.logistic(generator.uniform(-3, 3, 2).tolist(), epsilon="0.5")
        transcript = transcript.add(query, int(generator.integers(2)))
    odometer = xp.Odometer(transcript, effort=xp.solver.Effort(gap=1e-3))
    lower = max(loss.lower for loss in odometer.history)
    upper = max(loss.upper for loss in odometer.history)
    assert odometer.peak.lower <= upper
    assert odometer.peak.upper >= lower
    assert odometer.peak.width < 2.1e-3


def test_a_loss_above_the_budget_is_not_undecided(run: Run, tmp_path: Path) -> None:
    flip, blind = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.channel([["1/2", "1/2"]] * 2)
    transcript = xp.Transcript(TWO, xp.BayesianFilter(ratio=3)).add(flip, 0)
    transcript = transcript.add(blind, 0).add(blind, 0)
    # Three exact comparisons, and a node for each.
    assert xp.replay(transcript, nodes=1).respected is None
    transcript = transcript.add(flip, 0)
    assert xp.replay(transcript).first_refused == 4
    found = xp.replay(transcript, nodes=1)
    assert (found.respected, found.first_refused) == (False, None)
    path = tmp_path / "t.json"
    transcript.save(path)
    assert "no: the loss was above it at some point" in run("loss", path, "--nodes", 1)[1]
    assert (
        "was not respected: the loss was above it at some point."
        in run("explain", path, "--nodes", 1)[1]
    )


def test_a_budget_with_a_delta_bounds_no_single_confidence(run: Run, tmp_path: Path) -> None:
    filter_ = xp.ApproximateFilter(epsilon="5.08", delta="1e-6")
    tenth = xp.randomized_response(epsilon="0.1")
    transcript = xp.Transcript(TWO, filter_)
    for _ in range(99):
        transcript = transcript.add(tenth, "y")
    found = confidence_change(
        xp.replay(transcript), xp.knowledge.Belief.uniform(TWO), 'value == "y"'
    )
    assert found.state == "respected with a delta"
    assert found.allowed.lower <= found.after <= found.allowed.upper
    path, prior = tmp_path / "t.json", tmp_path / "prior.csv"
    transcript.save(path)
    prior.write_text("value,probability\ny,0.5\nn,0.5\n")
    out = run("explain", path, "--prior", prior, "--statement", 'value == "y"')[1]
    assert "A budget with a delta bounds no single outcome" in out
    assert "The budget allows" not in out


def test_a_query_that_does_not_tell_the_extremes_apart_is_not_refused_for_certain() -> None:
    box = xp.Box(x=xp.integers(0, 2))

    def window(low: int, epsilon: str, grid: str = "1") -> xp.queries.Query:
        return xp.piecewise({"x": 1}, range=(low, 2), grid=grid, window=1, epsilon=epsilon)

    # ℓ is 1.5, 0 and 0.5, and the next query tells 2 from the others: 1.5 at worst.
    transcript = xp.Transcript(box).add(window(0, "1.5"), 0).add(window(0, "0.5"), 2)
    odometer, filter_ = xp.Odometer(transcript), xp.BayesianFilter(epsilon="1.75")
    assert filter_.decide(odometer, window(1, "0.5")).accepted
    many = filter_.decide(odometer, window(1, "0.5", grid="0.02"))
    assert (many.accepted, many.undecided) == (False, True)
    assert many.loss_at_worst.lower <= 1.5 <= many.loss_at_worst.upper
    # What is certain is certain: no budget is left for this one.
    assert not filter_.decide(odometer, window(1, "5", grid="0.02")).undecided


def test_a_refusal_works_out_nothing_that_nobody_asked_for() -> None:
    session = xp.Session.resume(near_the_limit(), POINT)
    with pytest.raises(xp.BudgetExceeded) as caught:
        session.ask(xp.logistic([1, 2, 3], epsilon=2))
    assert "epsilon" not in str(caught.value)
    worked_out = vars(caught.value.decision)
    assert "largest_epsilon" not in worked_out
    assert "loss" not in worked_out
    assert caught.value.fits is not None
    assert session.decide(xp.logistic([1, 2, 3], epsilon=caught.value.fits)).accepted


def test_what_fits_is_found_within_one_limit_of_nodes() -> None:
    seen: list[int] = []
    effort = xp.solver.Effort(progress=lambda progress: seen.append(progress.nodes))
    generator = np.random.default_rng(0)
    transcript = xp.Transcript(xp.Box([(-1, 1)] * 9))
    for _ in range(25):
        query = xp.logistic(generator.uniform(-10, 10, 9).tolist(), epsilon="0.1")
        transcript = transcript.add(query, int(generator.integers(2)))
    filter_ = xp.BayesianFilter(epsilon="2.2")
    filter_.largest_epsilon(xp.Odometer(transcript, effort=effort), query)
    assert max(seen, default=0) <= 4_100


def test_what_the_simplified_filter_accepts_the_bayesian_one_does_on_a_box_too() -> None:
    for seed in range(30):
        case = integer_boxes.random_decision_case(random.Random(f"order/{seed}"))
        odometer = xp.Odometer(case.transcript(case.box))
        if xp.SimplifiedFilter.of(case.filter.budget).decide(odometer, case.query).accepted:
            assert xp.BayesianFilter.of(case.filter.budget).decide(odometer, case.query).accepted


def test_many_exact_ties_of_many_different_queries_are_given_up_and_nothing_is_claimed() -> None:
    """Every second decision is at the very limit, and goes through all that came before."""
    transcript = xp.Transcript(xp.FiniteSet(["a", "b", "c"]), xp.BayesianFilter(ratio="9/4"))
    for i in range(120):
        k = 1000 + 7 * i
        total, rest = 10 * k + 1, 5 * k + 1
        rows = [[3 * k, 2 * k, rest], [2 * k, 3 * k, rest], [2 * k + 1, 3 * k - 1, rest]]
        query = xp.channel([[Fraction(weight, total) for weight in row] for row in rows])
        transcript = transcript.add(query, i % 2)
    assert xp.replay(transcript).respected
    given_up = xp.replay(transcript, nodes=100)
    assert (given_up.respected, given_up.first_refused) == (None, None)
    assert given_up.peak.upper == pytest.approx(math.log(3 / 2))


@pytest.mark.parametrize("domain", [xp.Box(x=(0, 1)), xp.FiniteSet([{"x": 0}, {"x": 1}])])
@pytest.mark.parametrize("kind", PURE)
def test_what_fits_can_be_asked_where_sums_alone_would_say_so(
    kind: type[Filter], domain: xp.Box | xp.FiniteSet
) -> None:
    """A small epsilon would fit the budget, but not a grid of a hundred steps."""
    noisy = xp.laplace({"x": 1}, range=(0, 1), grid="0.01", epsilon=1)
    with pytest.raises(xp.InvalidInput, match="too fine"):
        kind("0.05").decide(
            xp.Odometer(xp.Transcript(domain)), noisy.with_epsilon(Fraction("0.05"))
        )
    decision = kind("0.05").decide(xp.Odometer(xp.Transcript(domain)), noisy)
    assert (decision.accepted, decision.largest_epsilon) == (False, None)


@pytest.mark.parametrize(
    ("filter_", "first_refused"),
    [(xp.BasicFilter(epsilon=2), 3), (xp.SimplifiedFilter(epsilon=2), None), (None, 4)],
)
def test_another_filter_decides_on_the_same_exchanges(
    filter_: Filter | None, first_refused: int | None
) -> None:
    query = xp.randomized_response(epsilon=1)
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BasicFilter(epsilon=3))
    for response in ("yes", "no", "yes", "no"):
        transcript = transcript.add(query, response)
    found = xp.replay(transcript, filter=filter_)
    assert found.first_refused == first_refused
    assert found.respected is (first_refused is None)
    assert found.filter == (filter_ or transcript.filter)
    assert found.odometer.transcript == transcript  # which still names its own
    with pytest.raises(xp.InvalidInput, match="filter: must be a filter"):
        xp.replay(transcript, filter="basic")  # type: ignore[arg-type]


@pytest.mark.parametrize("sums", ["first", "last"])
def test_a_sum_of_epsilons_next_to_a_loss_is_replayed_on_a_box(sums: str) -> None:
    # The responses cancel out, so the loss stays far below both budgets, and the sum does not.
    filters = [xp.BasicFilter("1.5"), xp.BayesianFilter(2)]
    both = xp.AllOf(*(filters if sums == "first" else reversed(filters)))
    query = xp.logistic({"x": 1}, epsilon="0.5")
    transcript = xp.Transcript(xp.Box(x=(-1, 1)), both)
    for response in (0, 1, 0, 1):
        transcript = transcript.add(query, response)
    replayed = xp.replay(transcript)
    assert (replayed.respected, replayed.first_refused) == (False, 4)
