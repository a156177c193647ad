"""Filters at a level of protection, against all pairs of small records in fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.files.reading import parse
from expost.filters import filter_from_json
from expost.panel._kernel import Kernel
from support.level_cases import (
    LevelCase,
    as_channel,
    random_case,
    random_level,
    random_question,
    random_study,
)
from support.protected_pairs import play

WEEKLY = xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"]))
COIN = xp.randomized_response(epsilon="0.25")


@pytest.mark.parametrize("block", range(20))
def test_decisions_are_those_of_all_protected_pairs(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        case = random_case(random.Random(seed))
        assert case.accepts() == case.is_accepted_by_oracle(), seed


@pytest.mark.parametrize("block", range(4))
def test_basic_accepts_less_than_simplified_and_that_less_than_bayesian(block: int) -> None:
    for seed in range(100_000 + 40 * block, 100_040 + 40 * block):
        case = random_case(random.Random(seed))
        accepted = [
            LevelCase(
                case.study, case.asked, case.query, {**case.guard, "kind": kind}, case.families
            ).accepts()
            for kind in ("basic", "simplified", "bayesian")
        ]
        assert accepted == sorted(accepted), seed


@pytest.mark.parametrize("seed", range(12))
def test_no_analyst_reaches_a_transcript_that_breaks_a_promise(seed: int) -> None:
    generator = random.Random(seed)
    study = random_study(generator, limits=seed % 3 == 0)
    menu = [random_question(generator, study, zeros=False) for _ in range(3)]
    one: dict[str, Any] = {
        "kind": "bayesian",
        "ratio": generator.choice(["3", "4", "9"]),
        "protects": random_level(generator, study),
    }
    guard = one
    if seed % 2:
        guard = {"kind": "all", "filters": [one, {"kind": "bayesian", "ratio": "12"}]}
    start = LevelCase(study, [], menu[0], guard, {})
    filter_ = start.filter
    empty = xp.Odometer(xp.Transcript(start.domain, filter_))
    queries = [as_channel(question) for question in menu]

    def accepts(history: Any, query: int) -> bool:
        odometer = empty
        for asked, response in history:
            position = sum(any(column) for column in menu[asked].columns[:response])
            odometer = odometer.add_position(queries[asked], position)
        return bool(filter_.decide(odometer, queries[query]))

    findings = play(study, guard, menu, [2, 2, 1], accepts)
    assert findings.decisions > 2
    assert findings.broken == []
    assert findings.needless == []


def transcript(filter_: Any, *asked: tuple[Any, Any]) -> xp.Transcript:
    result = xp.Transcript(WEEKLY, filter_)
    for query, response in asked:
        result = result.add(query, response)
    return result


def test_a_habit_is_asked_about_every_week_at_the_level_of_a_week() -> None:
    week = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
    asked = [(COIN.about("smokes", at=step), "yes") for step in range(1, 13) for _ in range(4)]
    after = transcript(week, *asked)
    found = xp.replay(after)
    assert found.respected
    assert 11.99 < found.loss.upper <= 12
    assert not week.decide(after, COIN.about("smokes", at=12))
    assert week.decide(after, COIN.about("smokes", at=13))
    assert week.decide(after, COIN.about("region"))


def test_a_constant_is_protected_at_the_level_of_a_step() -> None:
    week = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
    certain = xp.channel([["1", "0"], ["0", "1"]]).about("region")
    assert not week.decide(transcript(week), certain)
    asked = [(COIN.about("region"), "north")] * 4
    assert not week.decide(transcript(week, *asked), COIN.about("region"))
    assert week.decide(transcript(week, *asked), COIN.about("smokes", at=1))


def test_a_conjunction_names_the_filter_that_refuses() -> None:
    week = xp.BayesianFilter(epsilon="0.5", protects=xp.steps(1))
    life = xp.BayesianFilter(epsilon=1)
    both = xp.AllOf(week, life)
    asked = [(COIN.about("smokes", at=1), "yes")] * 2
    decision = both.decide(transcript(both, *asked), COIN.about("smokes", at=1))
    assert not decision.accepted
    assert decision.filter == week
    assert "by filter 1 of 2 (bayesian)" in decision.refusal_message
    assert [one.accepted for one in decision.by_filter] == [False, True]
    asked += [(COIN.about("smokes", at=2), "yes")] * 2
    decision = both.decide(transcript(both, *asked), COIN.about("smokes", at=3))
    assert decision.filter == life
    assert decision.tree()["filters"][0]["accepted"] is True
    assert decision.tree()["filter"] == {"kind": "bayesian", "epsilon": "1"}


def test_a_conjunction_is_not_a_disjunction() -> None:
    both = xp.AllOf(xp.BayesianFilter(epsilon="0.3"), xp.BasicFilter(epsilon="0.2"))
    assert not both.decide(transcript(both), COIN.about("region"))
    assert xp.AllOf(*both.filters[:1]).decide(transcript(both), COIN.about("region"))


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (xp.BayesianFilter(1, protects=xp.attributes(1)), {"attributes": 1}),
        (xp.BasicFilter(1, protects=xp.groups(["a", "b"], ["c"])), {"groups": [["a", "b"], ["c"]]}),
        (xp.SimplifiedFilter(1, protects=xp.steps(4)), {"steps": 4}),
    ],
)
def test_a_level_is_written_and_read(made: Any, written: Any) -> None:
    tree = {"kind": made.kind, **made.tree()}
    assert tree["protects"] == written
    assert filter_from_json(tree) == made
    assert made != type(made)(1)
    assert repr(made) != repr(type(made)(1))
    both = xp.AllOf(made, xp.BayesianFilter(8))
    assert filter_from_json({"kind": "all", **both.tree()}) == both


def test_a_filter_about_everything_is_written_as_before() -> None:
    made = xp.BayesianFilter(epsilon=1)
    assert made.tree() == {"epsilon": Fraction(1)}
    assert '"protects"' not in xp.Transcript(WEEKLY, made).to_json()
    at_level = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
    assert '"protects"' in xp.Transcript(WEEKLY, at_level).to_json()


SET = xp.FiniteSet(["no", "yes"])
LIMITED = xp.Attributes(a=["no", "yes"], b=xp.changing(["no", "yes"], times=2))
CONSTANT = xp.Attributes(a=["no", "yes"], b=["no", "yes"])


@pytest.mark.parametrize(
    ("domain", "level", "reason"),
    [
        (SET, xp.attributes(1), "a finite set has no attributes and no steps"),
        (SET, xp.steps(1), "a finite set has no attributes and no steps"),
        (xp.Box(a=(0, 1)), xp.groups(["a"]), "on a box they are not supported"),
        (LIMITED, xp.steps(1), "b has a limit on its changes"),
        (CONSTANT, xp.steps(1), "steps need an attribute that changes"),
        (CONSTANT, xp.groups(["a"]), "the groups leave out b"),
        (CONSTANT, xp.groups(["a"], ["c"]), "unknown attribute 'c'"),
    ],
)
def test_a_level_that_promises_nothing_is_refused(domain: Any, level: Any, reason: str) -> None:
    guard = xp.BayesianFilter(epsilon=1, protects=level)
    for filter_ in (guard, xp.AllOf(xp.BasicFilter(1), guard)):
        with pytest.raises(xp.InvalidInput, match=reason) as caught:
            xp.Transcript(domain, filter_)
        assert "\n" not in str(caught.value)
    with pytest.raises(xp.InvalidInput, match=reason):
        xp.replay(xp.Transcript(domain), filter=guard)
    account = xp.Odometer(xp.Transcript(domain))
    for read in (guard.holds, guard.loss, guard.remaining, guard.remaining_by_unit):
        with pytest.raises(xp.InvalidInput, match=reason):
            read(account)


@pytest.mark.parametrize(
    ("protects", "reason"),
    [
        ({"attributes": 2}, "only 1 attribute"),
        ({"groups": []}, "without one, no pair of records is protected"),
        ({"groups": [[]]}, "protects no pair of records"),
        ({"groups": [["a", "a"]]}, "a name twice"),
        ({"groups": "a"}, "must be a list"),
        ({"groups": [[parse("1")]]}, "must be a string"),
        ({"steps": 0}, "an integer from 1"),
        ({"steps": 1.5}, "must be an integer"),
        ({}, "must be one of"),
        ({"steps": 1, "attributes": 1}, "must be one of"),
        ({"weeks": 1}, "unknown field"),
        ("everything", "must be an object"),
        (None, "must be an object"),
    ],
)
def test_a_bad_level_gets_one_line(protects: Any, reason: str) -> None:
    with pytest.raises(xp.InvalidInput, match=reason) as caught:
        filter_from_json({"kind": "bayesian", "epsilon": "1", "protects": protects})
    assert str(caught.value).startswith("protects")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"kind": "all", "filters": []}, "at least one filter"),
        ({"kind": "all", "filters": [{"kind": "all", "filters": []}]}, "at least one filter"),
        ({"kind": "all", "epsilon": "1", "filters": []}, "unknown field"),
        ({"kind": "all"}, "'filters' is missing"),
        (
            {"kind": "approximate", "epsilon": "1", "delta": "0.1", "protects": {"steps": 1}},
            "a budget with a delta is about the person as a whole",
        ),
    ],
)
def test_a_bad_conjunction_gets_one_line(tree: Any, reason: str) -> None:
    with pytest.raises(xp.InvalidInput, match=reason) as caught:
        filter_from_json(tree)
    assert "\n" not in str(caught.value)


def test_a_conjunction_is_not_nested() -> None:
    with pytest.raises(xp.InvalidInput, match="cannot be inside another"):
        xp.AllOf(xp.AllOf(xp.BasicFilter(1)))


@pytest.mark.parametrize("block", range(5))
def test_panels_decide_as_filters_do(block: int) -> None:
    for seed in range(5_000 + 12 * block, 5_012 + 12 * block):
        generator = random.Random(seed)
        case = random_case(generator, most=5)
        domain, filter_ = case.domain, case.filter
        if generator.random() < 0.5:
            life = xp.BayesianFilter(ratio=generator.choice([3, 6, 9]))
            filter_ = xp.AllOf(filter_, life)
        kernel = Kernel(domain, filter_)
        state, odometers = kernel.start(4), [xp.Odometer(xp.Transcript(domain))] * 4
        for question in [*(question for question, _ in case.asked), case.query]:
            query = case.as_query(question)
            index = kernel.query_index(query)
            verdicts = kernel.decide(state, index)
            remaining = kernel.remaining(state, np.zeros(4, dtype=np.bool_))
            for subject, odometer in enumerate(odometers):
                assert verdicts.accepted[subject] == bool(filter_.decide(odometer, query)), seed
                assert abs(remaining[subject] - filter_.remaining(odometer)) < 1e-9, seed
            answering = np.array([k for k in range(4) if generator.random() < 0.8], dtype=np.intp)
            if not len(answering):
                continue
            count = len(query.on(domain).responses)
            positions = np.array([generator.randrange(count) for _ in answering])
            kernel.fold(state, index, positions, answering)
            for subject, position in zip(answering.tolist(), positions.tolist(), strict=True):
                odometers[subject] = odometers[subject].add_position(query, position)


def test_a_query_about_two_groups_is_charged_to_both() -> None:
    basic = xp.BasicFilter(epsilon=1, protects=xp.attributes(1))
    both = xp.randomized_response(epsilon=1).about("a", "b")
    after = xp.Transcript(CONSTANT, basic).add(both, ["no", "no"])
    assert not basic.decide(after, COIN.about("a"))
    assert not basic.decide(after, COIN.about("b"))


@pytest.mark.parametrize("block", range(3))
def test_what_remains_is_a_number_for_each_unit(block: int) -> None:
    for seed in range(400_000 + 20 * block, 400_020 + 20 * block):
        case = random_case(random.Random(seed))
        weights = case.study.likelihoods(case.asked)
        filter_ = xp.BayesianFilter(epsilon=9, protects=case.filter.protects)
        remaining = filter_.remaining_by_unit(case.odometer)
        assert filter_.remaining(case.odometer) == min(remaining.values(), default=9)
        losses = [case.study.spread(part, weights) for part in case.study.parts(case.level)]
        if not all(weights):
            assert set(remaining.values()) <= {0}
            continue
        # Untouched units are not listed, and a window may go beyond the last step.
        expected = {round(math.log(ratio), 9) for ratio in losses if ratio is not None}
        found = {round(9 - amount, 9) for amount in remaining.values() if amount}
        assert found <= expected | {0} or "steps" in case.level
        assert max(expected) > 8 or max(found, default=0) == max(expected)
