"""A batch: the changes of one or more calls, collected in memory until they are one commit.

Later jobs of a batch see what earlier ones changed, so a message that comes twice, or a subject
with several messages, needs no special case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from expost.answers import Subject
from expost.ledger._digests import first_head, next_head, next_root
from expost.ledger.backend import Commit, Tip
from expost.ledger.tables import (
    ACTIVE,
    BARRED,
    SUSPENDED,
    TABLES,
    ExchangeRow,
    ExtraRow,
    MarkRow,
    StateRow,
    SubjectRow,
    check_seal,
    root_line,
    seal,
)
from expost.tally import add_response, pack_counts, unpack_counts

if TYPE_CHECKING:
    from expost.ledger._engine import CommitEngine

__all__ = ["Batch", "subject_from_json"]

R = TypeVar("R", bound=tuple[Any, ...])

#: Marks after which every device has to confirm its subject.
ROLLBACKS = ("recovered", "rollback")

BARRED_REASON = "a restored backup lost why it was suspended"
WITHDRAWN_REASON = "withdrawn from the study"
#: Reasons of suspensions that no operator can end.
PERMANENT_REASONS = (BARRED_REASON, WITHDRAWN_REASON)

#: The generation of a subject whose device has to sync before it is asked anything.
UNCONFIRMED = -1


def subject_from_json(name: str) -> Subject:
    """Return a subject's name from its JSON."""
    subject: Subject = json.loads(name)
    return subject


