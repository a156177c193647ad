"""A study as the people who run it, and those who watch, want to see it: all of it, nobody's name.

These are plain records: a ledger fills them, and a page shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from expost.answers import Subject
from expost.audits.result import Audit
from expost.filters import Filter
from expost.ledger.ledger import Ledger
from expost.ledger.rounds import Round
from expost.report.words import query_in_words

__all__ = [
    "OUTCOMES",
    "Kept",
    "Leftover",
    "StudySummary",
    "leftover",
    "outcomes",
    "summary_of",
    "totals",
]


OUTCOMES = ("answered", "refused", "not answered yet")
"""What can become of a request."""


def outcomes(each: Round) -> tuple[int, int, int]:
    """How many requests of a round were answered, refused (by whomever), or wait."""
    return each.answered, each.refused + each.declined, each.waiting


def totals(rounds: Iterable[Round]) -> tuple[int, int, int]:
    """The outcomes of several rounds together."""
    several = [(0, 0, 0), *map(outcomes, rounds)]
    answered, refused, waiting = map(sum, zip(*several, strict=True))
    return answered, refused, waiting


@dataclass(frozen=True, slots=True)
class Kept:
    """Messages that did not fit, by the reason."""

    reason: str
    messages: int


@dataclass(frozen=True, slots=True)
class StudySummary:
    """All that a page about a ledger shows."""

    title: str
    policy_id: str
    commits: int
    root: str
    """The digest of everything that was ever recorded, in order."""
    ended: bool
    guard: Filter
    people: int
    """How many are registered, whether they answered anything or not."""
    found: Audit | None
    """The audit of all who answered something; None if nobody did."""
    closed: frozenset[Subject]
    """Who is not asked any more, because something that did not fit arrived."""
    rounds: Sequence[Round]
    asked: Mapping[str, str]
    """The queries of the rounds by their names, in words."""
    kept: Sequence[Kept]


def summary_of(ledger: Ledger) -> StudySummary:
    """All of it, from a ledger; every decision is made again for that."""
    rounds, found, tip = ledger.rounds(), ledger.audit(), ledger.tip
    names = {each.query for each in rounds}
    reasons = Counter(each.reason for each in found.kept)
    return StudySummary(
        title=ledger.policy.study,
        policy_id=ledger.policy.content_id,
        commits=tip.commits,
        root=tip.root.hex(),
        ended=ledger.status(()).ended,
        guard=ledger.filter,
        people=len(ledger),
        found=found.audit,
        closed=frozenset(found.closed),
        rounds=rounds,
        asked={
            name: query_in_words(query, ledger.domain)
            for name, query in ledger.queries.items()
            if name in names
        },
        kept=[Kept(reason, messages) for reason, messages in reasons.most_common()],
    )


@dataclass(frozen=True, slots=True)
class Leftover:
    """How many people have how much of their budgets left, and all budgets together."""

    used_up: int
    partly: int
    untouched: int
    closed: int
    """Whose study is over: closed, or a budget that was not kept."""
    used: float
    """The share of all budgets that is used, of those who are not closed; 0 to 1."""
    left: float
    """The share that is left; what is missing from 1 is of those who are closed."""

    @property
    def people(self) -> int:
        return self.used_up + self.partly + self.untouched + self.closed


def leftover(study: StudySummary) -> Leftover:
    """Count them; a budget with less than a thousandth left is used up."""
    if study.found is None:
        shut = len(study.closed)
        rest = (study.people - shut) / max(1, study.people)
        return Leftover(0, 0, study.people - shut, shut, used=0.0, left=rest)
    frame, budget = study.found.frame, study.guard.budget.nearest
    closed = frame["subject"].is_in(list(study.closed))
    over = closed | ~frame["budget_kept"].fill_null(True)
    shut = int(over.sum()) + len(study.closed) - int(closed.sum())
    remaining = frame.filter(~over)["remaining"].to_numpy()
    used_up = int((remaining < budget / 1000).sum())
    untouched = study.people - len(remaining) - shut
    left = (float((remaining / budget).clip(0, 1).sum()) + untouched) / study.people
    return Leftover(
        used_up=used_up,
        partly=len(remaining) - used_up,
        untouched=untouched,
        closed=shut,
        used=(len(remaining) + untouched) / study.people - left,
        left=left,
    )
