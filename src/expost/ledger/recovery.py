"""After a restored backup: record what the checkpoint knows and the database has lost.

Every subject is then unconfirmed until its device has synced: devices are the replicas of a ledger,
and send again what it has forgotten. What no device can send again comes from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from expost.errors import InvalidInput
from expost.ledger.batch import Batch, subject_of
from expost.ledger.engine import Engine
from expost.ledger.reserve import IMPORTED
from expost.ledger.tables import BARRED, LostRow, SubjectRow

__all__ = ["Recovery", "recover"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery found."""

    lost_commits: int
    #: Commits in the checkpoint that the database does not have.
    unconfirmed: int
    #: Subjects that have to be confirmed by their devices.
    lost_registrations: int
    suspended: tuple[object, ...]
    #: Subjects that are suspended permanently, because what they revealed is lost.
    lost_imports: int


def recover(engine: Engine, *, lost: bool, ticket_key: bytes) -> Recovery:
    """Make a ledger usable whose database is behind its checkpoint, or whose checkpoint is lost.

    One database commit and then one checkpoint line. A crash in between leaves a ledger that is
    still behind its checkpoint.
    """
    store = engine.checkpoint.store
    if store.ticket_key() is None:
        if not lost:
            raise InvalidInput(
                f"the ticket key {store}.key is missing; restore it. Only if it is lost, run "
                "recover --lost: devices then cannot restore what the database has forgotten"
            )
        store.create_ticket_key(ticket_key)
    if not store.size() and not lost:
        raise InvalidInput(
            f"{store} is missing; name the file if it is elsewhere. Only if it is lost, run "
            "recover --lost: a registration or suspension after the backup is then forgotten"
        )
    with engine.lock:
        engine.claim(recovering=True)
        events = list(_lost_events(engine))
        return engine.run(_Recover(engine, events))


def _lost_events(engine: Engine) -> Iterator[tuple[int, list[str]]]:
    """Yield the events of checkpoint lines whose commits the database does not have."""
    for line in engine.checkpoint.lines():
        if engine.root_at(line.tip.number) != line.tip.root:
            yield line.tip.number, [*line.events]


@dataclass(frozen=True, slots=True)
class _Recover:
    engine: Engine
    events: list[tuple[int, list[str]]]

    def __call__(self, batch: Batch) -> Recovery:
        known = {batch.tickets.subject_digest(name): name for name in self.engine.names()}
        registrations, imports, barred = 0, 0, list[str]()
        for event in dict.fromkeys(event for _, events in self.events for event in events):
            what, *details = event.split(" ")
            if what == "ended" and not batch.ended:
                batch.mark("ended", "before a backup was restored")
            elif what == "registered" and details[0] not in known:
                registrations += self._add(batch, details[0], "registered", details[1])
            elif what == "imported":
                imports += self._add(batch, details[0], "imported")
            elif what in ("suspended", "extra") and details[0] in known:
                barred.append(known[details[0]])
            elif what in ("suspended", "extra"):
                self._add(batch, details[0], "barred")
        for name in dict.fromkeys(barred):
            subject = batch.subject(name)
            if subject is not None and subject.state != BARRED:
                batch.bar(subject)
        lost = len({number for number, _ in self.events})
        batch.mark("recovered", f"{lost} commits were lost")
        devices = sum(row.kind != IMPORTED for row in self.engine.backend.scan(SubjectRow))
        return Recovery(
            lost, devices, registrations, tuple(map(subject_of, dict.fromkeys(barred))), imports
        )

    @staticmethod
    def _add(batch: Batch, digest: str, what: str, detail: str = "") -> int:
        """Record what was lost, once; return whether it is new."""
        if batch.get(LostRow, digest, what) is not None:
            return 0
        batch.add(LostRow(digest, what, detail, batch.number))
        return 1
