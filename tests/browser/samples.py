"""A page of every kind that expost writes, and of what is hard to lay out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from examples.paper import reproduce
from examples.paper.runner import Plan

import expost as xp
from expost.designs import Study, design_study
from expost.knowledge import confidence_change, load_prior
from expost.ledger import QuarantinedMessage, Round, StudyAudit
from expost.report._audit_page import audit_page
from expost.report._design_page import design_page
from expost.report._explanation import explain
from expost.report._formatting import query_in_words
from expost.report._learned_page import learned_page
from expost.report._ledger_page import OneSubject, ledger_page
from expost.report._study import StudySummary
from expost.report._transcript_page import transcript_page

__all__ = ["SAMPLES"]

DATE = "2026-11-17"
WORDS = xp.FiniteSet(["never", "sometimes", "often"])
LONG = xp.FiniteSet([f"a rather long name of the value with number {i}" for i in range(12)])
AGES = xp.FiniteSet([{"age": age} for age in (20, 40, 60, 80)])
HALF = xp.randomized_response(epsilon="0.5")
SMALL = xp.randomized_response(epsilon="0.02")
AMOUNT = xp.perturbation([0, 3, 10], range=(0, 10), epsilon="1")
OLDER = xp.linear({"age": 1}, range=(20, 80), epsilon="0.5")


def _page_of(transcript: xp.Transcript, name: str = "subject.json") -> str:
    explanation = explain(transcript)
    losses = list(explanation.replay.odometer.history)
    return transcript_page(explanation, losses, name=name, date=DATE)


def few_exchanges(folder: Path) -> str:
    start = xp.Transcript(WORDS, xp.BayesianFilter(epsilon="2"))
    return _page_of(
        start.add(HALF, "sometimes").add(HALF, "never").add(AMOUNT, 0).add(HALF, "often")
    )


def many_exchanges(folder: Path) -> str:
    """Hundreds of exchanges, long names, a long ratio for a budget."""
    transcript = xp.Transcript(LONG, xp.BayesianFilter(ratio="123456789012345/16666666666666"))
    for index in range(700):
        transcript = transcript.add(SMALL, LONG.values[index**2 % 12])
    return _page_of(transcript, f"{'a_long_name_without_any_space_in_it_' * 3}.json")


def no_exchange(folder: Path) -> str:
    return _page_of(xp.Transcript(WORDS, xp.BayesianFilter(epsilon="2")))


def infinite_loss(folder: Path) -> str:
    sure = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"]])
    return _page_of(xp.Transcript(WORDS).add(HALF, "never").add(sure, 1).add(HALF, "never"))


def tiny_loss(folder: Path) -> str:
    least = xp.randomized_response(epsilon="0.000001")
    return _page_of(xp.Transcript(WORDS, xp.BayesianFilter(epsilon="0.00001")).add(least, "never"))


def _learned(folder: Path, transcript: xp.Transcript, counts: str, statement: str) -> str:
    prior = folder / "prior.csv"
    prior.write_text(f"age,probability\n{counts}", encoding="utf-8")
    replay = xp.replay(transcript)
    change = confidence_change(replay, load_prior(prior, AGES), statement)
    return learned_page(change, replay, name="subject.json", prior=prior.name, date=DATE)


def more_confident(folder: Path) -> str:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon=1)).add(OLDER, 80).add(OLDER, 80)
    return _learned(folder, transcript, "20,0.4\n40,0.37\n60,0.15\n80,0.08\n", "age >= 60")


def barely_confident(folder: Path) -> str:
    """At one end of the scale, with all labels at their longest."""
    transcript = xp.Transcript(AGES).add(OLDER, 80).add(OLDER, 20).add(OLDER, 80)
    rare = "20,0.9999999\n40,0.00000005\n60,0.000000025\n80,0.000000025\n"
    statement = "age >= 60 or age < 30 and not age == 20 or (age > 60 and age < 90)"
    return _learned(folder, transcript, rare, statement)


def almost_certain(folder: Path) -> str:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon="0.1")).add(OLDER, 20)
    return _learned(folder, transcript, "20,0.999\n40,0.001\n60,0\n80,0\n", "age == 20")


def paper(folder: Path) -> str:
    reproduce(Plan.of("all", runs=1, seed=11, quick=True), folder, 2, _Silent(), date=DATE)
    return (folder / "report.html").read_text(encoding="utf-8")


def audit(folder: Path) -> str:
    """Some who respected their budgets, one with a long name who did not."""
    filter_, query = xp.BayesianFilter(epsilon="1"), xp.randomized_response(epsilon="0.25")
    source = xp.sampling.InsecureSource(3)
    panel = xp.Panel(WORDS, filter=filter_, subjects=range(300), source=source)
    for _ in range(7):
        panel.ask(query, ["never", "sometimes", "often"] * 100)
    panel.record(query, ["never"] * 9, subjects=[7] * 9)
    audit_ = xp.audit(panel.answers(), filter=filter_)
    return audit_page(audit_, name=f"{'a_long_name_' * 9}.csv", date=DATE, files_digest="0" * 64)


def audit_of_one(folder: Path) -> str:
    """One subject, whose loss is unbounded."""
    answers = xp.Answers(
        WORDS,
        {"sure": xp.channel([[1, 0], [1, 0], ["1/2", "1/2"]])},
        {"subject": ["ann"], "query": ["sure"], "response": [1]},
    )
    audit_ = xp.audit(answers, filter=xp.BayesianFilter(epsilon="2"))
    return audit_page(audit_, name="ann.csv", date=DATE, files_digest="0" * 64)


def audit_of_many(folder: Path) -> str:
    """Many subjects, and more questions with long names than are listed; a budget with a delta."""
    people = 20_000
    names = [f"{'a_long_question_' * 5}{index}" for index in range(25)]
    queries = {
        name: xp.randomized_response(epsilon=f"0.{index + 1:02}")
        for index, name in enumerate(names)
    }
    table = {
        "subject": [index // 2 for index in range(2 * people)],
        "query": [names[index % 25] for index in range(2 * people)],
        "response": [WORDS.values[index % 3] for index in range(2 * people)],
    }
    filter_ = xp.ApproximateFilter(epsilon="0.4", delta="1e-6", inner=xp.filters.rules.Sums())
    audit_ = xp.audit(xp.Answers(WORDS, queries, table), filter=filter_)
    return audit_page(audit_, name="log.csv", date=DATE, files_digest="0" * 64)


def study(folder: Path) -> str:
    """A study with refusals, open reservations, quarantined messages, and one odometer.

    The rounds have keys of all lengths.
    """
    filter_, query = xp.BayesianFilter(epsilon="1"), xp.randomized_response(epsilon="0.25")
    panel = xp.Panel(
        WORDS, filter=filter_, subjects=range(300), source=xp.sampling.InsecureSource(3)
    )
    rounds = []
    for index in range(12):
        replies = panel.ask(query, ["never", "sometimes", "often"] * 80, subjects=range(240))
        refused = len(replies.refused)
        key = f"{'a_long_key_' * 9}{index}" if index == 3 else f"week {index}"
        rounds.append(Round(key, query.content_id, 240 - refused, refused, 0, index * 2))
    return _study(panel, rounds, suspended=(5, 7), of=11)


def new_study(folder: Path) -> str:
    """Nobody, or nothing, so far."""
    panel = xp.Panel(WORDS, filter=xp.BayesianFilter(epsilon="1"), subjects=["a"])
    return _study(panel, [], of="a")


def broken_study(folder: Path) -> str:
    """One round with generated keys, and a budget that was not respected."""
    panel = xp.Panel(WORDS, filter=xp.BayesianFilter(epsilon="1"), subjects=range(3))
    panel.record(HALF, ["never"] * 9, subjects=[1] * 9)
    rounds = [Round(None, "smokes", 9, 0, 0, 0)]
    return _study(panel, rounds, suspended=(1,), of=1)


def _study(
    panel: xp.Panel, rounds: list[Round], suspended: tuple[int, ...] = (), *, of: int | str
) -> str:
    audit_ = xp.audit(panel.answers(), filter=panel.filter) if rounds else None
    study_audit = StudyAudit(audit_, suspended, (), (), (), (), (), 0, ())
    if len(suspended) > 1:
        reason = "another answer to exchange 3"
        study_audit = replace(
            study_audit,
            unconfirmed=tuple(range(20, 60)),
            quarantined=tuple(QuarantinedMessage(name, reason, b"", True) for name in (1, 2, 3)),
            extras=((5, "smokes", "never"),),
            two_outcomes=((1, "week 1"), (2, "week 1")),
            lost_imports=4,
            marks=("recovered at commit 9: 3 commits were lost",),
        )
    query_texts = {round_.query: query_in_words(HALF, WORDS) for round_ in rounds}
    summary = StudySummary(
        "Habits in the north", "1" * 64, 17, "2" * 64, False,
        panel.filter, len(panel), study_audit, rounds, query_texts,
    )  # fmt: skip
    explanation = explain(panel.transcript(of))
    subject = OneSubject(str(of), explanation, list(explanation.replay.odometer.history))
    return ledger_page(summary, name="study.db", date=DATE, subject=subject)


def plan(folder: Path) -> str:
    """Many study designs, some of which are not possible."""
    goals = ["value < 3", "value == 5 or value > 8", {"mean": "value"}]
    study = Study(
        xp.FiniteSet(range(12)), subjects=500, epsilon="1", goals=goals, arrival="open-ended"
    )
    design = design_study(study, repetitions=8, budgets=["0.5", "2"])
    return design_page(design, name=f"{'a_long_name_' * 9}.json", date=DATE, content_id="0" * 64)


class _Silent:
    def runs(self, done: int, total: int, share: float) -> None: ...

    def stage(self, text: str) -> None: ...


SAMPLES: dict[str, Callable[[Path], str]] = {
    sample.__name__: sample
    for sample in (
        few_exchanges,
        many_exchanges,
        no_exchange,
        infinite_loss,
        tiny_loss,
        more_confident,
        barely_confident,
        almost_certain,
        paper,
        audit,
        audit_of_one,
        audit_of_many,
        plan,
        study,
        new_study,
        broken_study,
    )
}
"""Functions that write a page, in a folder to work in."""
