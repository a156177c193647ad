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
from expost.ledger import Round
from expost.report._audit_page import audit_page
from expost.report._design_page import design_page
from expost.report._explanation import explain
from expost.report._formatting import query_in_words
from expost.report._learned_page import learned_page
from expost.report._ledger_page import OneSubject, ledger_page
from expost.report._study import Quarantined, StudySummary
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


def _of(transcript: xp.Transcript, name: str = "subject.json") -> str:
    found = explain(transcript)
    losses = list(found.replay.odometer.history)
    return transcript_page(found, losses, name=name, date=DATE)


def few(folder: Path) -> str:
    start = xp.Transcript(WORDS, xp.BayesianFilter(epsilon="2"))
    return _of(start.add(HALF, "sometimes").add(HALF, "never").add(AMOUNT, 0).add(HALF, "often"))


def many(folder: Path) -> str:
    """Hundreds of exchanges, long names, a long ratio for a budget."""
    transcript = xp.Transcript(LONG, xp.BayesianFilter(ratio="123456789012345/16666666666666"))
    for number in range(700):
        transcript = transcript.add(SMALL, LONG.values[number**2 % 12])
    return _of(transcript, f"{'a_long_name_without_any_space_in_it_' * 3}.json")


def nothing(folder: Path) -> str:
    return _of(xp.Transcript(WORDS, xp.BayesianFilter(epsilon="2")))


def infinite(folder: Path) -> str:
    sure = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"]])
    return _of(xp.Transcript(WORDS).add(HALF, "never").add(sure, 1).add(HALF, "never"))


def tiny(folder: Path) -> str:
    least = xp.randomized_response(epsilon="0.000001")
    return _of(xp.Transcript(WORDS, xp.BayesianFilter(epsilon="0.00001")).add(least, "never"))


def _learned(folder: Path, transcript: xp.Transcript, counts: str, statement: str) -> str:
    prior = folder / "prior.csv"
    prior.write_text(f"age,probability\n{counts}", encoding="utf-8")
    replay = xp.replay(transcript)
    found = confidence_change(replay, load_prior(prior, AGES), statement)
    return learned_page(found, replay, name="subject.json", prior=prior.name, date=DATE)


def surer(folder: Path) -> str:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon=1)).add(OLDER, 80).add(OLDER, 80)
    return _learned(folder, transcript, "20,0.4\n40,0.37\n60,0.15\n80,0.08\n", "age >= 60")


def hardly(folder: Path) -> str:
    """At one end of the scale, with all labels at their longest."""
    transcript = xp.Transcript(AGES).add(OLDER, 80).add(OLDER, 20).add(OLDER, 80)
    rare = "20,0.9999999\n40,0.00000005\n60,0.000000025\n80,0.000000025\n"
    statement = "age >= 60 or age < 30 and not age == 20 or (age > 60 and age < 90)"
    return _learned(folder, transcript, rare, statement)


def surely(folder: Path) -> str:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon="0.1")).add(OLDER, 20)
    return _learned(folder, transcript, "20,0.999\n40,0.001\n60,0\n80,0\n", "age == 20")


def paper(folder: Path) -> str:
    reproduce(Plan.of("all", runs=1, seed=11, quick=True), folder, 2, _Silent(), date=DATE)
    return (folder / "report.html").read_text(encoding="utf-8")


def audit(folder: Path) -> str:
    """Some who respected their budgets, one with a long name who did not."""
    guard, query = xp.BayesianFilter(epsilon="1"), xp.randomized_response(epsilon="0.25")
    source = xp.sampling.InsecureSource(3)
    panel = xp.Panel(WORDS, filter=guard, subjects=range(300), source=source)
    for _ in range(7):
        panel.ask(query, ["never", "sometimes", "often"] * 100)
    panel.record(query, ["never"] * 9, subjects=[7] * 9)
    found = xp.audit(panel.answers(), filter=guard)
    return audit_page(found, name=f"{'a_long_name_' * 9}.csv", date=DATE, content_id="0" * 64)


def study(folder: Path) -> str:
    """A study with refusals, open reservations, quarantined messages, and one odometer.

    The rounds have keys of all lengths.
    """
    guard, query = xp.BayesianFilter(epsilon="1"), xp.randomized_response(epsilon="0.25")
    panel = xp.Panel(WORDS, filter=guard, subjects=range(300), source=xp.sampling.InsecureSource(3))
    rounds = []
    for number in range(12):
        replies = panel.ask(query, ["never", "sometimes", "often"] * 80, subjects=range(240))
        refused = len(replies.refused)
        key = f"{'a_long_key_' * 9}{number}" if number == 3 else f"week {number}"
        rounds.append(Round(key, query.content_id, 240 - refused, refused, 0, number * 2))
    return _study(panel, rounds, suspended=frozenset({5, 7}), of=11)


def new_study(folder: Path) -> str:
    """Nobody, or nothing, so far."""
    panel = xp.Panel(WORDS, filter=xp.BayesianFilter(epsilon="1"), subjects=["a"])
    return _study(panel, [], of="a")


def broken_study(folder: Path) -> str:
    """One round with generated keys, and a budget that was not respected."""
    panel = xp.Panel(WORDS, filter=xp.BayesianFilter(epsilon="1"), subjects=range(3))
    panel.record(HALF, ["never"] * 9, subjects=[1] * 9)
    rounds = [Round(None, "smokes", 9, 0, 0, 0)]
    return _study(panel, rounds, suspended=frozenset({1}), of=1)


def _study(
    panel: xp.Panel, rounds: list[Round], suspended: frozenset[int] = frozenset(), *, of: int | str
) -> str:
    found = xp.audit(panel.answers(), filter=panel.filter) if rounds else None
    asked = {each.query: query_in_words(HALF, WORDS) for each in rounds}
    told = StudySummary(
        "Habits in the north", "1" * 64, 17, "2" * 64, False,
        panel.filter, len(panel), found, suspended, frozenset(), rounds, asked,
    )  # fmt: skip
    if len(suspended) > 1:
        told = replace(
            told,
            unconfirmed=frozenset(range(20, 60)),
            quarantined=[Quarantined("another answer to exchange 3", 2)],
            held=3,
            extras=1,
            two_outcomes=2,
            lost_imports=4,
            marks=["recovered at commit 9: 3 commits were lost"],
        )
    its = explain(panel.transcript(of))
    one = OneSubject(str(of), its, list(its.replay.odometer.history))
    return ledger_page(told, name="study.db", date=DATE, subject=one)


def plan(folder: Path) -> str:
    """Many study designs, some of which are not possible."""
    goals = ["value < 3", "value == 5 or value > 8", {"mean": "value"}]
    study = Study(
        xp.FiniteSet(range(12)), subjects=500, epsilon="1", goals=goals, arrival="open-ended"
    )
    found = design_study(study, repetitions=8, budgets=["0.5", "2"])
    return design_page(found, name=f"{'a_long_name_' * 9}.json", date=DATE, content_id="0" * 64)


class _Silent:
    def runs(self, done: int, total: int, share: float) -> None: ...

    def stage(self, text: str) -> None: ...


SAMPLES: dict[str, Callable[[Path], str]] = {
    sample.__name__: sample
    for sample in (
        few,
        many,
        nothing,
        infinite,
        tiny,
        surer,
        hardly,
        surely,
        paper,
        audit,
        plan,
        study,
        new_study,
        broken_study,
    )
}
"""What makes each, given a folder to work in."""
