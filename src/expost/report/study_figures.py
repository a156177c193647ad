"""The figures of a study: the remaining budgets, and the outcomes of every round."""

from __future__ import annotations

import re
from collections.abc import Sequence

from expost.cards import percent
from expost.errors import printable
from expost.ledger import Round
from expost.report.audit_page import people
from expost.report.chart import Axis, Bars, Chart, Mark, Rows
from expost.report.page import figure, table
from expost.report.study_summary import OUTCOMES, BudgetShares, outcomes, totals

__all__ = ["query_text", "rounds_figure", "strip"]

_DRAWN = 60
"""The largest number of rounds that are drawn; more bars would be as thin as lines."""

_LONGEST = 24
"""The longest name that is shown as a whole: a table of them has to fit on paper."""

_CONTENT_ID = re.compile(r"[0-9a-f]{64}")
_COLOURS = ("realized", "ochre", "grey")
_SUSPENDED = "suspended or not respected"


def strip(shares: BudgetShares) -> str:
    """Draw people by what remains of their budgets, above all budgets together."""
    total = shares.people
    counts = [
        ("realized", "used up", shares.used_up, shares.used),
        ("grey", "partly used", shares.partly, 0.0),
        ("allowed", "not used", shares.untouched, shares.remaining),
        ("ochre", "unconfirmed", shares.unconfirmed, shares.unconfirmed / total),
        ("ink", _SUSPENDED, shares.suspended, shares.suspended / total),
    ]
    marks: list[Mark] = []
    lower = upper = 0.0
    for colour, label, number, share in counts:
        ends = (lower, lower + share), (upper, upper + number / total)
        if number or share > 0:
            text = f"{label}: {people(number)}" if number else label
            marks.append(Rows(ends, colour, text, thickness=0.7))
        lower, upper = ends[0][1], ends[1][1]
    tenths = [(tenth / 10, f"{10 * tenth} %" if tenth % 5 == 0 else "") for tenth in range(11)]
    chart = Chart(
        Axis("", 0, 1, tenths),
        Axis("", -0.5, 1.5, [(0, "budgets"), (1, "people")]),
        marks,
        height=110,
    )
    rows = [
        *((label, f"{number:,}", percent(number / total)) for _, label, number, _ in counts),
        ("of all budgets: used", "", percent(shares.used)),
        ("of all budgets: remaining", "", percent(shares.remaining)),
    ]
    used = (
        f"Of all budgets together, {percent(shares.used)} is used and "
        f"{percent(shares.remaining)} remains"
    )
    apart = shares.unconfirmed or shares.suspended
    others = "; the rest belongs to people who are unconfirmed or suspended" if apart else ""
    return figure(
        chart,
        alt=f"{', '.join(f'{label}: {people(number)}' for _, label, number, _ in counts)}. {used}.",
        caption="Above, people by what remains of their budgets: used up means less than a "
        f"thousandth. Below, all budgets together. {used}{others}.",
        numbers=table(["", "people", "share"], rows),
    )


def rounds_figure(rounds: Sequence[Round]) -> str:
    """Draw answers, refusals and open requests as bars, round by round."""
    drawn = rounds[-_DRAWN:]
    first = len(rounds) - len(drawn) + 1
    edges = [first - 0.5 + place for place in range(len(drawn) + 1)]
    together = totals(drawn)
    marks: list[Mark] = []
    floors = [0] * len(drawn)
    for place, (outcome, colour) in enumerate(zip(OUTCOMES, _COLOURS, strict=True)):
        heights = [outcomes(each)[place] for each in drawn]
        if any(heights):
            marks.append(Bars(edges, heights, colour, outcome, floors))
        floors = [floor + height for floor, height in zip(floors, heights, strict=True)]
    across = Axis("round", edges[0], edges[-1])
    whole = [(at, text) for at, text in across.labelled if at == int(at)]
    rows = [
        (
            f"{first + place:,}",
            _key_text(each.key),
            query_text(each.query),
            *(f"{count:,}" for count in outcomes(each)),
        )
        for place, each in enumerate(drawn)
    ]
    earlier = f" The first {first - 1:,} rounds are not drawn." if first > 1 else ""
    told = ", ".join(
        f"{count:,} {label}" for label, count in zip(OUTCOMES, together, strict=True) if count
    )
    return figure(
        Chart(
            Axis(across.label, across.low, across.high, whole),
            Axis("people", 0, 1.05 * max(1, *floors)),
            marks,
        ),
        alt=f"{len(drawn):,} round{'s' * (len(drawn) != 1)}, over all of them: {told}.{earlier}",
        caption="A round is one query under one key, in the order of the first requests. "
        f"Refusals are decided from earlier answers alone.{earlier}",
        numbers=table(["round", "key", "query", *OUTCOMES], rows),
    )


def query_text(name: str) -> str:
    """Return the name of a query, or the beginning of its content id if it has no name."""
    return printable(name[:12] if _CONTENT_ID.fullmatch(name) else _cut(name))


def _key_text(key: str | None) -> str:
    if key is None:
        return "generated keys"
    return printable(_cut(key))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
