"""The audit of a ledger: every decision again, and everything that is out of the ordinary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost.answers import Subject
from expost.audits import Audit, audit
from expost.files.reading import parse
from expost.ledger._batch import subject_from_json
from expost.ledger._engine import CommitEngine
from expost.ledger._history import StudyHistory
from expost.ledger._requests import subject_state
from expost.ledger.tables import LostRow, MarkRow, QuarantineRow
from expost.transcript import response_from_json

__all__ = ["QuarantinedMessage", "StudyAudit", "audit_ledger"]


@dataclass(frozen=True, slots=True)
class QuarantinedMessage:
    """A message that did not fit."""

    #: None if it is about no subject of this ledger.
    subject: Subject | None
    reason: str
    #: Its first kilobytes.
    message: bytes
    #: True if its subject was not suspended, because an operator has to look first.
    held: bool


@dataclass(frozen=True, slots=True)
class StudyAudit:
    """Verdicts about every recorded budget, and everything out of the ordinary."""

    #: As :func:`expost.audit` returns it, for all subjects with an answer; None if there is none.
    #: Extras count as answers after the recorded ones.
    audit: Audit | None
    suspended: tuple[Subject, ...]
    #: Subjects whose devices have not synced since a backup was restored.
    unconfirmed: tuple[Subject, ...]
    #: Subjects with an open reservation: an answer may be on its way.
    reserved: tuple[Subject, ...]
    quarantined: tuple[QuarantinedMessage, ...]
    #: Subjects, queries and responses that quarantined messages revealed.
    extras: tuple[tuple[Subject, str, Any], ...]
    #: Subjects and keys with two outcomes: a restored backup had forgotten the first. Leave such
    #: subjects out of estimates that use refusals.
    two_outcomes: tuple[tuple[Subject, str], ...]
    #: Imported answers that a restored backup lost, and that were not recorded again.
    lost_imports: int
    #: Events of the study as a whole: recoveries, rollbacks, its end.
    marks: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether every recorded budget was respected, and no import is missing."""
        return not self.lost_imports and (self.audit is None or not self.audit.broken)

    def __str__(self) -> str:
        lines = ["no answers so far" if self.audit is None else str(self.audit)]
        lines.append(
            f"{len(self.suspended):,} suspended, {len(self.unconfirmed):,} unconfirmed, "
            f"{len(self.reserved):,} with an open reservation, {len(self.quarantined):,} "
            "quarantined messages"
        )
        return "\n".join(lines)


def audit_ledger(engine: CommitEngine) -> StudyAudit:
    """Audit everything that is recorded."""
    history = StudyHistory.read(engine)
    answers_audit = None
    if len(history.responses) or history.extras:
        answers_audit = audit(history.answers(engine, extras=True), filter=engine.policy.filter)
    states = [
        (subject_from_json(row.name), subject_state(row, engine.generation))
        for row in history.subjects
    ]
    lost = {row.digest for row in engine.backend.scan(LostRow) if row.what == "imported"}
    marks = list(engine.backend.scan(MarkRow))
    restored = {mark.detail for mark in marks if mark.what == "import restored"}
    catalog = engine.catalog
    return StudyAudit(
        answers_audit,
        tuple(name for name, state in states if state == "suspended"),
        tuple(name for name, state in states if state == "unconfirmed"),
        tuple(subject_from_json(row.name) for row in history.subjects if row.reserved),
        tuple(
            QuarantinedMessage(
                subject_from_json(row.subject) if row.subject else None,
                row.reason,
                row.message,
                bool(row.held),
            )
            for row in engine.backend.scan(QuarantineRow)
        ),
        tuple(
            (
                subject_from_json(extra.subject),
                catalog.query_name(extra.query),
                response_from_json(parse(catalog.response(extra.response).text)),
            )
            for extras in history.extras.values()
            for extra in extras
        ),
        tuple(history.two_outcomes),
        len(lost - restored),
        tuple(
            f"{mark.what} at commit {mark.commit:,}" + (f": {mark.detail}" if mark.detail else "")
            for mark in marks
            if mark.what != "import restored"
        ),
    )
