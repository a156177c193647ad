"""The audit of a ledger: every decision again, and what was kept because it did not fit."""

from __future__ import annotations

from dataclasses import dataclass

from expost.answers import Subject
from expost.audits import Audit, audit
from expost.ledger.core import Core
from expost.ledger.history import History

__all__ = ["KeptMessage", "StudyAudit", "audited"]


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message that did not fit."""

    subject: Subject | None
    """Whom it was about; None if that is nobody who is known."""
    reason: str
    message: bytes


@dataclass(frozen=True, slots=True)
class StudyAudit:
    """Whether everybody's budget was kept, as far as is recorded, and what did not fit."""

    audit: Audit | None
    """As of :func:`audit`, of all who answered something; None if nobody did."""
    closed: tuple[Subject, ...]
    """Who answered what the filter refuses, sent what did not fit, or was quarantined."""
    reserved: tuple[Subject, ...]
    """Whose reservation is open: perhaps something was sent that has not arrived."""
    kept: tuple[KeptMessage, ...]

    @property
    def good(self) -> bool:
        """Whether all budgets were kept, and everything that arrived did fit."""
        return not self.kept and not self.closed and (self.audit is None or not self.audit.broken)

    def __str__(self) -> str:
        lines = ["nobody has answered anything" if self.audit is None else str(self.audit)]
        lines.append(
            f"{len(self.closed):,} closed, {len(self.reserved):,} with an open reservation, "
            f"{len(self.kept):,} messages that did not fit"
        )
        return "\n".join(lines)


def audited(core: Core) -> StudyAudit:
    """Audit everything that is recorded."""
    history = History.read(core)
    history.check(core)
    names = core.people.names(core.backend)
    policy, found = core.policy, None
    if len(history.exchanges):
        answers = history.answers(policy.domain, policy.filter, core.words, names)
        found = audit(answers, filter=policy.filter)
    heads = core.backend.heads(range(1, len(names) + 1))
    return StudyAudit(
        found,
        tuple(name for name, head in zip(names, heads, strict=True) if head.closed),
        tuple(name for name, head in zip(names, heads, strict=True) if head.reserved),
        tuple(
            KeptMessage(
                names[each.subject - 1] if each.subject else None, each.reason, each.message
            )
            for each, _ in core.backend.kept()
        ),
    )
