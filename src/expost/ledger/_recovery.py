"""After a restored backup: record what the checkpoint knows and the database has lost.

Every subject is then unconfirmed until its device has synced: devices are the replicas of a ledger,
and send again what it has forgotten. Everything else comes from the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from expost.errors import InvalidInput
from expost.ledger._batch import BARRED_REASON, WITHDRAWN_REASON, Batch, subject_from_json
from expost.ledger._digests import Tickets
from expost.ledger._engine import CommitEngine
from expost.ledger._requests import IMPORTED, lost_imports
from expost.ledger.backend import Tip
from expost.ledger.errors import LedgerBehind
from expost.ledger.tables import BARRED, CommitRow, LostRow

__all__ = ["Recovery", "recover"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of a recovery."""

    #: Commits in the checkpoint that the database does not have; None if the checkpoint is lost.
    lost_commits: int | None
    #: Subjects that have to be confirmed by their devices.
    unconfirmed: int
    lost_registrations: int
    #: Subjects that are suspended permanently, because what they revealed is lost.
    suspended: tuple[object, ...]
    lost_imports: int


def recover(engine: CommitEngine, *, lost: bool, ticket_key: bytes) -> Recovery:
    """Make a ledger usable whose database is behind its checkpoint, or whose checkpoint is lost.

    One database commit and then one checkpoint line. A crash in between leaves a ledger that is
    still behind its checkpoint.
    """
    store = engine.checkpoint.store
    new_key = store.ticket_key() is None
    if not lost and not new_key and not _is_behind(engine):
        raise InvalidInput("the database is not behind it: there is nothing to recover", str(store))
    if new_key and not lost:
        raise InvalidInput(
            f"the ticket key {store}.key is missing; restore it. Only if it is lost, run "
            "recover --lost: devices then cannot restore what the database has lost"
        )
    if not store.size() and not lost:
        raise InvalidInput(
            f"{store} is missing; name the file if it is elsewhere. Only if it is lost, run "
            "recover --lost, which forgets registrations and suspensions after the backup"
        )
    with engine.lock:
        engine.claim(recovering=True)
        events, (unlisted, recorded) = list(_lost_events(engine)), _commit_events(engine)
        lost_commits = len({number for number, _ in events}) if store.size() else None
        if new_key:
            # Without the old key, only the end of the study can be told from its event.
            engine.tickets = Tickets(engine.policy.content_id, ticket_key)
            events = [line for line in events if line[1] == ["ended"]]
            unlisted = [event for event in unlisted if event == "ended"]
        job = _Recover(events, unlisted, recorded, lost_commits, complete=not lost)
        recovery = engine.run_job(job)
        if new_key:
            store.create_ticket_key(ticket_key)  # last: without it, the ledger is not usable yet
        return recovery


def _is_behind(engine: CommitEngine) -> bool:
    try:
        engine.check_checkpoint()
    except LedgerBehind:
        return True
    return False


def _lost_events(engine: CommitEngine) -> Iterator[tuple[int, list[str]]]:
    """Yield the events of checkpoint lines whose commits the database does not have."""
    for line in engine.checkpoint.lines():
        if engine.root_at(line.tip.commit_number) != line.tip.root:
            yield line.tip.commit_number, [*line.events]


def _commit_events(engine: CommitEngine) -> tuple[list[str], set[str]]:
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
    events: list[tuple[int, list[str]]]
    unlisted: list[str]
    recorded: set[str]
    lost_commits: int | None
    #: True if the events are all that were lost.
    complete: bool

    def __call__(self, batch: Batch) -> Recovery:
        names = batch.engine.subject_numbers()
        names_by_digest = {batch.tickets.subject_digest(name): name for name in names}
        registrations, imports, barred, withdrawn = 0, 0, list[str](), list[str]()
        batch.events.extend(self.unlisted)
        for event in dict.fromkeys(event for _, events in self.events for event in events):
            kind, *details = event.split(" ")
            if kind == "ended" and not batch.ended:
                batch.add_mark("ended", "before a backup was restored")
                batch.events.append("ended")
            elif kind == "registered" and details[0] not in names_by_digest:
                registrations += self._add(batch, event, "registered")
            elif kind == "imported" and event not in self.recorded:
                imports += self._add(batch, event, "imported")
            elif kind == "withdrawn" and details[0] in names_by_digest:
                withdrawn.append(names_by_digest[details[0]])
            elif kind == "withdrawn":
                self._add(batch, event, "withdrawn")
            elif kind in ("suspended", "extra") and details[0] in names_by_digest:
                barred.append(names_by_digest[details[0]])
            elif kind in ("suspended", "extra"):
                self._add(batch, event, "barred")
        for name in dict.fromkeys(barred):
            subject = batch.subject(name)
            if subject is not None and subject.state != BARRED:
                batch.suspend(subject, BARRED_REASON)
        for name in withdrawn:
            subject = batch.subject(name)
            if subject is not None and not batch.is_withdrawn(name):
                batch.suspend(subject, WITHDRAWN_REASON)
        count = "an unknown number of" if self.lost_commits is None else f"{self.lost_commits:,}"
        batch.add_mark("recovered", f"{count} commits were lost")
        unconfirmed = self._confirm_imported(batch)
        suspended = tuple(map(subject_from_json, dict.fromkeys(barred)))
        return Recovery(self.lost_commits, unconfirmed, registrations, suspended, imports)

    def _confirm_imported(self, batch: Batch) -> int:
        """Confirm imported subjects that have lost nothing; count all others.

        No device can confirm them. The checkpoint lists every import.
        """
        with_lost_imports, unconfirmed = lost_imports(batch), 0
        for name in batch.engine.subject_numbers():
            subject = batch.subject(name)
            assert subject is not None, "it was just read"
            lost = batch.tickets.subject_digest(name) in with_lost_imports
            if subject.kind == IMPORTED and not lost and self.complete:
                batch.confirm(subject, "none of its imported answers is lost")
            else:
                unconfirmed += 1
        return unconfirmed

    @staticmethod
    def _add(batch: Batch, event: str, kind: str) -> int:
        """Record what was lost, once; return whether it is new."""
        _, digest, *detail = event.split(" ")
        if batch.get(LostRow, digest, kind) is not None:
            return 0
        batch.add(LostRow(digest, kind, " ".join(detail)))
        batch.events.append(event)
        return 1
