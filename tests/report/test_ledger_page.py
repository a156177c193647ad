"""The page about a study: its numbers are those of the people, and nobody is named."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import pytest

import expost as xp
from expost.ledger import QuarantinedMessage, Round, StudyAudit
from expost.report._explanation import explain
from expost.report._ledger_page import OneSubject, ledger_page
from expost.report._study import StudySummary, budget_shares, total_outcomes
from support.page_checks import Element, checked

WORDS = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.5")
OTHER = xp.randomized_response(epsilon="0.25")
FILTER = xp.BayesianFilter(epsilon="1")
NAMES = [f"person-{index}" for index in range(8)]


def panel(*answers: tuple[str, str]) -> xp.Panel:
    panel_ = xp.Panel(WORDS, filter=FILTER, subjects=NAMES)
    for name, response in answers:
        panel_.record(QUERY, [response], subjects=[name])
    return panel_


AUDIT_FIELDS = {field.name for field in fields(StudyAudit)}


def study(panel_: xp.Panel, **changes: object) -> StudySummary:
    answered = int(panel_.exchanges.sum())
    study_audit = StudyAudit(
        audit=xp.audit(panel_.answers(), filter=FILTER) if answered else None,
        suspended=tuple(itertools.compress(panel_.subjects, panel_.suspended)),
        unconfirmed=(),
        reserved=(),
        quarantined=(),
        extras=(),
        two_outcomes=(),
        lost_imports=0,
        marks=(),
    )
    audit_changes = {name: changes.pop(name) for name in AUDIT_FIELDS & set(changes)}
    summary = StudySummary(
        title="A study",
        policy_id="1" * 64,
        commits=3,
        root="2" * 64,
        ended=False,
        filter=FILTER,
        subjects=len(panel_),
        audit=replace(study_audit, **audit_changes),  # type: ignore[arg-type]
        rounds=[Round("week 1", QUERY.content_id, answered, 2, 1, 4)],
        query_texts={QUERY.content_id: "one", OTHER.content_id: "two"},
    )
    return replace(summary, **changes)  # type: ignore[arg-type]


def page(summary: StudySummary, subject: OneSubject | None = None) -> Element:
    return checked(ledger_page(summary, name="study.db", date="2026-11-17", subject=subject))


def words(page_: Element) -> str:
    return page_.all("body")[0].text.replace("\xa0", " ")


MANY = panel(
    ("person-0", "yes"), ("person-0", "yes"),  # used up
    ("person-1", "yes"), ("person-1", "no"),  # nothing counts against it any more
    ("person-2", "no"),
    ("person-3", "no"), ("person-3", "no"), ("person-3", "no"),  # had to be refused: suspended
)  # fmt: skip


def test_what_remains_is_counted_as_for_each_alone() -> None:
    shares = budget_shares(study(MANY))
    remaining = [
        0.0 if is_suspended else share
        for share, is_suspended in zip(MANY.remaining.tolist(), MANY.suspended, strict=True)
    ]
    counts = (shares.used_up, shares.partly, shares.untouched, shares.unconfirmed, shares.suspended)
    assert counts == (1, 2, 4, 0, 1)
    assert shares.subjects == len(MANY)
    assert shares.remaining == pytest.approx(sum(remaining) / 8, abs=1e-12)
    assert shares.used + shares.remaining == pytest.approx(7 / 8)


def test_a_suspended_person_without_answers_is_suspended_and_not_untouched() -> None:
    suspended = ("person-3", "person-7")
    shares = budget_shares(study(MANY, suspended=suspended))
    assert (shares.untouched, shares.suspended, shares.subjects) == (3, 2, 8)
    alone = budget_shares(study(panel(), suspended=("person-7",)))
    assert (alone.untouched, alone.suspended, alone.remaining) == (7, 1, 7 / 8)


def test_unconfirmed_people_are_counted_apart_and_their_budgets_not_at_all() -> None:
    unconfirmed = ("person-0", "person-2", "person-3", "person-7")
    summary = study(MANY, unconfirmed=unconfirmed)
    shares = budget_shares(summary)
    counts = (shares.used_up, shares.partly, shares.untouched, shares.unconfirmed, shares.suspended)
    assert counts == (0, 1, 3, 3, 1)  # person-3 is suspended
    assert shares.used + shares.remaining == pytest.approx(4 / 8)
    page_ = page(summary)
    assert page_.facts["unconfirmed"] == "4 subjects"
    assert "4 subjects are unconfirmed: their devices must sync before" in words(page_)
    nothing = study(panel(), unconfirmed=("person-1",))
    assert "1 subject is unconfirmed" in words(page(nothing))


def test_numbers_among_names_are_counted_as_names() -> None:
    mixed = xp.Panel(WORDS, filter=FILTER, subjects=[7, "ann"])
    mixed.record(QUERY, ["yes", "yes"], subjects=[7, "ann"])
    shares = budget_shares(study(mixed, suspended=(7,)))
    assert (shares.partly, shares.suspended, shares.subjects) == (1, 1, 2)


def test_a_budget_that_was_not_respected_comes_first() -> None:
    page_ = page(study(MANY))
    (first,) = page_.all("p", "breach")
    assert first.text.startswith(
        "1 subject's budget was not respected: a question was answered that the filter"
    )
    assert page_.facts["respected"] == "3 subjects"
    assert page_.facts["not respected"] == "1 subject"
    assert "4 of 8 subjects have answered at least one question." in words(page_)


def test_lost_imports_come_first() -> None:
    summary = study(panel(("person-2", "no")), lost_imports=2)
    assert not summary.audit.good
    (first,) = page(summary).all("p", "breach")
    assert first.text.startswith("2 imported answers are lost: a restored backup does not have")
    assert study(panel(("person-2", "no"))).audit.good


def test_where_all_were_respected_it_says_so_about_people_who_answered() -> None:
    page_ = page(study(panel(("person-2", "no"), ("person-4", "yes"))))
    assert not page_.all("p", "breach")
    assert "The budgets of all 2 subjects who answered were respected at every" in words(page_)
    assert "2 of 8 subjects have answered at least one question." in words(page_)
    assert "within" not in words(page_)


def test_what_is_out_of_the_ordinary_is_on_the_page() -> None:
    another = "another answer to exchange 1"
    summary = study(
        MANY,
        quarantined=[
            QuarantinedMessage("person-1", "nothing", b"", held=True),
            QuarantinedMessage("person-2", another, b"", held=True),
            QuarantinedMessage("person-3", another, b"", held=True),  # who is suspended
            QuarantinedMessage(None, another, b"", held=False),
        ],
        extras=[("person-3", "query", "yes")],
        two_outcomes=[("person-1", "week 1")],
        marks=["recovered at commit 7: 3 commits were lost"],
    )
    page_ = page(summary)
    for sentence in (
        "4 messages were quarantined: stored apart",
        "1 subject is suspended: no more questions until an operator resolves it.",
        "2 subjects wait for an operator.",
        "1 response came only with these messages. Such extras count as answers",
        "recovered at commit 7: 3 commits were lost",
        "1 key has two outcomes for a subject",
        "A device that is itself restored from a backup can draw again what the ledger has not",
        "Answers that never reached this ledger.",
    ):
        assert sentence in words(page_)
    tables = [table.rows for table in page_.all("table")]
    assert [["reason", "messages"], [another, "3"], ["nothing", "1"]] in tables
    assert page_.facts["extras"] == "1"
    assert page_.facts["answers"] == "7"  # the eighth is the extra
    plain = words(page(study(panel(("person-2", "no")))))
    assert "No message is quarantined, and no one is suspended." in plain
    assert "Recoveries" not in plain


def test_a_recovery_is_shown_with_the_subjects_that_are_confirmed_now() -> None:
    recovered = ["recovered at commit 7: 319 commits were lost"]
    for unconfirmed, sentence in (
        ((), "7 subjects are confirmed now, 0 are still unconfirmed."),
        (("person-2",), "6 subjects are confirmed now, 1 is still unconfirmed."),
    ):
        assert sentence in words(page(study(MANY, marks=recovered, unconfirmed=unconfirmed)))
    # The eighth subject is suspended.
    assert "confirmed now" not in words(page(study(MANY, marks=["ended at commit 9"])))


@pytest.mark.parametrize("panel_", [MANY, panel()], ids=["many", "nobody"])
def test_nobody_is_named_unless_asked_for(panel_: xp.Panel) -> None:
    message = QuarantinedMessage("person-3", "another answer to exchange 1", b"person-3", held=True)
    summary = study(panel_, quarantined=(message,), suspended=("person-3",))
    plain = page(summary)
    assert "person-" not in words(plain)
    explanation = explain(panel_.transcript("person-1"))
    subject = OneSubject("person-1", explanation, list(explanation.replay.odometer.history))
    named = words(page(study(panel_), subject))
    assert "One subject: person-1" in named
    assert not any(name in named for name in NAMES if name != "person-1")


def test_rounds_are_added_up_by_their_queries() -> None:
    rounds = [
        Round("a", QUERY.content_id, 5, 1, 0, 0),
        Round("b", OTHER.content_id, 4, 0, 2, 1),
        Round(None, QUERY.content_id, 3, 2, 0, 0),
    ]
    assert total_outcomes(rounds) == (12, 5, 1)
    assert total_outcomes([]) == (0, 0, 0)
    page_ = page(study(MANY, rounds=rounds))
    rows = list(itertools.chain(*(table.rows for table in page_.all("table", "words"))))
    assert [QUERY.content_id[:12], "one", "8", "3", "0"] in rows
    assert [OTHER.content_id[:12], "two", "4", "2", "1"] in rows
    assert page_.facts["refusals"] == "5"
    assert page_.facts["not answered yet"] == "1"
    (drawn,) = [
        details for details in page_.all("details") if details.rows and "round" in details.rows[0]
    ]
    assert drawn.rows[1:] == [
        ["1", "a", QUERY.content_id[:12], "5", "1", "0"],
        ["2", "b", OTHER.content_id[:12], "4", "2", "1"],
        ["3", "generated keys", QUERY.content_id[:12], "3", "2", "0"],
    ]


def test_of_very_many_rounds_the_last_are_drawn() -> None:
    rounds = [Round(f"week {n}", QUERY.content_id, 1, 0, 0, 0) for n in range(100)]
    page_ = page(study(MANY, rounds=rounds))
    assert "The first 40 rounds are not drawn." in words(page_)
    (drawn,) = [
        details for details in page_.all("details") if details.rows and "round" in details.rows[0]
    ]
    assert [row[0] for row in drawn.rows[1:]] == [str(index) for index in range(41, 101)]


def test_a_study_without_anybody_is_a_page_too() -> None:
    empty = study(panel(), subjects=0, rounds=[])
    assert "No subject is registered yet. The study is open." in words(page(empty)).replace(
        "\n", " "
    )
    assert "No subject has answered a question yet." in words(page(study(panel(), rounds=[])))
    assert "The study has ended." in words(page(study(MANY, ended=True)))
