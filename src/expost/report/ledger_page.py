"""A study as a page: what is left, what was asked, what was given away, and whether it was right.

It shows nobody's name. The odometer of one subject is added where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from expost.audits.result import Audit
from expost.errors import printable
from expost.ledger.rounds import Round
from expost.numbers import Enclosure
from expost.report.audit_page import histogram, people, promise, verdict
from expost.report.explanation import Explanation
from expost.report.meaning import NOISY, breach
from expost.report.page import (
    Header,
    beside,
    bullets,
    page,
    paragraph,
    section,
    table,
)
from expost.report.sentences import closing
from expost.report.study_figures import query_text, rounds_figure, strip
from expost.report.study_summary import OUTCOMES, StudySummary, leftover, totals
from expost.report.transcript_page import learned_table, odometer_figure
from expost.report.words import budget_text, kept_text, shown

__all__ = ["OneSubject", "ledger_page"]


@dataclass(frozen=True, slots=True)
class OneSubject:
    """Somebody whose odometer is to be on the page."""

    name: str
    found: Explanation
    losses: Sequence[Enclosure]
    """At the start and after each exchange."""


def ledger_page(
    study: StudySummary, *, name: str, date: str, subject: OneSubject | None = None
) -> str:
    """A page that needs nothing from anywhere else.

    ``name`` is that of the ledger, and ``date`` says when it was as it is told here.
    """
    header = Header(
        about=f"The study {printable(study.title)}" if study.title else printable(name),
        summary=_summary(study),
        file=printable(name),
        date=printable(date),
        content_id=study.root,
        budget=budget_text(study.guard),
        facts=list(_facts(study)),
        first=_not_kept(study),
    )
    if not study.people:
        return page(header, section("What the budget promises", *promise(study.guard)))
    return page(
        header,
        section("How much is left", strip(leftover(study))),
        section("What was asked", *_asked(study)),
        *([] if study.found is None else [_losses(study.found)]),
        *([] if subject is None else [_subject(subject)]),
        section("What did not fit", *_kept(study)),
        section("What the budget promises", *promise(study.guard)),
        section("What was checked, and what was not", bullets(_scope(study))),
    )


def _not_kept(study: StudySummary) -> list[str]:
    return [verdict(study.found)] if study.found is not None and study.found.broken else []


def _summary(study: StudySummary) -> str:
    over = "The study has ended." if study.ended else "The study is open."
    if not study.people:
        return f"Nobody has been registered so far. {over}"
    if study.found is None:
        return f"Nobody has answered anything so far. {over}"
    told = "" if study.found.broken else f"{verdict(study.found)} "
    if len(study.found) < study.people:
        told = f"{len(study.found):,} of {people(study.people)} have answered something. {told}"
    left = leftover(study)
    used = f"{people(left.used_up)} {'has' if left.used_up == 1 else 'have'} used theirs up."
    return f"{told}{used if left.used_up else 'Nobody has used theirs up.'} {over}"


def _facts(study: StudySummary) -> Iterator[tuple[str, str]]:
    yield "policy", study.policy_id
    yield "commits", f"{study.commits:,}"
    yield "people", f"{study.people:,}"
    yield "closed", people(len(study.closed))
    found = study.found
    if found is None:
        return
    frame = found.frame
    yield "answers", f"{int(frame['exchanges'].sum()):,}"
    _, refused, waiting = totals(study.rounds)
    yield "refusals", f"{refused:,}"
    if waiting:
        yield "not answered yet", f"{waiting:,}"
    yield "kept", people(found.kept)
    yield "not kept", people(found.broken)
    if found.undecided:
        yield "undecided", people(found.undecided)
    for label, column in (("loss now", "upper"), ("on the way", "peak")):
        yield f"largest {label}", shown(float(frame[column].to_numpy().max()))
    yield "basic composition", f"at most {shown(float(frame['basic'].to_numpy().max()))}"


def _asked(study: StudySummary) -> Iterator[str]:
    if not study.rounds:
        yield paragraph("Nothing was asked so far.")
        return
    yield rounds_figure(study.rounds)
    by_query: dict[str, list[Round]] = {}
    for each in study.rounds:
        by_query.setdefault(each.query, []).append(each)
    rows = [
        (
            query_text(query),
            printable(study.asked[query]),
            *(f"{count:,}" for count in totals(same)),
        )
        for query, same in by_query.items()
    ]
    head = ["query", "asked about", *OUTCOMES]
    yield table(
        head, rows, caption="Every question, by its name or the beginning of its id.", words=True
    )


def _losses(found: Audit) -> str:
    drawn = beside(
        histogram(
            found,
            found.histogram("upper", "basic"),
            "loss now (nats)",
            "What all answers of a person can have told, at most, to somebody who sees all of "
            "them. Who saw only the first ones may have learned more: the largest loss on the way "
            "counts then.",
        ),
        histogram(
            found,
            found.histogram("basic", "upper"),
            "basic composition (nats)",
            "The sum of the epsilons of the same answers, which is what is charged where nobody "
            "looks at the answers.",
            "basic",
        ),
    )
    return section("How much was given away", drawn)


def _subject(subject: OneSubject) -> str:
    found = subject.found
    if not found.exchanges:
        body = [paragraph("Nothing was answered so far.")]
    else:
        body = [
            paragraph(*breach(found.replay)),
            paragraph(*closing(found)),
            odometer_figure(found, subject.losses),
            paragraph(f"Kept: {kept_text(found.replay)}. {NOISY}"),
            learned_table(found),
        ]
    return section(f"One person: {printable(subject.name)}", *body)


def _kept(study: StudySummary) -> Iterator[str]:
    messages = sum(each.messages for each in study.kept)
    if not messages and not study.closed:
        yield paragraph("Nothing: whatever arrived did fit.")
        return
    yield paragraph(
        f"{messages:,} message{' that does' if messages == 1 else 's that do'} not fit arrived. "
        "What arrives was seen by somebody, so nothing is thrown away: it is kept in a place of "
        f"its own. {people(len(study.closed))} {'is' if len(study.closed) == 1 else 'are'} closed, "
        "which means not asked any more. What they answered before still counts."
    )
    if study.kept:
        rows = [(printable(each.reason), f"{each.messages:,}") for each in study.kept]
        yield table(["reason", "messages"], rows)


def _scope(study: StudySummary) -> Iterator[str]:
    yield (
        "Every answer was decided again by the filter of the policy, given all answers of the same "
        "person before it. No secret is needed for that, and none was used."
    )
    yield (
        "The policy is named by the digest of the domain and the filter, which are the same since "
        "before the first answer; the content id is the digest of everything that was recorded, "
        "in order."
    )
    yield "All numbers are bounds: losses are rounded up, and what is left is rounded down."
    yield (
        "The promise is that of honest devices. It is not checked here whether a device drew its "
        "answer with the probabilities that the query states: expost check-client does that."
    )
    yield "An answer that never reached this ledger cannot be seen here."
    if study.found is not None and study.found.undecided:
        yield (
            "Undecided means that the search for the exact limit was stopped: such a budget may "
            "have been kept or not. More nodes (--nodes) can decide it."
        )
