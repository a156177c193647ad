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
from expost.report._formatting import budget_text
from expost.report._page import (
    Header,
    bullets,
    page,
    paragraph,
    section,
    side_by_side,
    table,
)
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

    ``name`` is the name of the ledger, and ``date`` the day that the page describes.
    """
    header = Header(
        about=f"The study {study.title}" if study.title else name,
        summary=_summary(study),
        file=name,
        date=date,
        content_id=study.root,
        budget=budget_text(study.filter),
        facts=list(_facts(study)),
        first=list(_alarms(study)),
    )
    promised = section("What the budget promises", *promise_paragraphs(study.filter))
    happened = [*_happened(study.audit)]
    if not study.people:
        return page(header, *happened, promised)
    return page(
        header,
        section("Remaining budgets", budgets_figure(budget_shares(study))),
        section("What was asked", *_query_tables(study)),
        *([] if study.audit.audit is None else [_losses(study.audit.audit)]),
        *([] if subject is None else [_subject(subject)]),
        section("Quarantined messages", *_quarantined(study.audit)),
        *happened,
        promised,
        section("What was checked, and what was not", bullets(_scope(study))),
    )


def _alarms(study: StudySummary) -> Iterator[str]:
    audit, lost = study.audit.audit, study.audit.lost_imports
    if audit is not None and audit.broken:
        yield verdict(audit)
    if lost:
        yield (
            f"{lost:,} imported {'answer is' if lost == 1 else 'answers are'} lost: a restored "
            "backup does not have them. The losses on this page are without them."
        )


def _summary(study: StudySummary) -> str:
    audit, over = study.audit.audit, "The study has ended." if study.ended else "The study is open."
    if not study.people:
        return f"No one is registered so far. {over}"
    if audit is None:
        return " ".join([*_unconfirmed(study), f"No one has answered anything so far. {over}"])
    parts = []
    if len(audit) < study.people:
        parts.append(f"{len(audit):,} of {format_people(study.people)} have answered something.")
    if not audit.broken:
        parts.append(verdict(audit))
    used_up = budget_shares(study).used_up
    if used_up:
        have = "has used up the" if used_up == 1 else "have used up their"
        parts.append(f"{format_people(used_up)} {have} budget.")
    return " ".join([*parts, *_unconfirmed(study), over])


def _unconfirmed(study: StudySummary) -> Iterator[str]:
    count = len(study.audit.unconfirmed)
    if count:
        are = "is" if count == 1 else "are"
        yield (
            f"{format_people(count)} {are} unconfirmed: their devices have to "
            "sync before anything else is asked, and may have answers that this ledger lacks."
        )


def _facts(study: StudySummary) -> Iterator[tuple[str, str]]:
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


def _losses(audit: Audit) -> str:
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


def _subject(subject: OneSubject) -> str:
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


def _quarantined(audit: StudyAudit) -> Iterator[str]:
    messages, suspended, extras = len(audit.quarantined), len(audit.suspended), len(audit.extras)
    if not messages and not suspended:
        yield paragraph("None: every message fit, and no one is suspended.")
        return
    sentences = []
    if messages:
        sentences.append(
            f"{messages:,} {'message was' if messages == 1 else 'messages were'} quarantined. "
            "They did not fit, and are stored apart from the answers."
        )
    sentences.append(
        f"{format_people(suspended)} {'is' if suspended == 1 else 'are'} suspended: nothing more "
        "is asked unless an operator can resolve it. Earlier answers still count."
    )
    held = len({entry.subject for entry in audit.quarantined if entry.held} - {*audit.suspended})
    if held:
        wait = "waits" if held == 1 else "wait"
        sentences.append(f"{format_people(held)} {wait} for an operator.")
    yield paragraph(*sentences)
    if extras:
        were = "1 response was" if extras == 1 else f"{extras:,} responses were"
        yield paragraph(
            f"{were} revealed by these messages alone. Such extras count as answers in every loss "
            "and verdict on this page."
        )
    if messages:
        reasons = Counter(entry.reason for entry in audit.quarantined)
        rows = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
        yield table(["reason", "messages"], rows)


def _happened(audit: StudyAudit) -> Iterator[str]:
    """Yield a section about recoveries and rollbacks, if there were any."""
    lines, count = list(audit.marks), len(audit.two_outcomes)
    if count:
        have = "key has" if count == 1 else "keys have"
        lines.append(
            f"{count:,} {have} two outcomes for a person, because a restored backup "
            "had forgotten the first one. Leave these people out of estimates from refusals."
        )
    if lines:
        yield section("What happened", bullets(lines))


def _scope(study: StudySummary) -> Iterator[str]:
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
