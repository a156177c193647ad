"""The page about a study: its numbers are those of the people, and nobody is named."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

import expost as xp
from expost.ledger.rounds import Round
from expost.report.explanation import explain
from expost.report.ledger_page import OneSubject, ledger_page
from expost.report.study_summary import Kept, StudySummary, leftover, totals
from support.pages import Element, checked

WORDS = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.5")
OTHER = xp.randomized_response(epsilon="0.25")
GUARD = xp.BayesianFilter(epsilon="1")
NAMES = [f"person-{number}" for number in range(8)]


def panel(*answers: tuple[str, str]) -> xp.Panel:
    made = xp.Panel(WORDS, filter=GUARD, subjects=NAMES)
    for name, response in answers:
        made.record(QUERY, [response], subjects=[name])
    return made


def study(made: xp.Panel, **changes: object) -> StudySummary:
    answered = int(made.exchanges.sum())
    told = StudySummary(
        title="A study",
        policy_id="1" * 64,
        commits=3,
        root="2" * 64,
        ended=False,
        guard=GUARD,
        people=len(made),
        found=xp.audit(made.answers(), filter=GUARD) if answered else None,
        closed=frozenset(name for name, shut in zip(NAMES, made.closed, strict=True) if shut),
        rounds=[Round("week 1", QUERY.content_id, answered, 2, 1, 4)],
        asked={QUERY.content_id: "one", OTHER.content_id: "two"},
        kept=[],
    )
    return replace(told, **changes)  # type: ignore[arg-type]


def page(told: StudySummary, subject: OneSubject | None = None) -> Element:
    return checked(ledger_page(told, name="study.db", date="2026-11-17", subject=subject))


def words(found: Element) -> str:
    return found.all("body")[0].text.replace("\xa0", " ")


MANY = panel(
    ("person-0", "yes"), ("person-0", "yes"),  # used up
    ("person-1", "yes"), ("person-1", "no"),  # nothing counts against it any more
    ("person-2", "no"),
    ("person-3", "no"), ("person-3", "no"), ("person-3", "no"),  # had to be refused: closed
)  # fmt: skip


def test_what_is_left_is_counted_as_for_each_alone() -> None:
    left = leftover(study(MANY))
    remaining = [
        0.0 if shut else share
        for share, shut in zip(MANY.remaining.tolist(), MANY.closed, strict=True)
    ]
    assert (left.used_up, left.partly, left.untouched, left.closed) == (1, 2, 4, 1)
    assert left.people == len(MANY)
    assert left.left == pytest.approx(sum(remaining) / 8, abs=1e-12)
    assert left.used + left.left == pytest.approx(7 / 8)


def test_who_is_closed_and_answered_nothing_is_closed_and_not_untouched() -> None:
    shut = frozenset({"person-3", "person-7"})
    left = leftover(study(MANY, closed=shut))
    assert (left.untouched, left.closed, left.people) == (3, 2, 8)
    nobody = leftover(study(panel(), closed=frozenset({"person-7"})))
    assert (nobody.untouched, nobody.closed, nobody.left) == (7, 1, 7 / 8)


def test_a_budget_that_was_not_kept_comes_first() -> None:
    found = page(study(MANY))
    (first,) = found.all("p", "breach")
    assert first.text.startswith("1 person's budget was not kept")
    assert found.facts["kept"] == "3 people"
    assert found.facts["not kept"] == "1 person"
    assert "4 of 8 people have answered something." in words(found)


def test_where_all_were_kept_it_says_so_of_those_who_answered() -> None:
    found = page(study(panel(("person-2", "no"), ("person-4", "yes"))))
    assert not found.all("p", "breach")
    assert "The budgets of all 2 people were kept, at every question that was" in words(found)
    assert "2 of 8 people have answered something." in words(found)
    assert "within" not in words(found)


@pytest.mark.parametrize("made", [MANY, panel()], ids=["many", "nobody"])
def test_nobody_is_named_unless_asked_for(made: xp.Panel) -> None:
    kept = [Kept("another response to exchange 1, which is recorded", 2)]
    plain = page(study(made, kept=kept, closed=frozenset({"person-3"})))
    assert "person-" not in words(plain)
    its = explain(made.transcript("person-1"))
    one = OneSubject("person-1", its, list(its.replay.odometer.history))
    named = words(page(study(made), one))
    assert "One person: person-1" in named
    assert not any(name in named for name in NAMES if name != "person-1")


def test_rounds_are_added_up_by_their_queries() -> None:
    rounds = [
        Round("a", QUERY.content_id, 5, 1, 0, 0),
        Round("b", OTHER.content_id, 4, 0, 2, 1),
        Round(None, QUERY.content_id, 3, 2, 0, 0),
    ]
    assert totals(rounds) == (12, 5, 1)
    assert totals([]) == (0, 0, 0)
    found = page(study(MANY, rounds=rounds))
    rows = list(itertools.chain(*(table.rows for table in found.all("table", "words"))))
    assert [QUERY.content_id[:12], "one", "8", "3", "0"] in rows
    assert [OTHER.content_id[:12], "two", "4", "2", "1"] in rows
    assert found.facts["refusals"] == "5"
    assert found.facts["not answered yet"] == "1"
    (drawn,) = [each for each in found.all("details") if "round" in each.rows[0]]
    assert drawn.rows[1:] == [
        ["1", "a", QUERY.content_id[:12], "5", "1", "0"],
        ["2", "b", OTHER.content_id[:12], "4", "2", "1"],
        ["3", "keys of the ledger", QUERY.content_id[:12], "3", "2", "0"],
    ]


def test_of_very_many_rounds_the_last_are_drawn() -> None:
    rounds = [Round(f"week {n}", QUERY.content_id, 1, 0, 0, 0) for n in range(100)]
    found = page(study(MANY, rounds=rounds))
    assert "The first 40 rounds are not drawn." in words(found)
    (drawn,) = [each for each in found.all("details") if "round" in each.rows[0]]
    assert [row[0] for row in drawn.rows[1:]] == [str(number) for number in range(41, 101)]


def test_a_study_without_anybody_is_a_page_too() -> None:
    empty = study(panel(), people=0, rounds=[])
    assert "Nobody has been registered so far. The study is open." in words(page(empty))
    assert "Nobody has answered anything so far." in words(page(study(panel(), rounds=[])))
    assert "The study has ended." in words(page(study(MANY, ended=True)))
