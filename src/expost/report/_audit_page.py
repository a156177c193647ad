"""An audit as a page: whose budget was respected, how much was given away, and what that means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from expost.audits._audit import Audit, FilesRead, Histogram
from expost.filters import Filter
from expost.filters._outcomes import respected_cell
from expost.numbers import Enclosure
from expost.report._chart import Axis, Chart, Mark, VerticalBars, VerticalLine
from expost.report._formatting import budget_text, format_amount, format_remaining, with_count
from expost.report._page import bullets, figure, page, paragraph, section, side_by_side, table

__all__ = [
    "audit_columns",
    "audit_page",
    "format_people",
    "histogram",
    "other_filter",
    "promise_paragraphs",
    "verdict",
]

_LISTED = 100
_NAMED = 20


def audit_page(audit: Audit, *, name: str, date: str, content_id: str) -> str:
    """Write an audit as a page, for the person who is responsible for the data.

    Args:
        audit: The audit.
        name: The name of the log.
        date: The date of the page, as text.
        content_id: The digest of all audited files.
    """
    return page(
        section("What the budget promises", *promise_paragraphs(audit.filter)),
        section("How much was given away", _draw_losses(audit)),
        *_describe_breaches(audit),
        section("Who is nearest to the limit, or over it", _list_worst(audit)),
        section("What was checked, and what was not", bullets(_list_checks(audit))),
        about=f"Audit of {name}",
        summary=verdict(audit),
        file=name,
        date=date,
        content_id=content_id,
        budget=budget_text(audit.filter),
        facts=_list_facts(audit),
    )


def format_people(count: int) -> str:
    """Format a count of people."""
    return with_count(count, "person", "people")


def verdict(audit: Audit) -> str:
    """Say in one to three sentences whose budgets were respected."""
    everyone = format_people(len(audit))
    if audit.respected == len(audit):
        all_budgets = f"The budgets of all {everyone} who answered were"
        budgets = "The budget was" if len(audit) == 1 else all_budgets
        return f"{budgets} respected, at every question that was answered."
    parts = []
    if audit.broken:
        budgets = with_count(audit.broken, "person's budget was", "people's budgets were")
        parts.append(f"{budgets} not respected: a question was answered that had to be refused.")
    if audit.undecided:
        parts.append(f"For {format_people(audit.undecided)} it could not be decided.")
    parts.append(
        f"For {audit.respected:,} of {everyone} the budget was respected at every question."
    )
    return " ".join(parts)


def verdict_facts(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the counts of respected budgets and the largest losses, by name."""
    yield "respected", format_people(audit.respected)
    yield "not respected", format_people(audit.broken)
    if audit.undecided:
        yield "undecided", format_people(audit.undecided)
    yield "largest loss now", format_amount(_largest(audit, "upper"))
    yield "largest peak", format_amount(_largest(audit, "peak"))
    yield "basic composition", f"at most {format_amount(_largest(audit, 'basic'))}"


def scope_notes(audit: Audit | None) -> Iterator[str]:
    """Yield what holds for all numbers of an audit, and what was not decided."""
    yield "All numbers are bounds: losses are rounded up, and what remains is rounded down."
    if audit is not None and audit.undecided:
        yield (
            "Undecided means that the search for the exact limit was stopped: such a budget may "
            "have been respected or not. More nodes (--nodes) can decide it."
        )


def _list_facts(audit: Audit) -> Iterator[tuple[str, str]]:
    frame = audit.frame
    if audit.files is not None:
        yield "files read", f"{audit.files.count:,}"
    yield "people", f"{len(audit):,}"
    yield "answers", f"{int(frame['exchanges'].sum()):,}"
    yield "used up", f"{format_people(audit.exhausted)}, with less than a thousandth remaining"
    yield from verdict_facts(audit)


def _largest(audit: Audit, column: str) -> float:
    largest: Any = audit.frame[column].max()
    return float(largest)


