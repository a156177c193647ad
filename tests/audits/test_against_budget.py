"""Losses against a budget: exact, by the end, and no word about the way."""

from __future__ import annotations

import numpy as np
import pytest

import expost as xp
from expost.audits import AgainstBudget, against_budget

VALUES = xp.FiniteSet(["a", "b", "c"])
QUERIES = {
    "tenth": xp.randomized_response("0.1"),
    "half": xp.randomized_response("0.5"),
    "sure": xp.channel([[1, 0], [0, 1], [0, 1]]),
}


@pytest.fixture
def answers() -> xp.Answers:
    generator = np.random.default_rng(4)
    ids = generator.choice(["tenth", "tenth", "half"], 400)
    table = {
        "subject": [*(f"s{i}" for i in generator.integers(0, 60, 400)), "sure"],
        "query": [*ids, "sure"],
        "response": [*generator.choice(list("abc"), 400), 0],
    }
    return xp.Answers(VALUES, QUERIES, table)


def held(answers: xp.Answers, guard: xp.filters.Filter) -> AgainstBudget:
    return against_budget(answers, xp.realized_losses(answers), guard)


@pytest.mark.parametrize(
    "guard",
    [
        xp.BayesianFilter(epsilon="0.5"),  # many spent exactly that, or that less a rounding
        xp.BayesianFilter(epsilon="0.4"),
        xp.BayesianFilter(ratio=2),
        xp.BasicFilter(epsilon="1.2"),
        xp.ApproximateFilter("1", "1e-6"),
    ],
)
def test_every_verdict_is_that_of_the_filter_on_the_transcript(
    answers: xp.Answers, guard: xp.filters.Filter
) -> None:
    found = held(answers, guard)
    expected = [
        not guard.holds(xp.Odometer(answers.transcript(subject))) for subject in answers.subjects
    ]
    assert list(found.over) == expected
    assert {True, False} <= set(expected)
    assert (found.over_budget, found.undecided, len(found)) == (expected.count(True), 0, 61)


def test_three_tenths_fit_a_budget_of_three_tenths() -> None:
    table = {"subject": [1, 1, 1, 2], "query": ["tenth"] * 4, "response": list("aaab")}
    answers = xp.Answers(VALUES, QUERIES, table)
    assert held(answers, xp.BayesianFilter(epsilon="0.3")).over == (False, False)
    assert held(answers, xp.BayesianFilter(epsilon="0.2999999999")).over == (True, False)


def test_the_end_says_nothing_of_the_way() -> None:
    values, half = xp.FiniteSet(["a", "b"]), {"half": QUERIES["half"]}
    table = {"subject": [1] * 2, "query": ["half"] * 2, "response": ["a", "b"]}
    answers, guard = xp.Answers(values, half, table), xp.BayesianFilter(epsilon="0.1")
    assert held(answers, guard).over == (False,)
    first, second = answers.transcript(1).exchanges
    asked = xp.Transcript(values, guard).add(first.query, first.response)
    assert xp.replay(asked.add(second.query, second.response)).respected is False


def test_on_a_box_what_a_search_cannot_tell_is_undecided() -> None:
    weights = {"p": [1, -2, 3, 1], "q": [-3, 1, 2, 2], "r": [2, 2, -1, -3]}
    queries = {key: xp.logistic(weight, epsilon=2) for key, weight in weights.items()}
    table = {"subject": [1] * 3, "query": list("pqr"), "response": [0, 1, 1]}
    answers, few = xp.Answers(xp.Box([(-1, 1)] * 4), queries, table), xp.solver.Effort(nodes=1)
    losses = xp.realized_losses(answers, nodes=1)
    for budget, over in [("100", False), ("4", True), ("5", None)]:
        guard = xp.BayesianFilter(epsilon=budget)
        found = against_budget(answers, losses, guard, effort=few)
        assert (found.over, found.undecided) == ((over,), int(over is None))


def test_losses_of_others_are_refused(answers: xp.Answers) -> None:
    table = {"subject": [1], "query": ["half"], "response": ["a"]}
    losses = xp.realized_losses(xp.Answers(VALUES, QUERIES, table))
    with pytest.raises(xp.InvalidInput, match="losses: differ from those of these answers"):
        against_budget(answers, losses, xp.BayesianFilter(epsilon=1))


def test_the_tree_has_the_subjects_and_the_columns_have_words(answers: xp.Answers) -> None:
    found = held(answers, xp.BayesianFilter(epsilon="0.5"))
    tree = found.tree()
    assert tree["at_the_end"] == {
        "budget": 0.5, "filter": "bayesian", "over": found.over_budget, "undecided": 0,
    }  # fmt: skip
    assert [row["over"] for row in tree["losses"]] == list(found.over)
    assert set(found.columns()["over"]) == {"yes", "no"}


def test_whoever_is_over_it_is_shown_first_and_all_are_in_frames(answers: xp.Answers) -> None:
    found = held(answers, xp.BayesianFilter(epsilon="0.5"))
    title, _, first, *_ = repr(found).splitlines()
    assert title == f"AgainstBudget({found.over_budget:,} of 61 subjects over 0.5)"
    assert first.split()[:2] == [found.subjects_over[0], "yes"]
    assert title in found._repr_html_()
    for frame in (found.to_pandas(), found.to_polars()):
        over = [
            name
            for name, said in zip(frame["subject"], frame["over"], strict=True)
            if said == "yes"
        ]
        assert tuple(over) == found.subjects_over


def test_groups_that_do_not_cover_the_records_are_refused() -> None:
    domain = xp.Attributes(a=["no", "yes"], b=["no", "yes"])
    query = xp.randomized_response(epsilon=1).about("a")
    table = {"subject": ["ann"], "query": ["q"], "response": ["no"]}
    answers = xp.Answers(domain, {"q": query}, table)
    guard = xp.BayesianFilter(epsilon=2, protects=xp.groups(["a"]))
    with pytest.raises(xp.InvalidInput, match=r"filter\.protects: the groups leave out b"):
        against_budget(answers, xp.realized_losses(answers), guard)
