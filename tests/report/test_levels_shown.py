"""No report shows a level alone: the loss about the person as a whole is next to it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import expost as xp
from expost.cli.audit import audit_lines
from expost.report._audit_page import promise_paragraphs
from expost.report._sentences import viewer_losses

PERSON = xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"]))
COIN = xp.randomized_response(epsilon="0.25")
WEEK = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
BOTH = xp.AllOf(WEEK, xp.BayesianFilter(epsilon=8))
GAP = "It does not cover several steps together"


def transcript(filter_: Any, weeks: int = 5) -> xp.Transcript:
    result = xp.Transcript(PERSON, filter_)
    for week in range(1, weeks + 1):
        for _ in range(3):
            result = result.add(COIN.about("smokes", at=week), "yes")
    return result


@pytest.mark.parametrize("filter_", [WEEK, BOTH])
def test_an_explanation_shows_both_losses_and_the_gap(filter_: Any) -> None:
    found = xp.report.explain(transcript(filter_))
    text = str(found)
    assert "All of these responses together reveal at most 3.75 nats" in text
    assert f"About any one step they reveal at most 0.75 nats. {GAP}" in text
    (level,) = found.tree()["levels"]
    assert level["protects"] == {"steps": 1}
    assert level["loss"]["upper"] < 0.76 < found.tree()["loss"]["lower"]


def test_a_budget_at_a_level_caps_no_loss_about_the_person() -> None:
    replay = xp.replay(transcript(WEEK))
    assert replay.respected
    assert replay.loss.upper > 3.7
    assert replay.peak.upper > 3.7
    assert "the budget allows" not in str(xp.report.explain(transcript(WEEK)))
    assert "the budget allows 99.966 %" in str(xp.report.explain(transcript(BOTH)))


def test_the_budget_for_other_viewers_is_not_shown_at_a_level_alone() -> None:
    *_, (_, week) = viewer_losses(xp.replay(transcript(WEEK)))
    *_, (_, both) = viewer_losses(xp.replay(transcript(BOTH)))
    assert week == (
        "the budget, 1 about any one step; about the person as a whole, assume at least the sum of "
        "the epsilons, 3.75"
    )
    assert both == "the budget, 1 about any one step, and 8 about the person as a whole"


@pytest.mark.parametrize("weekly", [WEEK, xp.BasicFilter(epsilon=9, protects=xp.steps(1))])
def test_cards_show_both_losses_and_the_gap(weekly: Any) -> None:
    answers = xp.Transcript(PERSON, xp.AllOf(weekly, BOTH.filters[1]))
    for response in ("yes", "no", "yes"):
        answers = answers.add(COIN.about("smokes", at=1), response)
    answers = answers.add(COIN.about("smokes", at=2), "yes").add(COIN.about("region"), "north")
    session = xp.Session.resume(answers, [{"region": "north", "smokes": "no"}] * 2)
    for shown in (session, xp.replay(answers)):
        text = re.sub("<[^>]+>", " ", shown._repr_html_())
        assert re.search(r"realized loss[a-z ]*0\.75", text)
        assert re.search(r"about any one step\s+0\.25", text)
        assert GAP in text


def test_a_decision_at_a_level_has_the_loss_about_the_person() -> None:
    decision = BOTH.decide(transcript(BOTH), COIN.about("smokes", at=5))
    tree = decision.tree()
    assert tree["loss"]["upper"] < 0.76
    assert tree["loss_of_person"]["lower"] > 3.7
    assert [one["accepted"] for one in tree["filters"]] == [True, True]
    assert (
        "loss_of_person"
        not in xp.BasicFilter(9).decide(transcript(None), COIN.about("region")).tree()
    )


@pytest.mark.parametrize("filter_", [WEEK, BOTH])
def test_an_audit_shows_both_losses_and_the_gap(filter_: Any) -> None:
    queries = {f"week{n}": COIN.about("smokes", at=n) for n in range(1, 5)}
    table: dict[str, list[Any]] = {
        "subject": ["ann"] * 4, "query": [*queries], "response": ["yes"] * 4,
    }  # fmt: skip
    found = xp.audit(xp.Answers(PERSON, queries, table), filter=filter_)
    assert found.summary()["at_level"]["largest"] < 0.26
    assert found.summary()["loss"]["largest"] > 0.99
    lines = dict(audit_lines(found))
    assert lines["about any one step"] == "0.25 on average, 0.25 largest"
    assert lines["loss"] == "1 on average, 1 median, 1 largest"
    assert GAP in lines["not covered"]
    assert GAP in "".join(promise_paragraphs(filter_))


def test_an_audit_without_a_level_has_no_column_for_one() -> None:
    queries = {"q": COIN.about("region")}
    table = {"subject": ["ann"], "query": ["q"], "response": ["north"]}
    found = xp.audit(xp.Answers(PERSON, queries, table), filter=xp.BayesianFilter(1))
    assert "at_level" not in found.to_polars().columns
    assert "at_level" not in found.summary()


def test_composition_rules_are_not_compared_with_a_budget_at_a_level() -> None:
    with pytest.raises(xp.InvalidInput, match="about any one step"):
        xp.report.compare(transcript(WEEK))
