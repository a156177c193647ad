"""A study as its page shows it: everything about all subjects, without their names.

These are plain records: a ledger fills them, and a page shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expost.answers import Subject
from expost.audits.result import Audit
from expost.filters import Filter
from expost.ledger import Ledger, Round
from expost.report.words import query_in_words

__all__ = [
    "OUTCOMES",
    "BudgetShares",
    "Quarantined",
    "StudySummary",
    "budget_shares",
    "outcomes",
    "summary_of",
    "totals",
]


OUTCOMES = ("answered", "refused", "not answered yet")
"""The possible outcomes of a request."""


def outcomes(each: Round) -> tuple[int, int, int]:
    """Return how many requests of a round were answered, refused (or declined), or wait."""
    return each.answered, each.refused + each.declined, each.waiting


def totals(rounds: Iterable[Round]) -> tuple[int, int, int]:
    """Add up the outcomes of several rounds."""
    several = [(0, 0, 0), *map(outcomes, rounds)]
    answered, refused, waiting = map(sum, zip(*several, strict=True))
    return answered, refused, waiting


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Quarantined messages, by the reason."""

    reason: str
    messages: int


@dataclass(frozen=True, slots=True)
class StudySummary:
    """Everything that a page about a ledger shows."""

    title: str
    policy_id: str
    commits: int
    root: str
    #: The digest of everything that was ever recorded, in order.
    ended: bool
    guard: Filter
    people: int
    #: How many are registered, whether they answered anything or not.
    found: Audit | None
    #: The audit of all subjects with an answer; None if there is none.
    suspended: frozenset[Subject]
    unconfirmed: frozenset[Subject]
    #: Subjects whose devices have to sync before anything else is asked.
    rounds: Sequence[Round]
    asked: Mapping[str, str]
    #: The queries of the rounds by their names, in words.
    quarantined: Sequence[Quarantined] = ()
    held: int = 0
    #: Subjects that are not suspended until an operator has looked at their messages.
    extras: int = 0
    #: Responses that only quarantined messages have; the audit counts them as answers.
    two_outcomes: int = 0
    #: Pairs of a subject and a key.
    lost_imports: int = 0
    marks: Sequence[str] = ()
    #: What happened to the study as a whole.

    @property
    def good(self) -> bool:
        """Whether every budget was respected, and no imported answer is lost."""
        return not self.lost_imports and (self.found is None or not self.found.broken)


def summary_of(ledger: Ledger) -> StudySummary:
    """Summarize a ledger; every decision is made again for that."""
    rounds, found, tip = ledger.rounds(), ledger.audit(), ledger.tip
    names = {each.query for each in rounds}
    reasons = Counter(each.reason for each in found.quarantined)
    held = {each.subject for each in found.quarantined if each.held} - set(found.suspended)
    return StudySummary(
        title=ledger.policy.study,
        policy_id=ledger.policy.content_id,
        commits=tip.number,
        root=tip.root.hex(),
        ended=ledger.status(()).ended,
        guard=ledger.filter,
        people=len(ledger),
        found=found.audit,
        suspended=frozenset(found.suspended),
        unconfirmed=frozenset(found.unconfirmed),
        rounds=rounds,
        asked={
            name: query_in_words(query, ledger.domain)
            for name, query in ledger.queries.items()
            if name in names
        },
        quarantined=[Quarantined(reason, number) for reason, number in reasons.most_common()],
        held=len(held),
        extras=len(found.extras),
        two_outcomes=len(found.two_outcomes),
        lost_imports=found.lost_imports,
        marks=found.marks,
    )


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """How many people have how much of their budgets remaining, and all budgets together."""

    used_up: int
    partly: int
    untouched: int
    unconfirmed: int
    suspended: int
    #: Suspended, or with a budget that was not respected.
    used: float
    #: The used share of all budgets, of people who are neither unconfirmed nor suspended; 0 to 1.
    remaining: float
    #: The remaining share. The rest belongs to unconfirmed and suspended people.

    @property
    def people(self) -> int:
        return self.used_up + self.partly + self.untouched + self.unconfirmed + self.suspended


def budget_shares(study: StudySummary) -> BudgetShares:
    """Count people by what remains; a budget with less than a thousandth remaining is used up."""
    suspended, unconfirmed = set(map(str, study.suspended)), set(map(str, study.unconfirmed))
    remaining, budget = np.zeros(0), study.guard.budget.nearest
    answered: set[str] = set()
    if study.found is not None:
        frame = study.found.frame
        # An audit writes the names of subjects as strings if some of them are.
        names = [str(name) for name in frame["subject"].to_list()]
        answered = set(names)
        broken = (~frame["budget_kept"].fill_null(True)).to_list()
        suspended |= {name for name, over in zip(names, broken, strict=True) if over}
        counted = [name not in suspended and name not in unconfirmed for name in names]
        remaining = frame["remaining"].to_numpy()[np.array(counted, dtype=np.bool_)]
    unconfirmed -= suspended
    untouched = study.people - len(answered | suspended | unconfirmed)
    used_up = int((remaining < budget / 1000).sum())
    total = max(1, study.people)
    share = (float((remaining / budget).clip(0, 1).sum()) + untouched) / total
    return BudgetShares(
        used_up=used_up,
        partly=len(remaining) - used_up,
        untouched=untouched,
        unconfirmed=len(unconfirmed),
        suspended=len(suspended),
        used=(len(remaining) + untouched) / total - share,
        remaining=share,
    )
