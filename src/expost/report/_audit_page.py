"""An audit as a page: verdict, losses, the promise, the questions, and the limits of the audit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from expost._format import format_count, format_factor, format_remaining, shorten
from expost.audits._audit import Audit, FilesRead, Histogram
from expost.filters import Filter
from expost.filters._outcomes import respected_cell
from expost.numbers import Enclosure
from expost.report._chart import Axis, Chart, FullLine, Mark, VerticalBars
from expost.report._formatting import (
    budget_text,
    domain_in_words,
    filter_name,
    format_amount,
    loss_text,
    queries_by_question,
    queries_in_words,
    query_name,
    with_count,
)
from expost.report._page import bullets, figure, page, paragraph, section, side_by_side, table

__all__ = [
    "MISSING_ANSWERS",
    "NOT_COVERED",
    "audit_columns",
    "audit_page",
    "histogram",
    "other_filter",
    "promise_paragraphs",
    "scope_notes",
    "verdict_facts",
    "verdict_sentences",
]

MISSING_ANSWERS = "answers that are missing from the log, such as the last ones of a subject"
_IDENTIFIED = (
    "SHA-256 of the names and bytes of the log, the bytes of the queries, and the filter. "
    "To compare it, audit the same files again: expost audit prints it."
)
_WORST = "The subjects with the largest peaks. Amounts are in nats."
#: The longest list of subjects or questions.
_NAMED = 20


def audit_page(
    audit: Audit, *, name: str, date: str, files_digest: str, expected: int | None = None
) -> str:
    """Write an audit as a page, for the person who is responsible for the data.

    Args:
        audit: The audit.
        name: The name of the log.
        date: The date of the page, as text.
        files_digest: The digest of all audited files.
        expected: The number of subjects that the auditor expected, if it was checked.
    """
    first, *lead = verdict_sentences(audit)
    peak, limit = _format_largest(audit, "peak"), audit.filter.limit
    lead.append(f"The largest loss at any time, in nats: {peak}; the budget: {limit}.")
    return page(
        *_describe_breaches(audit),
        section("How much was revealed", _draw_losses(audit)),
        section("Largest losses", _table_of(audit.worst(), _WORST)),
        section("What the budget promises", *promise_paragraphs(audit.filter)),
        section("Questions", _list_queries(audit)),
        section("Checks of this audit", bullets(_list_checks(audit, expected))),
        section("Not covered by this audit", bullets((f"A{MISSING_ANSWERS[1:]}.", *NOT_COVERED))),
        title=f"Audit of {shorten(name)}",
        verdict=first,
        breach=audit.broken > 0,
        lead=lead,
        file=name,
        date=date,
        ids=[("files digest", files_digest, _IDENTIFIED)],
        budget=budget_text(audit.filter),
        facts=_list_facts(audit),
    )


def verdict_sentences(audit: Audit) -> Iterator[str]:
    """Yield one to three sentences about the budgets that were respected."""
    everyone = format_count(len(audit), "subject")
    if audit.respected == len(audit):
        all_budgets = f"The budgets of all {everyone} who answered were"
        budgets = "The budget was" if len(audit) == 1 else all_budgets
        yield f"{budgets} respected at every question that was answered."
        return
    if audit.broken:
        budgets = with_count(audit.broken, "subject's budget was", "subjects' budgets were")
        yield f"{budgets} not respected: a question was answered that the filter refuses."
    if audit.undecided:
        undecided = format_count(audit.undecided, "subject")
        yield f"It is undecided whether the budget of {undecided} was respected."
    yield f"The budget was respected at every question for {audit.respected:,} of {everyone}."


def verdict_facts(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the counts of respected budgets and the largest losses, by name."""
    yield "respected", format_count(audit.respected, "subject")
    yield "not respected", format_count(audit.broken, "subject")
    if audit.undecided:
        yield "undecided", format_count(audit.undecided, "subject")
    yield "largest loss now", _format_largest(audit, "upper")
    yield "largest peak", _format_largest(audit, "peak")
    yield "largest basic", _format_largest(audit, "basic")


def scope_notes(audit: Audit | None) -> Iterator[str]:
    """Yield the notes about all numbers of an audit, and about undecided budgets."""
    yield (
        "All amounts are in nats, and all are bounds: losses are rounded up, and the remaining "
        "budget is rounded down."
    )
    if audit is not None and audit.undecided:
        yield (
            "Undecided means that the search for the exact limit stopped early: such a budget may "
            "have been respected or not. More nodes (--nodes) can decide it."
        )


def _list_facts(audit: Audit) -> Iterator[tuple[str, str]]:
    if audit.files is not None:
        yield "files read", f"{audit.files.count:,}"
    yield "domain", domain_in_words(audit.plan.domain)
    yield "questions", f"{len(audit.plan.queries):,}"
    yield "subjects", f"{len(audit):,}"
    yield "answers", f"{int(audit.frame['exchanges'].sum()):,}"
    used_up = format_count(audit.used_up, "subject")
    where = " where most was used" if audit.levels else ""
    yield "used up", f"{used_up}, with less than a thousandth remaining{where}"
    yield from verdict_facts(audit)