def promise_paragraphs(filter_: Filter) -> Iterator[str]:
    """Yield paragraphs that explain a budget to a reader who has never heard of one."""
    limit = filter_.budget.enclosure.upper
    yield paragraph(
        "Every answer is blurred by chance before it leaves a device, so that no single answer "
        "says what is true of a person. Many answers together say more. The loss of a person "
        "measures how much all answers together can have told, in nats."
    )
    factor = f"{math.exp(limit):.3g}" if limit < 700 else "more than 10^300"
    if filter_.pure:
        yield paragraph(
            f"The budget bounds the loss: {filter_.limit}. If it is respected, anyone who sees "
            "all answers of a person, whatever else they know, cannot have changed the odds of "
            f"anything about that person by more than a factor of {factor}. Odds of one to "
            f"one become at most {factor} to one."
        )
    else:
        yield paragraph(
            f"The budget is {filter_.limit}. Devices that use this filter promise: for any set of "
            f"outcomes, its probability under one value is at most {factor} times its probability "
            "under another, plus delta. This bounds no single transcript. The loss that is shown "
            "here belongs to the answers that were really given, and it may be above the budget "
            "although the budget was respected."
        )
    yield paragraph(
        f"Before every question, the {filter_.kind} filter compares with the budget: "
        f"{filter_.compares}. If that is above the budget, the question has to be refused. "
        "Answering it breaks the budget, even if the loss stays below."
    )


def _draw_losses(audit: Audit) -> str:
    return side_by_side(
        histogram(
            audit,
            audit.histogram(),
            "loss now (nats)",
            "The losses of all people after their last answer.",
        ),
        histogram(
            audit,
            audit.histogram("peak"),
            "largest loss on the way (nats)",
            "The largest loss that each person had at any time. A loss can fall again; what was "
            "seen at its peak was seen.",
        ),
    )


def histogram(
    audit: Audit, spread: Histogram, label: str, caption: str, colour: str = "realized"
) -> str:
    """Draw the histogram of an amount over people, with the budget.

    Args:
        audit: The audit that names the budget.
        spread: The histogram.
        label: The name of the amount, for the axis.
        caption: A line below the figure.
        colour: The name of the colour of the bars.
    """
    limit = audit.filter.budget.enclosure.upper
    edges, counts = spread.edges, spread.counts
    marks: list[Mark] = [
        VerticalBars(edges, counts, colour, "people"),
        VerticalLine(limit, "ink", f"budget {format_amount(limit)}", "6 4"),
    ]
    top = max(1, *counts)
    chart = Chart(Axis(label, 0.0, 1.02 * edges[-1]), Axis("people", 0, 1.05 * top), marks)
    rows = [
        (f"{format_amount(low)} to {format_amount(high)}", f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    endless = ""
    if spread.infinite:
        people = format_people(spread.infinite)
        rows.append(("without any bound", f"{spread.infinite:,}"))
        endless = f" {people} with a loss that nothing bounds are not drawn."
    largest = max((high for high, n in zip(edges[1:], counts, strict=True) if n), default=0.0)
    return figure(
        chart,
        alt=f"How many people have which {label}: all are at most {format_amount(largest)}, "
        f"the budget is {format_amount(limit)}.{endless}",
        caption=caption + endless,
        data_table=table([label, "people"], rows),
    )


def _describe_breaches(audit: Audit) -> list[str]:
    if not audit.broken:
        return []
    parts = [
        paragraph(
            "For these people a question was answered although the filter refuses "
            f"it, given the answers before. The {audit.filter.kind} filter compares with the "
            f"budget: {audit.filter.compares}. So a loss below the budget does not show that a "
            "question was allowed. Their devices may have used another filter, or none."
        )
    ]
    refusals = dict(audit.refusals())
    if refusals:
        first, last = min(refusals), max(refusals)
        edges = [question - 0.5 for question in range(1, last + 2)]
        counts = [refusals.get(question, 0) for question in range(1, last + 1)]
        chart = Chart(
            Axis("number of the question", 0.5, last + 0.5).with_whole_ticks(),
            Axis("people", 0, 1.05 * max(counts)),
            [VerticalBars(edges, counts, "basic", "people")],
        )
        rows = [(f"{question:,}", f"{count:,}") for question, count in refusals.items()]
        parts.append(
            figure(
                chart,
                alt="The first question that had to be refused, and for how many people: "
                f"from number {first:,} to number {last:,}.",
                caption="The first question that had to be refused.",
                data_table=table(["question", "people"], rows),
            )
        )
    listed = audit.frame.filter(~audit.frame["budget_respected"]).head(_LISTED)
    unlisted = audit.broken - len(listed)
    caption = f"The first {len(listed):,}; {unlisted:,} more are in the table of losses."
    broken_rows = [_format_row(row) for row in listed.iter_rows(named=True)]
    listing = table(_HEAD, broken_rows, caption=caption if unlisted else "")
    return [section("Budgets that were not respected", *parts, listing)]


_HEAD = ["person", "answers", "loss now", "largest", "basic", "respected", "remaining"]


def _format_row(row: dict[str, Any]) -> tuple[str, ...]:
    # The remaining budget is rounded down: 0 if negligible, a dash if it was broken.
    return (
        str(row["subject"]),
        f"{row['exchanges']:,}",
        format_amount(Enclosure(row["lower"], row["upper"])),
        format_amount(row["peak"]),
        format_amount(row["basic"]),
        respected_cell(row["budget_respected"], row["first_refused"], noun="question"),
        "–" if row["budget_respected"] is False else format_remaining(row["remaining"]),
    )


_COLUMNS = (
    "subject", "answers", "loss now", "peak", "basic composition", "budget respected",
    "first refused", "remaining",
)  # fmt: skip


def audit_columns(audit: Audit) -> dict[str, Sequence[Any]]:
    """Return the table for spreadsheets: a row per subject, with amounts as the page shows them."""
    rows = (
        (
            row["subject"],
            row["exchanges"],
            format_amount(Enclosure(row["lower"], row["upper"])),
            format_amount(row["peak"]),
            format_amount(row["basic"]),
            respected_cell(row["budget_respected"], None),
            row["first_refused"],
            None if row["budget_respected"] is False else format_remaining(row["remaining"]),
        )
        for row in audit.frame.iter_rows(named=True)
    )
    return dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))


