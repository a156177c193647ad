"""The audit of a ledger: every decision again, and everything that is out of the ordinary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost.answers import Subject
from expost.audits import Audit, audit
from expost.ledger.batch import subject_of
from expost.ledger.catalog import response_from_json
from expost.ledger.engine import Engine
from expost.ledger.history import History
from expost.ledger.reserve import shown_state
from expost.ledger.tables import LostRow, MarkRow, QuarantineRow

__all__ = ["QuarantinedMessage", "StudyAudit", "audit_ledger"]


@dataclass(frozen=True, slots=True)
class QuarantinedMessage:
    """A message that did not fit."""

    #: None if it is about no subject of this ledger.
    subject: Subject | None
    reason: str
    #: Its first kilobytes.
    message: bytes
    #: Whether its subject was not suspended, because an operator has to look first.
    held: bool


@dataclass(frozen=True, slots=True)
class StudyAudit:
    """Whether every recorded budget was respected, and what is out of the ordinary."""

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
    #: What happened to the study as a whole: recoveries, rollbacks, its end.
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


def audit_ledger(engine: Engine) -> StudyAudit:
    """Audit everything that is recorded."""
    history = History.read(engine)
    found = None
    if len(history.responses) or history.extras:
        found = audit(history.answers(engine, extras=True), filter=engine.policy.filter)
    states = [
        (subject_of(row.name), shown_state(row, engine.generation)) for row in history.subjects
    ]
    lost = {row.digest for row in engine.backend.scan(LostRow) if row.what == "imported"}
    marks = list(engine.backend.scan(MarkRow))
    restored = {mark.detail for mark in marks if mark.what == "import restored"}
    catalog = engine.catalog
    return StudyAudit(
        found,
        tuple(name for name, state in states if state == "suspended"),
        tuple(name for name, state in states if state == "unconfirmed"),
        tuple(subject_of(row.name) for row in history.subjects if row.reserved),
        tuple(
            QuarantinedMessage(
                subject_of(row.subject) if row.subject else None,
                row.reason,
                row.message,
                bool(row.held),
            )
            for row in engine.backend.scan(QuarantineRow)
        ),
        tuple(
            (
                subject_of(extra.subject),
                catalog.query_name(extra.query),
                response_from_json(catalog.response(extra.response).text),
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