def _format_largest(audit: Audit, column: str) -> str:
    largest: Any = audit.frame[column].max()
    return loss_text(largest)


def _list_queries(audit: Audit) -> str:
    domain, queries = audit.plan.domain, audit.plan.queries
    groups = queries_by_question(queries)
    rows = [
        (query_name(name), queries_in_words(group.values(), domain))
        for name, group in itertools.islice(groups.items(), _NAMED)
    ]
    unlisted = len(groups) - len(rows)
    caption = "Every question that an answer of the log can belong to, with its epsilon."
    if unlisted:
        caption = f"The first {len(rows):,} questions with their epsilons; {unlisted:,} more exist."
    return table(["question", "asked about"], rows, caption=caption, of_text=True)


def promise_paragraphs(filter_: Filter) -> Iterator[str]:
    """Yield paragraphs that explain a budget to a reader who has never heard of one."""
    if filter_.is_at_level or len(filter_.members) > 1:
        yield paragraph(
            "Chance blurs every answer before it leaves a device. The loss of a subject measures "
            "how much all answers of this subject together reveal, in nats."
        )
        for one in filter_.members:
            yield paragraph(_promise_of(one))
        return
    yield paragraph(
        "Chance blurs every answer before it leaves a device. The loss of a subject measures how "
        "much all answers of this subject together reveal, in nats."
    )
    factor = format_factor(filter_.budget.enclosure.upper)
    if filter_.pure:
        yield paragraph(
            f"The budget bounds the loss: {filter_.limit}. If it was respected, all answers of a "
            "subject together change the odds of any statement about this subject by a factor of "
            f"at most {factor}, whatever else the reader of the answers knows. Odds of one to one "
            f"become at most {factor} to one."
        )
    else:
        yield paragraph(
            f"The budget is {filter_.limit}. Devices that use this filter promise: the probability "
            f"of any set of outcomes under one value is at most {factor} times its probability "
            "under another, plus delta. This bounds no single transcript. A loss on this page "
            "belongs to the answers that were given. It may be above the budget although the "
            "budget was respected."
        )
    yield paragraph(
        f"Before every question, the {filter_name(filter_)} compares this with the budget: "
        f"{filter_.compares}. If it is above the budget, the device must refuse the question. "
        "Answering it breaks the budget, even if the loss stays below."
    )


def _promise_of(filter_: Filter) -> str:
    """Explain one of several budgets, or one that is about less than the person as a whole."""
    factor = format_factor(filter_.budget.enclosure.upper)
    if not filter_.pure:
        return f"A budget of {filter_.limit} is about the person as a whole."
    promise = (
        f"The {filter_name(filter_)} bounds the loss about {filter_.level.about}: "
        f"{filter_.budget}. If it was respected, all answers of a subject together change the odds "
        f"of any statement about that by a factor of at most {factor}."
    )
    if not filter_.is_at_level:
        return promise
    gap = f"{filter_.level.gap} The losses on this page are about the person as a whole."
    return f"{promise} {gap}"


def _draw_losses(audit: Audit) -> str:
    return side_by_side(
        histogram(
            audit,
            audit.histogram(),
            "loss now (nats)",
            "The losses of all subjects after their last answer.",
        ),
        histogram(
            audit,
            audit.histogram("peak"),
            "largest loss at any time (nats)",
            "The peak of each subject. A loss can fall again, but a reader of the first answers "
            "alone may have learned as much as the peak.",
        ),
    )