def _describe_files(read: FilesRead) -> Iterator[str]:
    files = with_count(read.count, "file was read", "files were read")
    without = f", {read.unasked:,} of them without any answer" if read.unasked else ""
    yield f"{files}{without}. Compare this with the number that you expect."
    if read.identical:
        names = [name for group in read.identical for name in group]
        yield (
            f"{format_people(len(names))} have the same transcript as another person: "
            f"{_list_names(names)}. "
            "People who answer few questions can agree by chance. A copied file looks the same."
        )
    if read.other_filters:
        people = with_count(
            len(read.other_filters),
            "person has a transcript that names",
            "people have transcripts that name",
        )
        other_filters = _list_names(list(map(other_filter, read.other_filters)))
        yield (
            f"{people} another filter than this audit: {other_filters}. "
            "Their answers were audited by the filter of this audit all the same."
        )


def other_filter(entry: tuple[str, Filter | None]) -> str:
    """Name a subject and the filter of its transcript."""
    name, filter_ = entry
    return f"{name} names {'no filter' if filter_ is None else budget_text(filter_)}"


def _list_names(names: list[str]) -> str:
    unlisted = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + unlisted


def _list_worst(audit: Audit) -> str:
    rows = [_format_row(row) for row in audit.worst()]
    caption = f"The {len(rows):,} with the largest losses on the way. All amounts are in nats."
    return table(_HEAD, rows, caption=caption)


def _list_checks(audit: Audit) -> Iterator[str]:
    yield (
        "Every answer of the log was decided again by this filter, given all answers "
        "of the same person before it. No secret is needed for that, and none was used."
    )
    yield "An answer that is not in the log cannot be audited. So it has to be complete."
    if audit.files is not None:
        yield from _describe_files(audit.files)
    yield (
        "The audit takes for granted that devices drew their answers with the probabilities that "
        "the queries state. Whether a client does so is checked by expost check-client."
    )
    yield from scope_notes(audit)
