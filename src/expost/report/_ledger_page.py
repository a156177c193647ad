"""A study as a page: remaining budgets, rounds, losses, and what is out of the ordinary.

It names no subject. The odometer of one subject is added on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from expost.audits._audit import Audit
from expost.ledger import Round, StudyAudit
from expost.numbers import Enclosure
from expost.report._audit_page import (
    format_people,
    histogram,
    promise_paragraphs,
    scope_notes,
    verdict,
    verdict_facts,
)
from expost.report._explanation import Explanation, closing_sentences
from expost.report._formatting import budget_text, with_count
from expost.report._page import bullets, page, paragraph, section, side_by_side, table
from expost.report._sentences import NOISY, breach_sentences
from expost.report._study import (
    OUTCOMES,
    StudySummary,
    budget_shares,
    budgets_figure,
    query_text,
    rounds_figure,
    total_outcomes,
)
from expost.report._transcript_page import learned_table, odometer_figure

__all__ = ["OneSubject", "ledger_page"]


@dataclass(frozen=True, slots=True)
class OneSubject:
    """A subject whose odometer is on the page."""

    name: str
    explanation: Explanation
    losses: Sequence[Enclosure]
    #: At the start and after each exchange.


def ledger_page(
    study: StudySummary, *, name: str, date: str, subject: OneSubject | None = None
) -> str:
    """Write a study as a page.

    Args:
        study: The study.
        name: The name of the ledger.
        date: The day that the page describes.
        subject: A subject whose odometer is added; without it, the page names no subject.
    """
    sections = [
        *_describe_recoveries(study.audit),
        section("What the budget promises", *promise_paragraphs(study.filter)),
    ]
    if study.people:
        sections = [
            section("Remaining budgets", budgets_figure(budget_shares(study))),
            section("What was asked", *_query_tables(study)),
            *([] if study.audit.audit is None else [_draw_losses(study.audit.audit)]),
            *([] if subject is None else [_describe_subject(subject)]),
            section("Quarantined messages", *_describe_messages(study.audit)),
            *sections,
            section("What was checked, and what was not", bullets(_list_checks(study))),
        ]
    return page(
        *sections,
        about=f"The study {study.title}" if study.title else name,
        summary=_summarize(study),
        file=name,
        date=date,
        content_id=study.root,
        budget=budget_text(study.filter),
        facts=_list_facts(study),
        first=_list_alarms(study),
    )


def _list_alarms(study: StudySummary) -> Iterator[str]:
    audit, lost = study.audit.audit, study.audit.lost_imports
    if audit is not None and audit.broken:
        yield verdict(audit)
    if lost:
        lost_text = with_count(lost, "imported answer is lost", "imported answers are lost")
        yield (
            f"{lost_text}: a restored backup does not have them. "
            "The losses on this page are without them."
        )


def _summarize(study: StudySummary) -> str:
    audit, over = study.audit.audit, "The study has ended." if study.ended else "The study is open."
    if not study.people:
        return f"No one is registered so far. {over}"
    if audit is None:
        return " ".join([*_list_unconfirmed(study), f"No one has answered anything so far. {over}"])
    parts = []
    if len(audit) < study.people:
        parts.append(f"{len(audit):,} of {format_people(study.people)} have answered something.")
    if not audit.broken:
        parts.append(verdict(audit))
    used_up = budget_shares(study).used_up
    if used_up:
        people = with_count(used_up, "person has used up the", "people have used up their")
        parts.append(f"{people} budget.")
    return " ".join([*parts, *_list_unconfirmed(study), over])


def _list_unconfirmed(study: StudySummary) -> Iterator[str]:
    count = len(study.audit.unconfirmed)
    if count:
        yield (
            f"{with_count(count, 'person is', 'people are')} unconfirmed: their devices have to "
            "sync before anything else is asked, and may have answers that this ledger lacks."
        )


def _list_facts(study: StudySummary) -> Iterator[tuple[str, str]]:
    yield "policy", study.policy_id
    yield "commits", f"{study.commits:,}"
    yield "people", f"{study.people:,}"
    yield "suspended", format_people(len(study.audit.suspended))
    yield "unconfirmed", format_people(len(study.audit.unconfirmed))
    audit, extras = study.audit.audit, len(study.audit.extras)
    if audit is None:
        return
    yield "answers", f"{int(audit.frame['exchanges'].sum()) - extras:,}"
    if extras:
        yield "extras", f"{extras:,}"
    _, refused, waiting = total_outcomes(study.rounds)
    yield "refusals", f"{refused:,}"
    if waiting:
        yield "not answered yet", f"{waiting:,}"
    yield from verdict_facts(audit)


def _query_tables(study: StudySummary) -> Iterator[str]:
    if not study.rounds:
        yield paragraph("Nothing was asked so far.")
        return
    yield rounds_figure(study.rounds)
    by_query: dict[str, list[Round]] = {}
    for round_ in study.rounds:
        by_query.setdefault(round_.query, []).append(round_)
    rows = [
        (
            query_text(query),
            study.query_texts[query],
            *(f"{count:,}" for count in total_outcomes(same)),
        )
        for query, same in by_query.items()
    ]
    head = ["query", "asked about", *OUTCOMES]
    yield table(
        head, rows, caption="Every query, by its name or the beginning of its id.", of_text=True
    )


def _draw_losses(audit: Audit) -> str:
    drawn = side_by_side(
        histogram(
            audit,
            audit.histogram("upper", "basic"),
            "loss now (nats)",
            "What anyone who sees all answers of a person can have learned, at most. An observer "
            "of only the first answers may have learned more, up to the peak.",
        ),
        histogram(
            audit,
            audit.histogram("basic", "upper"),
            "basic composition (nats)",
            "The sum of the epsilons of the same answers, whatever these are.",
            "basic",
        ),
    )
    return section("How much was revealed", drawn)


def _describe_subject(subject: OneSubject) -> str:
    explanation = subject.explanation
    if not explanation.exchanges:
        body = [paragraph("Nothing was answered so far.")]
    else:
        body = [
            paragraph(*breach_sentences(explanation.replay)),
            paragraph(*closing_sentences(explanation)),
            odometer_figure(explanation, subject.losses),
            paragraph(f"Budget respected: {explanation.replay.respected_text}. {NOISY}"),
            learned_table(explanation),
        ]
    return section(f"One person: {subject.name}", *body)


def _describe_messages(audit: StudyAudit) -> Iterator[str]:
    messages, suspended, extras = len(audit.quarantined), len(audit.suspended), len(audit.extras)
    if not messages and not suspended:
        yield paragraph("None: every message fit, and no one is suspended.")
        return
    sentences = []
    if messages:
        sentences.append(
            f"{with_count(messages, 'message was', 'messages were')} quarantined. "
            "They did not fit, and are stored apart from the answers."
        )
    sentences.append(
        f"{with_count(suspended, 'person is', 'people are')} suspended: nothing more "
        "is asked unless an operator can resolve it. Earlier answers still count."
    )
    held = len({entry.subject for entry in audit.quarantined if entry.held} - {*audit.suspended})
    if held:
        people = with_count(held, "person waits", "people wait")
        sentences.append(f"{people} for an operator.")
    yield paragraph(*sentences)
    if extras:
        yield paragraph(
            f"{with_count(extras, 'response was', 'responses were')} revealed by these messages "
            "alone. Such extras count as answers in every loss and verdict on this page."
        )
    if messages:
        reasons = Counter(entry.reason for entry in audit.quarantined)
        rows = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
        yield table(["reason", "messages"], rows)


def _describe_recoveries(audit: StudyAudit) -> Iterator[str]:
    """Yield a section about recoveries and rollbacks, if there were any."""
    lines, count = list(audit.marks), len(audit.two_outcomes)
    if count:
        lines.append(
            f"{with_count(count, 'key has', 'keys have')} two outcomes for a person, because a "
            "restored backup had forgotten the first one. Leave these people out of estimates "
            "from refusals."
        )
    if lines:
        yield section("What happened", bullets(lines))


def _list_checks(study: StudySummary) -> Iterator[str]:
    yield (
        "The filter of the policy decided about every answer again, given all answers of the same "
        "person before it. That needs no secret."
    )
    yield (
        "The policy id is the digest of the domain and the filter, which have been the same since "
        "before the first answer. The content id is the digest of everything that was recorded, "
        "in order."
    )
    yield (
        "The promise assumes honest devices. This page does not check whether a device draws with "
        "the probabilities that the query states: expost check-client does."
    )
    yield (
        "An answer that never reached this ledger cannot be seen here. A device that is itself "
        "restored from a backup can draw again what the ledger has not received."
    )
    yield from scope_notes(study.audit.audit)
