"""After a restored backup: record what the checkpoint knows and the database has lost.

Every subject is then unconfirmed until its device has synced: devices are the replicas of a ledger,
and send again what it has forgotten. What no device can send again comes from the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from expost.errors import InvalidInput
from expost.ledger.backend import Tip
from expost.ledger.batch import Batch, subject_of
from expost.ledger.digests import Tickets
from expost.ledger.engine import Engine
from expost.ledger.reserve import IMPORTED, lost_imports
from expost.ledger.tables import BARRED, CommitRow, LostRow

__all__ = ["Recovery", "recover"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery found."""

    #: Commits in the checkpoint that the database does not have.
    lost_commits: int
    #: Subjects that have to be confirmed by their devices.
    unconfirmed: int
    lost_registrations: int
    #: Subjects that are suspended permanently, because what they revealed is lost.
    suspended: tuple[object, ...]
    lost_imports: int


def recover(engine: Engine, *, lost: bool, ticket_key: bytes) -> Recovery:
    """Make a ledger usable whose database is behind its checkpoint, or whose checkpoint is lost.

    One database commit and then one checkpoint line. A crash in between leaves a ledger that is
    still behind its checkpoint.
    """
    store = engine.checkpoint.store
    new_key = store.ticket_key() is None
    if new_key and not lost:
        raise InvalidInput(
            f"the ticket key {store}.key is missing; restore it. Only if it is lost, run "
            "recover --lost: devices then cannot restore what the database has forgotten"
        )
    if not store.size() and not lost:
        raise InvalidInput(
            f"{store} is missing; name the file if it is elsewhere. Only if it is lost, run "
            "recover --lost: a registration or suspension after the backup is then forgotten"
        )
    with engine.lock:
        engine.claim(recovering=True)
        events, (unlisted, recorded) = list(_lost_events(engine)), _commit_events(engine)
        if new_key:
            # Without the old key, only the end of the study can be told from its event.
            engine.tickets = Tickets(engine.policy.content_id, ticket_key)
            events = [(number, some) for number, some in events if some == ["ended"]]
            unlisted = [event for event in unlisted if event == "ended"]
        recovery = engine.run(_Recover(engine, events, unlisted, recorded, complete=not lost))
        if new_key:
            store.create_ticket_key(ticket_key)  # last: without it, the ledger is not usable yet
        return recovery


def _lost_events(engine: Engine) -> Iterator[tuple[int, list[str]]]:
    """Yield the events of checkpoint lines whose commits the database does not have."""
    for line in engine.checkpoint.lines():
        if engine.root_at(line.tip.number) != line.tip.root:
            yield line.tip.number, [*line.events]


def _commit_events(engine: Engine) -> tuple[list[str], set[str]]:
    """Return events of commits that the checkpoint does not list, and what commits recorded.

    Commits are not listed if the checkpoint was put back or lost. The line of the recovery lists
    their events, so that the next rollback cannot make them unknown.
    """
    listed = {line.tip for line in engine.checkpoint.lines()}
    unlisted: dict[str, None] = {}
    recorded: set[str] = set()
    recoveries = engine.recovery_commits()
    for row in engine.backend.scan(CommitRow):
        events = json.loads(row.events)
        if row.number not in recoveries:
            recorded.update(events)
        if Tip(row.number, row.root) not in listed:
            unlisted.update(dict.fromkeys(events))
    return list(unlisted), recorded


@dataclass(frozen=True, slots=True)
class _Recover:
    engine: Engine
    events: list[tuple[int, list[str]]]
    unlisted: list[str]
    recorded: set[str]
    #: Whether the events are all that were lost.
    complete: bool

    def __call__(self, batch: Batch) -> Recovery:
        known = {batch.tickets.subject_digest(name): name for name in self.engine.names()}
        registrations, imports, barred = 0, 0, list[str]()
        batch.events.extend(self.unlisted)
        for event in dict.fromkeys(event for _, events in self.events for event in events):
            what, *details = event.split(" ")
            if what == "ended" and not batch.ended:
                batch.mark("ended", "before a backup was restored")
                batch.events.append("ended")
            elif what == "registered" and details[0] not in known:
                registrations += self._add(batch, event, "registered")
            elif what == "imported" and event not in self.recorded:
                imports += self._add(batch, event, "imported")
            elif what in ("suspended", "extra") and details[0] in known:
                barred.append(known[details[0]])
            elif what in ("suspended", "extra"):
                self._add(batch, event, "barred")
        for name in dict.fromkeys(barred):
            subject = batch.subject(name)
            if subject is not None and subject.state != BARRED:
                batch.bar(subject)
        lost = len({number for number, _ in self.events})
        batch.mark("recovered", f"{lost} commits were lost")
        return Recovery(
            lost,
            self._confirm_imported(batch),
            registrations,
            tuple(map(subject_of, dict.fromkeys(barred))),
            imports,
        )

    def _confirm_imported(self, batch: Batch) -> int:
        """Confirm imported subjects that have lost nothing; count all others.

        No device can confirm them. The checkpoint lists every import.
        """
        missing, count = lost_imports(batch), 0
        for name in self.engine.names():
            subject = batch.subject(name)
            assert subject is not None, "it was just read"
            lost = batch.tickets.subject_digest(name) in missing
            if subject.kind == IMPORTED and not lost and self.complete:
                batch.confirm(subject, "none of its imported answers is lost")
            else:
                count += 1
        return count

    @staticmethod
    def _add(batch: Batch, event: str, what: str) -> int:
        """Record what was lost, once; return whether it is new."""
        _, digest, *detail = event.split(" ")
        if batch.get(LostRow, digest, what) is not None:
            return 0
        batch.add(LostRow(digest, what, " ".join(detail), batch.number))
        batch.events.append(event)
        return 1
