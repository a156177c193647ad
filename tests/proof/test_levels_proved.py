"""Certificates of filters with levels: the checker finds the loss over all protected pairs."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.proof import verify
from support import oracles
from support.level_decisions import LevelDecision, draw_level_decision
from support.protected_pairs import Ratio
from support.random_documents import Tree, as_text

TINY = Fraction(1, 10**25)
ROUNDED = {"perturbation", "geometric", "linear", "logistic"}
"""Kinds whose ties the checker does not decide, because their weights come from doubles."""


def slack_of(case: LevelDecision) -> float:
    """How far a proved loss may be above the exact one."""
    queries = [x["query"] for x in case.exchanges if x["query"]["kind"] in ROUNDED]
    if any(float(Fraction(query["epsilon"])) > 20 for query in queries):
        return 1.0  # the weights need more digits than a double has
    return 1e-8 if queries else 1e-22


def verdict_of(case: LevelDecision, guard: Tree) -> verify.Verdict:
    """What the checker finds out about a transcript with a proof that states its loss."""
    tree = {"version": 1, "domain": case.domain, "filter": guard, "exchanges": case.exchanges}
    transcript = as_text(tree)
    with localcontext(verify.EXACT):
        read = verify.read_transcript(transcript)
        loss = verify.loss_of(read, [], lambda *_: None, verify.Work(transcript))
    responses = [exchange["response"] for exchange in case.exchanges]
    proof = {"version": 1, "filter": guard, "responses": responses, "loss": str(loss)}
    return verify.verify(transcript, json.dumps(proof))


def exact_ratio(case: LevelDecision, level: Any) -> Ratio:
    return case.study.ratio(level, case.study.likelihoods(case.asked))


def check_loss(stated: Decimal, ratio: Ratio, slack: float) -> None:
    if ratio is None:
        assert stated == Decimal("inf")
        return
    with mpmath.workdps(60):
        above = mpmath.mpf(str(stated)) - oracles.log(ratio)
        assert 0 <= above < slack


@pytest.mark.parametrize("block", range(4))
def test_the_loss_at_a_level_is_that_over_its_pairs_and_ties_are_decided(block: int) -> None:
    shown = 0
    for seed in range(50 * block, 50 * block + 50):
        case = draw_level_decision(Random(f"proof {seed}"), conjunction=0)
        level = case.filter.get("protects")
        ratio = exact_ratio(case, level)
        slack = slack_of(case)
        limits = [ratio, ratio * (1 - TINY), ratio * (1 + TINY)] if ratio else [Fraction(10**9)]
        for limit in limits:
            if limit <= 1 or limit.denominator > 2**1400:
                continue
            protects = {} if level is None else {"protects": level}
            verdict = verdict_of(case, {"kind": "bayesian", "ratio": str(limit), **protects})
            (comparison,) = verdict.comparisons
            check_loss(verdict.loss, exact_ratio(case, None), slack)
            check_loss(comparison.loss, ratio, slack)
            if ratio is None or limit < ratio or slack < 1e-20:
                expected = ratio is not None and ratio <= limit
                assert verdict.shows_end_within_budget is expected, (seed, limit)
                shown += limit == ratio
    assert shown > 10


def test_a_score_of_an_attribute_is_proved() -> None:
    domain = {"attributes": {"age": [0, 1, 2], "region": ["n", "s"]}}
    query = {"kind": "logistic", "weights": {"age": 2}, "epsilon": "1", "about": ["age"]}
    tree = {"version": 1, "domain": domain, "exchanges": [{"query": query, "response": 1}]}
    transcript = xp.Transcript.from_json(as_text(tree))
    proved = xp.proof.certificate(transcript).verdict.loss
    assert 0 <= float(proved) - xp.realized_loss(transcript).lower < 1e-8


def test_every_budget_of_a_conjunction_is_compared_with_its_own_loss() -> None:
    domain = {"attributes": {"smokes": {"changing": ["no", "yes"]}}}
    exchanges = [
        {
            "query": {
                "kind": "randomized_response",
                "epsilon": "1",
                "about": ["smokes"],
                "at": week,
            },
            "response": "yes",
        }
        for week in range(1, 6)
    ]
    week = {"kind": "bayesian", "epsilon": "1", "protects": {"steps": 1}}
    life = {"kind": "bayesian", "epsilon": "4"}
    guard = {"kind": "all", "filters": [week, life]}
    tree = {"version": 1, "domain": domain, "filter": guard, "exchanges": exchanges}
    proof = {"version": 1, "filter": guard, "responses": ["yes"] * 5, "loss": "5"}
    verdict = verify.verify(as_text(tree), as_text(proof))
    assert [x.shows_end_within_budget for x in verdict.comparisons] == [True, False]
    assert verdict.shows_end_within_budget is False
    assert verdict.about_budget == (
        "at its end the loss about any one step is within the budget of 1; this proof does not "
        "show that the loss is within the budget of 4"
    )
    assert verdict.tree()["budgets"] == [
        {"protects": {"steps": 1}, "loss": 1.0, "shows_end_within_budget": True},
        {"loss": 5.0, "shows_end_within_budget": False},
    ]


@pytest.mark.parametrize(
    "protects",
    [
        {"steps": 0},
        {"steps": 1.5},
        {"attributes": 2},
        {"groups": []},
        {"groups": [[]]},
        {"groups": [["a"]]},
        {"groups": [["a", "b", "c"]]},
        {"groups": ["a", "b"]},
        {"groups": "ab"},
        {"groups": {"a": 1, "b": 1}},
        {"groups": [["a"], ["b"], [1]]},
        {"steps": "1"},
        {"days": 1},
        {"steps": 1, "attributes": 1},
        {},
        None,
    ],
)
def test_a_level_that_is_none_fails(protects: Any) -> None:
    domain = {"attributes": {"a": ["no", "yes"], "b": {"changing": ["no", "yes"]}}}
    guard = {"kind": "bayesian", "epsilon": "1", "protects": protects}
    tree = {"version": 1, "domain": domain, "filter": guard, "exchanges": []}
    proof = {"version": 1, "filter": guard, "responses": [], "loss": "0"}
    with pytest.raises(verify.Failed):
        verify.verify(as_text(tree), as_text(proof))


@pytest.mark.parametrize(
    ("domain", "protects"),
    [
        ({"values": ["no", "yes"]}, {"attributes": 1}),
        ({"attributes": {"a": ["no", "yes"]}}, {"steps": 1}),
        ({"attributes": {"a": {"changing": ["no", "yes"], "times": 1}}}, {"steps": 1}),
        ({"box": {"x": [0, 1]}}, {"attributes": 1}),
    ],
)
def test_a_level_that_does_not_suit_the_domain_fails(domain: Tree, protects: Tree) -> None:
    guard = {"kind": "bayesian", "epsilon": "1", "protects": protects}
    tree = {"version": 1, "domain": domain, "filter": guard, "exchanges": []}
    proof = {"version": 1, "filter": guard, "responses": [], "loss": "0"}
    with pytest.raises(verify.Failed):
        verify.verify(as_text(tree), as_text(proof))


def test_a_level_of_many_steps_is_checked_in_time_for_its_length() -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"]))
    week = xp.BayesianFilter(epsilon=1, protects=xp.steps(4))
    transcript = xp.Transcript(domain, week)
    query = xp.randomized_response(epsilon="1/4")
    for step in range(1, 1501):
        both, one = query.about("region", "smokes", at=step), query.about("smokes", at=step)
        transcript = transcript.add(one, "yes").add(both, ("n" if step % 2 else "s", "no"))
    proof = xp.proof.certificate(transcript)
    (comparison,) = proof.verdict.comparisons
    # About the region, if the subject says no in every odd week, where the answer was (n, no).
    assert 187.49 < comparison.loss <= 750 / 4
    verdict = verify.verify(transcript.to_json(), proof.encode().decode())
    assert verdict.comparisons == (comparison,)
