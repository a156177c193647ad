"""A study for its page: totals over all subjects without their names, and two figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from expost._format import format_count, format_percent, shorten
from expost.audits._audit import is_used_up
from expost.filters import Filter
from expost.ledger import Ledger, Round, StudyAudit
from expost.queries import Query
from expost.report._chart import PERCENT_TICKS, Axis, Chart, HorizontalBars, Mark, VerticalBars
from expost.report._formatting import queries_by_question, queries_in_words, query_name
from expost.report._page import figure, table

__all__ = [
    "OUTCOMES",
    "BudgetShares",
    "StudySummary",
    "budget_shares",
    "budgets_figure",
    "round_outcomes",
    "rounds_figure",
    "summary_of",
    "total_outcomes",
]

#: The possible outcomes of a request.
OUTCOMES = ("answered", "refused", "not answered yet")


def round_outcomes(round_: Round) -> tuple[int, int, int]:
    """Return how many requests of a round were answered, refused (or declined), or wait."""
    return round_.answered, round_.refused + round_.declined, round_.waiting


def total_outcomes(rounds: Iterable[Round]) -> tuple[int, int, int]:
    """Add up the outcomes of several rounds."""
    counts = [(0, 0, 0), *map(round_outcomes, rounds)]
    answered, refused, waiting = map(sum, zip(*counts, strict=True))
    return answered, refused, waiting


@dataclass(frozen=True, slots=True)
class StudySummary:
    """The content of a page about a ledger."""

    title: str
    policy_id: str
    commits: int
    root: str
    #: The digest of everything that was ever recorded, in order.
    ended: bool
    filter: Filter
    subjects: int
    #: How many are registered, whether they answered anything or not.
    audit: StudyAudit
    rounds: Sequence[Round]
    query_texts: Mapping[str, str]
    #: The queries of the rounds by their names, in words.


def summary_of(ledger: Ledger) -> StudySummary:
    """Summarize a ledger; every decision is made again for that."""
    groups = queries_by_question(ledger.queries)
    rounds, tip = _merge_rounds(ledger.rounds(), groups), ledger.tip
    names = {round_.query for round_ in rounds}
    return StudySummary(
        title=ledger.policy.study,
        policy_id=ledger.policy.content_id,
        commits=tip.commit_number,
        root=tip.root.hex(),
        ended=ledger.status(()).ended,
        filter=ledger.filter,
        subjects=len(ledger),
        audit=ledger.audit(),
        rounds=rounds,
        query_texts={
            name: queries_in_words(group.values(), ledger.domain)
            for name, group in groups.items()
            if name in names
        },
    )


def _merge_rounds(
    rounds: Iterable[Round], groups: Mapping[str, Mapping[str, Query]]
) -> list[Round]:
    """Add up the rounds of the saturating queries about one question under one key."""
    group_of = {name: label for label, group in groups.items() for name in group}
    merged: dict[tuple[str | None, str], Round] = {}
    for round_ in rounds:
        name = group_of[round_.query]
        same = merged.get((round_.key, name), Round(round_.key, name, 0, 0, 0, 0))
        counts = zip(astuple(same)[2:], astuple(round_)[2:], strict=True)
        merged[round_.key, name] = Round(round_.key, name, *map(sum, counts))
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Counts of subjects by their remaining budgets, and the shares of all budgets together."""

    used_up: int
    partly: int
    untouched: int
    unconfirmed: int
    suspended: int
    #: Suspended, or with a budget that was not respected.
    used: float
    #: The used share of all budgets, of subjects who are neither unconfirmed nor suspended; 0 to 1.
    remaining: float
    #: The remaining share. The rest belongs to unconfirmed and suspended subjects.

    @property
    def subjects(self) -> int:
        return self.used_up + self.partly + self.untouched + self.unconfirmed + self.suspended


def budget_shares(study: StudySummary) -> BudgetShares:
    """Count subjects by what remains; a budget with less than a thousandth remaining is used up."""
    suspended = set(map(str, study.audit.suspended))
    unconfirmed = set(map(str, study.audit.unconfirmed))
    remaining = np.zeros(0)
    budget = min(filter_.budget for filter_ in study.filter.members).nearest
    answered: set[str] = set()
    if study.audit.audit is not None:
        frame = study.audit.audit.frame
        # An audit writes the names of subjects as strings if some of them are.
        names = [str(name) for name in frame["subject"].to_list()]
        answered = set(names)
        broken = (~frame["budget_respected"].fill_null(True)).to_list()
        suspended |= {name for name, over in zip(names, broken, strict=True) if over}
        counted = [name not in suspended and name not in unconfirmed for name in names]
        remaining = frame["remaining"].to_numpy()[np.array(counted, dtype=np.bool_)]
    unconfirmed -= suspended
    untouched = study.subjects - len(answered | suspended | unconfirmed)
    used_up = int(is_used_up(remaining, study.filter).sum())
    total = max(1, study.subjects)
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