class Batch:
    """Rows that were read, rows to add, and the subjects that change."""

    def __init__(self, engine: CommitEngine) -> None:
        self.engine = engine
        self.catalog = engine.catalog
        self.tickets = engine.tickets
        #: These two become those of the engine with the commit.
        self.generation = engine.generation
        self.ended = engine.ended
        #: The events that the checkpoint lists for this commit.
        self.events: list[str] = []
        self._backend = engine.backend
        self._tip = engine.backend.tip()
        #: The number of the commit that this batch becomes.
        self.commit_number = self._tip.commit_number + 1
        self._read: dict[type[Any], dict[tuple[Any, ...], Any]] = {}
        self._added: dict[type[Any], dict[tuple[Any, ...], Any]] = {}
        self._changed: dict[str, SubjectRow] = {}
        #: Added extras and states, by subject.
        self._of_subject: dict[tuple[type[Any], str], list[Any]] = {}

    # -- reading

    def load(self, row: type[Any], keys: Iterable[tuple[Any, ...]]) -> None:
        """Read rows by their keys in one go, so that :meth:`get` finds them."""
        read = self._read.setdefault(row, {})
        missing = [key for key in dict.fromkeys(keys) if key not in read]
        if missing:
            rows = self._backend.find(row, missing)
            if row is SubjectRow:
                for subject in rows.values():
                    check_seal(subject)
            # Only now: after a read that failed, a row must not seem to be missing.
            read.update({key: rows.get(key) for key in missing})

    def get(self, row: type[R], *key: Any) -> R | None:
        """Return a row by its key, as this batch leaves it; None if there is none."""
        added = self._added.get(row)
        result: R | None = added.get(key) if added else None
        if result is None:
            if key not in self._read.get(row, ()):
                self.load(row, [key])
            result = self._read[row][key]
        return result

    def subject(self, name: str) -> SubjectRow | None:
        """Return the row of a subject by its name (JSON), as this batch leaves it."""
        return self._changed.get(name) or self.get(SubjectRow, name)

    def rows(self, row: type[R]) -> list[R]:
        """Return all rows of a table, as this batch leaves it."""
        return [*self._backend.scan(row), *self._added.get(row, {}).values()]

    def rows_of_subject(self, row: type[R], name: str) -> list[R]:
        """Return the extras or the changes of state of a subject, as this batch leaves them."""
        return [*self._backend.scan(row, (name,)), *self._of_subject.get((row, name), ())]

    def is_new(self, name: str) -> bool:
        """Return whether this batch registers a subject."""
        return (name,) in self._added.get(SubjectRow, {})

    def count(self, row: type[Any]) -> int:
        """Return how many rows of a table this batch adds."""
        return len(self._added.get(row, {}))

    # -- writing

    def add(self, row: R) -> R:
        """Add a row, whose key is new; return it with the number of this commit."""
        row = row._replace(commit=self.commit_number)  # type: ignore[attr-defined]
        self._added.setdefault(type(row), {})[row[: TABLES[type(row)].keys]] = row
        if isinstance(row, ExtraRow | StateRow):
            self._of_subject.setdefault((type(row), row.subject), []).append(row)
        return row

    def update_subject(self, subject: SubjectRow) -> None:
        """Set the row of a registered subject."""
        self._changed[subject.name] = subject

    def register(self, name: str, subject_number: int, kind: str, generation: int) -> SubjectRow:
        """Add a subject with an empty chain."""
        head = first_head(self.tickets.policy_id, subject_from_json(name))
        empty_chain = 0, head, b"", b"", "", 0  # no exchange, no extra, no reservation
        row = self.add(SubjectRow(name, subject_number, kind, ACTIVE, generation, *empty_chain))
        self.update_subject(row)
        self.events.append(f"registered {self.tickets.subject_digest(name)} {kind}")
        return row

    def append_exchange(
        self, subject: SubjectRow, key: str, query: int, response: int, head: bytes | None = None
    ) -> SubjectRow:
        """Append an exchange to a subject's chain. Any open reservation is over then."""
        sequence = subject.sequence + 1
        if head is None:
            head = next_head(subject.head, self.catalog.response(response).chain_prefix, sequence)
        self.add(ExchangeRow(subject.name, sequence, key, query, response, head))
        subject = subject._replace(
            sequence=sequence,
            head=head,
            tally=add_response(subject.tally, response),
            reserved="",
            query=0,
        )
        if subject.extras:
            subject = self._absorb(subject, sequence, query, response)
        self.update_subject(subject)
        return subject

    def _absorb(self, subject: SubjectRow, sequence: int, query: int, response: int) -> SubjectRow:
        """Stop counting extras that the exchange with their number records."""
        exchange = (sequence, query, response)
        extras = self.rows_of_subject(ExtraRow, subject.name)
        recorded = [row for row in extras if row[2:5] == exchange]
        counts = unpack_counts(subject.extras)
        if recorded:
            counts[response] -= len(recorded)
        return subject._replace(extras=pack_counts(counts))

    def suspend(self, subject: SubjectRow, reason: str) -> SubjectRow:
        """Ask a subject nothing more until an operator has resolved it.

        No operator can resolve it if a restored backup lost what the subject revealed, or if the
        subject has withdrawn.
        """
        event = "withdrawn" if reason == WITHDRAWN_REASON else "suspended"
        self.events.append(f"{event} {self.tickets.subject_digest(subject.name)}")
        state = BARRED if reason in PERMANENT_REASONS else SUSPENDED
        return self._set_state(subject._replace(state=state), "suspended", reason)

    def resolve(self, subject: SubjectRow) -> SubjectRow:
        """End a suspension; the subject's device has to confirm its chain first."""
        subject = subject._replace(state=ACTIVE, generation=UNCONFIRMED)
        return self._set_state(subject, "resolved", "by an operator")

    def is_withdrawn(self, name: str) -> bool:
        """Return whether a subject has withdrawn."""
        changes = self.rows_of_subject(StateRow, name)
        return any(change.reason == WITHDRAWN_REASON for change in changes)

    def confirm(self, subject: SubjectRow, reason: str) -> SubjectRow:
        """End that a subject is unconfirmed: nothing that it answered is missing."""
        subject = subject._replace(generation=self.generation)
        return self._set_state(subject, "confirmed", reason)

    def _set_state(self, subject: SubjectRow, state: str, reason: str) -> SubjectRow:
        change_number = len(self.rows_of_subject(StateRow, subject.name)) + 1
        self.add(StateRow(subject.name, change_number, state, reason))
        self.update_subject(subject)
        return subject

    def add_mark(self, event: str, detail: str = "") -> None:
        """Record an event of the study as a whole."""
        self.add(MarkRow(len(self.rows(MarkRow)) + 1, event, detail))
        self.generation += event in ROLLBACKS
        self.ended |= event == "ended"

    # -- one commit

    @property
    def empty(self) -> bool:
        return not (self._added or self._changed or self.catalog.pending_rows)

    def build_commit(self) -> Commit:
        """Return everything as one commit."""
        for row in self.catalog.pending_rows:
            self.add(row)
        added = {kind: list(rows.values()) for kind, rows in self._added.items()}
        new = self._added.get(SubjectRow, {})
        if new:
            added[SubjectRow] = [_seal_row(self._changed[name]) for (name,) in new]
        changed = [_seal_row(row) for name, row in self._changed.items() if (name,) not in new]
        lines = [root_line(TABLES[kind], row) for kind, rows in added.items() for row in rows]
        events = json.dumps(self.events)
        lines.append(json.dumps(["events", self.events]).encode() + b"\n")
        tip = Tip(self.commit_number, next_root(self._tip.root, lines))
        return Commit(tip, events, added, changed)


def _seal_row(row: SubjectRow) -> SubjectRow:
    return row._replace(seal=seal(row))
