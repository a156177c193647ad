"""Groups of queries, alone and as a fallback at the limit of nodes."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import expost as xp
from expost.loss import _on_box
from expost.loss._on_box import BoxLogLikelihood, all_compared
from expost.numbers import Nats
from expost.solver import (
    Allowance,
    BoxSpread,
    node_work,
    root_work,
    setup_work,
)
from expost.solver._effort import DECISION_WORK, REPLAY_WORK, WORK
from support.box_cases import complaints, some_case


@pytest.mark.parametrize("nodes", [1, 3, 10])
def test_at_the_limit_of_nodes_a_loss_is_never_worse_than_that_of_groups_of_ten(nodes: int) -> None:
    generator = random.Random(nodes)
    better = 0
    for seed in range(12):
        case = some_case(generator, coordinates=6, queries=60, epsilon="0.1", noise=False)
        joint = xp.realized_loss(case.transcript, gap=0.001, nodes=nodes)
        grouped = xp.realized_loss(case.transcript, gap=0.001, nodes=nodes, group=10)
        # One that has reached its gap may be above by that.
        assert joint.upper <= grouped.upper or joint.width <= 0.001
        assert not complaints(case, joint, seed)
        assert not complaints(case, grouped, seed)
        better += joint.upper < grouped.upper
    assert better > 3


def test_one_group_of_all_queries_is_the_loss_itself() -> None:
    case = some_case(random.Random(5), coordinates=3, queries=6)
    grouped, loss = xp.realized_loss(case.transcript, group=6), xp.realized_loss(case.transcript)
    assert grouped.lower == loss.lower
    assert grouped.upper == pytest.approx(loss.upper, abs=1e-12)


def test_groups_are_left_out_only_where_they_do_not_help() -> None:
    generator, skipped = random.Random(6), 0
    for _ in range(20):
        case = some_case(generator, coordinates=6, queries=60, epsilon="0.1", noise=False)
        total = BoxLogLikelihood.of(case.box, case.transcript.exchanges)
        effort = xp.solver.Effort(gap=0.001, nodes=generator.choice([1, 4]))
        limit = xp.realized_loss(case.transcript).upper * generator.choice([0.8, 1.0, 1.1])
        with mock.patch.object(
            _on_box, "_combine_partitions", side_effect=_on_box._combine_partitions
        ) as together:
            (loss,) = all_compared([total.terms], case.box, limit, effort)
        joint = BoxSpread(total.terms, case.box)
        joint.compare(limit, effort)
        if together.called or total.terms.total() <= 10 or not joint.enclosure.upper > limit:
            continue
        groups = _on_box._in_groups(total.terms, case.box, 10, effort)
        assert loss.upper <= _on_box._combine_partitions([[(joint, 1)], groups]).upper
        skipped += joint.enclosure.lower <= limit
    assert skipped > 1


def test_what_is_above_a_limit_is_found_before_much_is_spent_on_what_is_within_it() -> None:
    generator = np.random.default_rng(4)
    box = xp.Box([(-1, 1)] * 6)
    transcript = xp.Transcript(box)
    for i in range(18):
        query = xp.logistic(generator.uniform(-10, 10, 6).tolist(), epsilon="0.1")
        transcript = transcript.add(query, i % 2)
    close = BoxLogLikelihood.of(box, transcript.exchanges)
    limit = xp.realized_loss(transcript, gap=1e-4).upper + 1e-4
    alone = xp.solver.Effort().sharing_nodes(100_000)
    assert close.loss_against(limit, alone).upper <= limit
    assert alone.allowance is not None
    loud = transcript.add(xp.logistic([10] * 6, epsilon=5), 1)
    above = BoxLogLikelihood.of(box, loud.exchanges)
    both = xp.solver.Effort().sharing_nodes(100_000)
    found = all_compared([close.terms, above.terms], box, limit, both)
    assert max(loss.lower for loss in found) > limit
    assert both.allowance is not None
    assert 4 * (100_000 - both.allowance.remaining) < 100_000 - alone.allowance.remaining


def smooth(queries: int) -> BoxLogLikelihood:
    """Answers whose bounds close slowly."""
    generator = np.random.default_rng(1)
    box = xp.Box([(-1, 1)] * 9)
    transcript = xp.Transcript(box)
    for _ in range(queries):
        query = xp.logistic(generator.uniform(-1, 1, 9).tolist(), epsilon="0.1")
        transcript = transcript.add(query, int(generator.integers(2)))
    return BoxLogLikelihood.of(box, transcript.exchanges)


def test_searches_that_share_nodes_stop_when_these_are_used_up() -> None:
    total, shared = smooth(60), xp.solver.Effort().sharing_nodes(100)
    loss = total.loss_against(1.2, shared)
    assert loss.lower < 1.2 < loss.upper
    assert shared.allowance is not None
    assert -40 < shared.allowance.remaining <= 0  # the root of each block is looked at all the same


def test_a_search_that_goes_on_does_not_begin_anew() -> None:
    total = smooth(60)
    at_once, in_stages = (BoxSpread(total.terms, total.domain) for _ in range(2))
    at_once.compare(1.15, xp.solver.Effort(nodes=200))
    for nodes in (16, 128, 200):
        in_stages.compare(1.15, xp.solver.Effort(nodes=nodes))
    assert in_stages.enclosure.upper <= at_once.enclosure.upper + 0.001


def test_a_glance_at_a_budget_that_is_far_away_is_at_all_terms_together() -> None:
    total = smooth(60)
    with mock.patch.object(_on_box, "_start", side_effect=_on_box._start) as start:
        query = xp.logistic([0.1] * 9, epsilon="0.1")
        worst = total.worst_after(query, 1, Nats(Fraction(3, 2)), xp.solver.Effort())
    assert worst.within(Nats(Fraction(3, 2)))
    assert start.call_count == 3  # as it is, and after each response; no groups


def test_all_searches_of_a_decision_share_its_work_unless_a_limit_is_given() -> None:
    decision = xp.solver.Effort().for_decision()
    decision.charge(10, DECISION_WORK / 100)
    assert decision.limit(10, DECISION_WORK / 100) == 100
    assert xp.solver.Effort(nodes=7).for_decision().limit(0, 1.0) == 7
    assert xp.solver.Effort().sharing_nodes(5).for_decision().limit(0, 1.0) == 5


def test_a_decision_has_the_same_limit_in_a_command_that_did_other_work() -> None:
    command = xp.solver.Effort().with_work_limit()
    command.charge_work(WORK)
    assert command.used_up
    unlimited = xp.solver.Effort()
    assert command.for_decision().limit(0, 100.0) == unlimited.for_decision().limit(0, 100.0)


def test_one_decision_of_a_replay_leaves_work_for_the_others() -> None:
    replay = xp.solver.Effort().for_replay()
    decision = replay.for_replayed_decision()
    assert decision.for_decision() is decision
    decision.charge_work(DECISION_WORK)
    assert decision.used_up
    assert not replay.used_up
    replay.charge_work(REPLAY_WORK)
    assert replay.used_up


def test_all_that_a_call_does_shares_some_work_unless_a_limit_is_given() -> None:
    bounded = xp.solver.Effort().with_work_limit()
    assert bounded.with_work_limit() is bounded
    assert xp.solver.Effort(nodes=7).with_work_limit().work is None
    assert bounded.limit(0, node_work(5, 3)) == 100_000
    assert bounded.limit(10, node_work(10_000, 1)) < 50
    bounded.with_share(0.5).charge_work(WORK)
    assert bounded.used_up
    assert bounded.limit(3, 1.0) == 3
    total = smooth(60)
    assert total.loss(bounded).upper == total.spent.upper


def test_where_no_work_is_left_a_large_search_for_two_points_is_not_begun() -> None:
    wide = xp.Box([(-1, 1)] * 300)
    total = BoxLogLikelihood.of(wide, ()).add(xp.logistic([1] * 300, epsilon=1), 0)
    assert total.extreme_pair(xp.solver.Effort().with_work_limit()) is not None
    assert total.extreme_pair(replace(xp.solver.Effort(), work=Allowance(0))) is None


def test_the_first_node_of_a_search_is_counted_as_several() -> None:
    for terms in (10, 10_000):
        assert root_work(terms, 2) == 3 * node_work(terms, 2)
    problem = smooth(60)
    spread = BoxSpread(problem.terms, problem.domain)
    roots = 2 * root_work(60, len(problem.domain.columns))
    assert spread.setup_work == setup_work(60, len(problem.domain.columns)) + roots


def test_two_threads_find_the_same_where_the_work_is_used_up() -> None:
    total = smooth(60)
    losses, left = [], []
    for threads in (1, 2):
        effort = replace(xp.solver.Effort(gap=1e-6, threads=threads), work=Allowance(1_500))
        losses.append(total.loss(effort))
        left.append(effort.work.remaining if effort.work else None)
    assert losses[0] == losses[1]
    assert left[0] == left[1]
    assert losses[0].width > 1e-6


def test_groups_of_equal_answers_are_searched_once() -> None:
    box = xp.Box([(-1, 1)] * 2)
    query = xp.logistic([3, -2], epsilon=1)
    terms = BoxLogLikelihood.of(box, ()).add(query, 1, 400).terms
    groups = _on_box._in_groups(terms, box, 10, xp.solver.Effort())
    assert [times for _, times in groups] == [40]
    single = BoxSpread({query.on(box).term(1): 1}, box)
    single.narrow(xp.solver.Effort(gap=1e-6))
    found = _on_box._combine_partitions([groups])
    assert 400 * single.enclosure.lower <= found.upper <= 400 * single.enclosure.upper + 0.01