#: The largest number of rounds that are drawn; more bars would be as thin as lines.
_DRAWN = 60

#: The longest key that is shown as a whole: a table of them has to fit on paper.
_LONGEST = 24

_COLORS = ("realized", "ochre", "grey")
_SUSPENDED = "suspended or not respected"


def budgets_figure(shares: BudgetShares) -> str:
    """Draw subjects by what remains of their budgets, above all budgets together."""
    total = shares.subjects
    counts = [
        ("realized", "used up", shares.used_up, shares.used),
        ("grey", "partly used", shares.partly, 0.0),
        ("allowed", "not used", shares.untouched, shares.remaining),
        ("ochre", "unconfirmed", shares.unconfirmed, shares.unconfirmed / total),
        ("ink", _SUSPENDED, shares.suspended, shares.suspended / total),
    ]
    marks: list[Mark] = []
    lower = upper = 0.0
    for color, label, count, share in counts:
        ends = (lower, lower + share), (upper, upper + count / total)
        if count or share > 0:
            text = f"{label}: {format_count(count, 'subject')}" if count else label
            marks.append(HorizontalBars(ends, color, text, thickness=0.7))
        lower, upper = ends[0][1], ends[1][1]
    chart = Chart(
        Axis("", 0, 1, PERCENT_TICKS),
        Axis("", -0.5, 1.5, [(0, "budgets"), (1, "subjects")]),
        marks,
        height=110,
    )
    rows = [
        *((label, f"{count:,}", format_percent(count / total)) for _, label, count, _ in counts),
        ("used, of all budgets", "", format_percent(shares.used)),
        ("remaining, of all budgets", "", format_percent(shares.remaining)),
    ]
    used = (
        f"{format_percent(shares.used)} of all budgets together is used and "
        f"{format_percent(shares.remaining)} remains"
    )
    excluded = shares.unconfirmed or shares.suspended
    rest_note = (
        "; the rest belongs to subjects who are unconfirmed or suspended" if excluded else ""
    )
    return figure(
        chart,
        alt=", ".join(f"{label}: {format_count(count, 'subject')}" for _, label, count, _ in counts)
        + f". {used}.",
        caption="Above: subjects by what remains of their budgets; used up: less than a thousandth "
        f"remains. Below: all budgets together. {used}{rest_note}.",
        data_table=table(["", "subjects", "share"], rows),
    )


def rounds_figure(rounds: Sequence[Round]) -> str:
    """Draw answers, refusals and open requests as bars, round by round."""
    drawn = rounds[-_DRAWN:]
    first = len(rounds) - len(drawn) + 1
    edges = [first - 0.5 + index for index in range(len(drawn) + 1)]
    together = total_outcomes(drawn)
    marks: list[Mark] = []
    floors = [0] * len(drawn)
    for index, (outcome, color) in enumerate(zip(OUTCOMES, _COLORS, strict=True)):
        heights = [round_outcomes(round_)[index] for round_ in drawn]
        if any(heights):
            marks.append(VerticalBars(edges, heights, color, outcome, floors))
        floors = [floor + height for floor, height in zip(floors, heights, strict=True)]
    rows = [
        (
            f"{first + index:,}",
            "generated keys" if round_.key is None else shorten(round_.key, _LONGEST),
            query_name(round_.query),
            *(f"{count:,}" for count in round_outcomes(round_)),
        )
        for index, round_ in enumerate(drawn)
    ]
    earlier = f" The first {first - 1:,} rounds are not drawn." if first > 1 else ""
    totals_text = ", ".join(
        f"{count:,} {label}" for label, count in zip(OUTCOMES, together, strict=True) if count
    )
    return figure(
        Chart(
            Axis("round", edges[0], edges[-1]).with_whole_ticks(),
            Axis.of_counts("subjects", max(floors)),
            marks,
        ),
        alt=f"{format_count(len(drawn), 'round')}, over all of them: {totals_text}.{earlier}",
        caption="A round is one query under one key, or all saturating queries about one "
        "question, in the order of the first requests. Refusals are decided from earlier answers "
        f"alone.{earlier}",
        data_table=table(["round", "key", "query", *OUTCOMES], rows),
    )
