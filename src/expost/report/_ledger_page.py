"""A study as a page: remaining budgets, rounds, losses, and what is out of the ordinary.

It names no subject. The odometer of one subject is added on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from expost._format import format_count, shorten
from expost._grouping import group_pairs
from expost.audits._audit import Audit
from expost.ledger import StudyAudit
from expost.numbers import Enclosure
from expost.report._audit_page import (
    NOT_COVERED,
    histogram,
    promise_paragraphs,
    scope_notes,
    verdict_facts,
    verdict_sentences,
)
from expost.report._explanation import Explanation, closing_sentences
from expost.report._formatting import budget_text, query_name, with_count
from expost.report._page import bullets, page, paragraph, section, side_by_side, table
from expost.report._sentences import NOISY, breach_sentences
from expost.report._study import (
    OUTCOMES,
    StudySummary,
    budget_shares,
    budgets_figure,
    rounds_figure,
    total_outcomes,
)
from expost.report._transcript_page import learned_table, odometer_figure

__all__ = ["OneSubject", "ledger_page"]

_POLICY_ID = (
    "SHA-256 of the study's name, domain and filter, fixed before the first answer. "
    "expost ledger status LEDGER prints it."
)
_ROOT = (
    "The root of the hash chain: SHA-256 of everything recorded up to the last commit. "
    "expost ledger report LEDGER -o PAGE --json prints it."
)


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
    audit = study.audit.audit
    sections = [
        *_describe_recoveries(study),
        section("What the budget promises", *promise_paragraphs(study.filter)),
    ]
    if study.subjects:
        sections = [
            section("Remaining budgets", budgets_figure(budget_shares(study))),
            section("Questions", *_query_tables(study)),
            *([] if audit is None else [_draw_losses(audit)]),
            *([] if subject is None else [_describe_subject(subject)]),
            section("Quarantined messages", *_describe_messages(study.audit)),
            *sections,
            section("Checks of this page", bullets(_list_checks(study))),
            section("Not covered by this page", bullets((*_UNSEEN, *NOT_COVERED))),
        ]
    verdict, *lead = _summarize(study)
    return page(
        *sections,
        title=f"The study {study.title}" if study.title else shorten(name),
        verdict=verdict,
        breach=not study.audit.good,
        lead=lead,
        file=name,
        date=date,
        ids=[
            ("policy id", study.policy_id, _POLICY_ID),
            ("root", study.root, _ROOT),
        ],
        budget=budget_text(study.filter),
        facts=_list_facts(study),
    )


def _summarize(study: StudySummary) -> Iterator[str]:
    """Yield the verdict and the most important counts, each in a short line."""
    audit, lost = study.audit.audit, study.audit.lost_imports
    if audit is not None and audit.broken:
        yield from verdict_sentences(audit)
    if lost:
        lost_text = with_count(lost, "imported answer is lost", "imported answers are lost")
        yield (
            f"{lost_text}: a restored backup does not have them. "
            "The losses on this page do not include them."
        )
    if not study.subjects:
        yield "No subject is registered yet."
    elif audit is None:
        yield "No subject has answered a question yet."
    else:
        if not audit.broken:
            yield from verdict_sentences(audit)
        if len(audit) < study.subjects:
            subjects = format_count(study.subjects, "subject")
            yield f"{len(audit):,} of {subjects} have answered at least one question."
        used_up = budget_shares(study).used_up
        if used_up and study.filter.is_at_level:
            subjects = with_count(used_up, "subject has", "subjects have")
            yield f"{subjects} used up a budget where most was used; elsewhere more may remain."
        elif used_up:
            yield with_count(
                used_up,
                "subject has used up the budget.",
                "subjects have used up their budgets.",
            )
    if count := len(study.audit.unconfirmed):
        yield (
            f"{with_count(count, 'subject is', 'subjects are')} unconfirmed: their devices must "
            "sync before the next question, and may have answers that this ledger lacks."
        )
    yield "The study has ended." if study.ended else "The study is open."


def _list_facts(study: StudySummary) -> Iterator[tuple[str, str]]:
    yield "commits", f"{study.commits:,}"
    yield "subjects", f"{study.subjects:,}"
    yield "suspended", format_count(len(study.audit.suspended), "subject")
    yield "unconfirmed", format_count(len(study.audit.unconfirmed), "subject")
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
        yield paragraph("Nothing has been asked yet.")
        return
    yield rounds_figure(study.rounds)
    by_query = group_pairs((round_.query, round_) for round_ in study.rounds)
    rows = [
        (
            query_name(query),
            study.query_texts[query],
            *(f"{count:,}" for count in total_outcomes(same)),
        )
        for query, same in by_query.items()
    ]
    head = ["question", "asked about", *OUTCOMES]
    yield table(
        head, rows, caption="Every question, by its name or the beginning of its id.", of_text=True
    )


def _draw_losses(audit: Audit) -> str:
    drawn = side_by_side(
        histogram(
            audit,
            audit.histogram("upper", "basic"),
            "loss now (nats)",
            "An upper bound on what all answers of a subject reveal. The first answers alone may "
            "have revealed more, up to the peak.",
        ),
        histogram(
            audit,
            audit.histogram("basic", "upper"),
            "basic composition (nats)",
            "The sum of the epsilons of the same questions, whatever the answers are.",
            "basic",
        ),
    )
    return section("How much was revealed", drawn)


def _describe_subject(subject: OneSubject) -> str:
    explanation = subject.explanation
    if not explanation.exchanges:
        body = [paragraph("Nothing has been answered yet.")]
    else:
        body = [
            paragraph(*breach_sentences(explanation.replay)),
            paragraph(*closing_sentences(explanation)),
            odometer_figure(explanation, subject.losses),
            paragraph(f"Budget respected: {explanation.replay.respected_text}. {NOISY}"),
            learned_table(explanation),
        ]
    return section(f"One subject: {subject.name}", *body)


def _describe_messages(audit: StudyAudit) -> Iterator[str]:
    messages, suspended, extras = len(audit.quarantined), len(audit.suspended), len(audit.extras)
    if not messages and not suspended:
        yield paragraph("No message is quarantined, and no one is suspended.")
        return
    sentences = []
    if messages:
        sentences.append(
            f"{with_count(messages, 'message was', 'messages were')} quarantined: stored apart "
            "from the answers, because they do not fit."
        )
    sentences.append(
        f"{with_count(suspended, 'subject is', 'subjects are')} suspended: no more questions "
        "until an operator resolves it. Earlier answers still count."
    )
    held = len({entry.subject for entry in audit.quarantined if entry.held} - {*audit.suspended})
    if held:
        sentences.append(f"{with_count(held, 'subject waits', 'subjects wait')} for an operator.")
    yield paragraph(*sentences)
    if extras:
        yield paragraph(
            f"{with_count(extras, 'response', 'responses')} came only with these messages. Such "
            "extras count as answers in every loss and verdict on this page."
        )
    if messages:
        reasons = Counter(entry.reason for entry in audit.quarantined)
        rows = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
        yield table(["reason", "messages"], rows)


def _describe_recoveries(study: StudySummary) -> Iterator[str]:
    """Yield a section about recoveries and rollbacks, if there were any."""
    audit = study.audit
    lines, count = list(audit.marks), len(audit.two_outcomes)
    if any(not mark.startswith("ended") for mark in audit.marks):
        waiting = len(audit.unconfirmed)
        confirmed = study.subjects - waiting - len(audit.suspended)
        lines.append(
            f"{with_count(confirmed, 'subject is', 'subjects are')} confirmed now, "
            f"{with_count(waiting, 'is', 'are')} still unconfirmed."
        )
    if count:
        lines.append(
            f"{with_count(count, 'key has', 'keys have')} two outcomes for a subject, because a "
            "restored backup lacked the first one. Leave these subjects out of estimates from "
            "refusals."
        )
    if lines:
        yield section("Recoveries", bullets(lines))


_UNSEEN = (
    "Answers that never reached this ledger. A device that is itself restored from a backup can "
    "draw again what the ledger has not received.",
)


def _list_checks(study: StudySummary) -> Iterator[str]:
    yield (
        "The filter of the policy decided every answer again, after all earlier answers of the "
        "same subject. That needs no secret."
    )
    yield from scope_notes(study.audit.audit)