def histogram(
    audit: Audit, spread: Histogram, label: str, caption: str, color: str = "realized"
) -> str:
    """Draw the histogram of an amount over people, with the budget.

    Args:
        audit: The audit that names the budget.
        spread: The histogram.
        label: The name of the amount, for the axis.
        caption: A line below the figure.
        color: The name of the color of the bars.
    """
    budget = audit.filter.budget_of_person
    edges, counts = spread.edges, spread.counts
    marks: list[Mark] = [VerticalBars(edges, counts, color)]
    # A budget at a level does not bound these amounts, which are about the person as a whole.
    described = "no budget is about the person as a whole"
    if budget is not None:
        limit = budget.enclosure.upper
        marks.append(FullLine(limit, "ink", f"budget {format_amount(limit)}", "6 4"))
        described = f"the budget is {format_amount(limit)}"
    axis = Axis(label, 0.0, 1.02 * edges[-1])
    rows = [
        (f"{format_amount(low)} to {format_amount(high)}", f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    endless = ""
    if spread.infinite:
        subjects = format_count(spread.infinite, "subject")
        rows.append(("unbounded", f"{spread.infinite:,}"))
        endless = f" {subjects} with an unbounded loss: not drawn."
    largest = max((high for high, n in zip(edges[1:], counts, strict=True) if n), default=0.0)
    return figure(
        Chart(axis, Axis.of_counts("subjects", max(counts)), marks),
        alt=f"Subjects by their {label}: all are at most {format_amount(largest)}, "
        f"{described}.{endless}",
        caption=caption + endless,
        data_table=table([label, "subjects"], rows),
    )


def _describe_breaches(audit: Audit) -> list[str]:
    if not audit.broken:
        return []
    parts = [
        paragraph(
            "Each of these subjects answered a question that the filter refuses after the earlier "
            "answers. A loss below the budget does not show that a question was allowed. The "
            f"{filter_name(audit.filter)} compares this with the budget: {audit.filter.compares}. "
            "The devices may have used another filter, or none."
        )
    ]
    refusals = dict(audit.refusals())
    if refusals:
        first, last = min(refusals), max(refusals)
        edges = [question - 0.5 for question in range(1, last + 2)]
        counts = [refusals.get(question, 0) for question in range(1, last + 1)]
        chart = Chart(
            Axis("number of the question", 0.5, last + 0.5).with_whole_ticks(),
            Axis.of_counts("subjects", max(counts)),
            [VerticalBars(edges, counts, "basic")],
        )
        rows = [(f"{question:,}", f"{count:,}") for question, count in refusals.items()]
        parts.append(
            figure(
                chart,
                alt="Subjects by the first question that the filter refuses: "
                f"from number {first:,} to number {last:,}.",
                caption="The first question that the filter refuses.",
                data_table=table(["question", "subjects"], rows),
            )
        )
    listed = audit.frame.filter(~audit.frame["budget_respected"]).head(_NAMED)
    unlisted = audit.broken - len(listed)
    caption = f"The first {len(listed):,}; {unlisted:,} more are in the table that --csv writes."
    listing = _table_of(listed.iter_rows(named=True), caption if unlisted else "")
    return [section("Budgets that were not respected", *parts, listing)]


_COLUMNS = (
    "subject", "respected", "first refused", "loss now", "peak", "basic composition", "remaining",
    "answers",
)  # fmt: skip


def audit_columns(audit: Audit) -> dict[str, Sequence[Any]]:
    """Return the table for spreadsheets: a row per subject, with amounts as the page shows them."""
    rows = map(_format_row, audit.frame.iter_rows(named=True))
    return dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))


def _format_row(row: dict[str, Any]) -> tuple[Any, ...]:
    respected = row["budget_respected"]
    return (
        row["subject"],
        respected_cell(respected, None),
        row["first_refused"],
        loss_text(Enclosure(row["lower"], row["upper"])),
        loss_text(row["peak"]),
        loss_text(row["basic"]),
        None if respected is False else format_remaining(row["remaining"]),
        row["exchanges"],
    )


def _table_of(rows: Iterable[dict[str, Any]], caption: str) -> str:
    cells = [["–" if cell is None else cell for cell in _format_row(row)] for row in rows]
    return table(_COLUMNS, cells, caption=caption)


def _describe_files(read: FilesRead) -> Iterator[str]:
    files = with_count(read.count, "file was read", "files were read")
    without = f", {read.unasked:,} of them without any answer" if read.unasked else ""
    yield f"{files}{without}. Compare this with the number that you expect."
    if read.identical:
        names = [name for group in read.identical for name in group]
        yield (
            f"{format_count(len(names), 'subject')} have the same transcript as another one: "
            f"{_list_names(names)}. "
            "Subjects who answer few questions can agree by chance. A copied file looks the same."
        )
    if read.other_filters:
        names_another = with_count(len(read.other_filters), "transcript names", "transcripts name")
        other_filters = _list_names(list(map(other_filter, read.other_filters)))
        yield (
            f"{names_another} another filter than this audit: {other_filters}. "
            "The filter of this audit decided all answers."
        )


def other_filter(entry: tuple[str, Filter | None]) -> str:
    """Name a subject and the filter of its transcript."""
    name, filter_ = entry
    return f"{name} names {'no filter' if filter_ is None else budget_text(filter_)}"


def _list_names(names: list[str]) -> str:
    unlisted = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + unlisted


def _list_checks(audit: Audit, expected: int | None) -> Iterator[str]:
    yield (
        "The filter decided every answer of the log again, after all earlier answers of the same "
        "subject. That needs no secret, and none was used."
    )
    yield (
        "So the verdict is about every answer along the way. The end of a log proves nothing about "
        "the way there: answers can cancel, and a loss can fall again."
    )
    if audit.files is not None:
        yield from _describe_files(audit.files)
    if expected is not None:
        yield f"The log has the expected number of subjects: {expected:,} (--expect)."
    yield from scope_notes(audit)


#: Limits of every audit, whatever it reads.
NOT_COVERED = (
    "Whether a device would have refused a question. A respected budget shows that no answer "
    "broke it, not that the device asked its filter.",
    "Whether devices draw answers with the probabilities that the queries state. "
    "expost check-client tests that.",
    "Whether a subject answers under two names, or in another study. The budgets then add up.",
    "A value that changed between answers without being declared as changing.",
)
