"""Jobs that register subjects, reserve exchanges for devices, and record imported answers."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from expost._types import Ints
from expost.answers import Subject
from expost.errors import InvalidInput, at, expect
from expost.ledger._batch import (
    BARRED_REASON,
    UNCONFIRMED,
    WITHDRAWN_REASON,
    Batch,
    subject_from_json,
)
from expost.ledger._engine import CommitEngine
from expost.ledger.tables import (
    ACTIVE,
    BARRED,
    SUSPENDED,
    DeclineRow,
    ExchangeRow,
    LostRow,
    MarkRow,
    RequestRow,
    StateRow,
    SubjectRow,
)
from expost.queries import Query

__all__ = [
    "DEVICE",
    "IMPORTED",
    "KINDS",
    "MAX_NAME",
    "SIMULATED",
    "Outcome",
    "RecordJob",
    "RegisterJob",
    "ReserveJob",
    "end_study",
    "lost_imports",
    "read_key",
    "register_subject",
    "resolve",
    "subject_state",
    "suspend_held",
    "withdraw",
]

#: The kinds of subjects: a device answers, answers come from elsewhere, or `ask` draws them.
DEVICE, IMPORTED, SIMULATED = KINDS = ("device", "imported", "simulated")

_MAX_KEY = 200
#: The longest name of a subject, in bytes of its JSON.
MAX_NAME = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request for one subject."""

    subject: Subject
    #: Permanent: "reserved", "refused", "recorded" or "declined". Temporary: "waiting" for the
    #: answer to another reservation, "suspended" or "unconfirmed". "dropped": the reservation was
    #: forgotten in a restored backup, and replaced by what its device had already answered.
    outcome: str
    #: The number of the exchange, if one was reserved.
    sequence: int = 0
    #: The number of the recorded response.
    response: int = 0
    reason: str = ""


def read_key(key: str | None) -> str:
    """Check an idempotency key; make one up if there is none."""
    if key is None:
        return uuid.uuid4().hex
    with at("key"):
        expect(key, str, "a string")
        if not 1 <= len(key) <= _MAX_KEY or not key.isprintable():
            raise InvalidInput(f"must have 1 to {_MAX_KEY} printable characters")
    return key


def subject_state(subject: SubjectRow, generation: int) -> str:
    """Return the state of a subject: active, suspended or unconfirmed."""
    if subject.state != ACTIVE:
        return SUSPENDED
    return ACTIVE if subject.generation >= generation else "unconfirmed"


@dataclass(frozen=True, slots=True)
class RegisterJob:
    """Add subjects of one kind; the result counts the new ones."""

    #: JSON.
    names: Sequence[str]
    kind: str

    def __call__(self, batch: Batch) -> int:
        check_not_ended(batch)
        batch.load(SubjectRow, [(name,) for name in self.names])
        subject_numbers, added = batch.engine.subject_numbers(), 0
        for name in dict.fromkeys(self.names):
            subject = batch.subject(name)
            if (subject is None) != (name not in subject_numbers) and not batch.is_new(name):
                raise InvalidInput("the database contradicts itself; run expost ledger verify")
            if subject is None:
                if len(name) > MAX_NAME:
                    raise InvalidInput(f"a name has more than {MAX_NAME} bytes", "subjects")
                register_subject(batch, name, self.kind)
                added += 1
            elif subject.kind != self.kind:
                raise InvalidInput(
                    f"{name} is registered as {subject.kind}, not as {self.kind}", "subjects"
                )
        return added


def register_subject(batch: Batch, name: str, kind: str) -> SubjectRow:
    """Register one subject. A registration that a restored backup lost is not a new person."""
    digest = batch.tickets.subject_digest(name)
    subject_number = len(batch.engine.subject_numbers()) + batch.count(SubjectRow) + 1
    lost = batch.get(LostRow, digest, "registered")
    if lost is not None and lost.detail != kind:
        raise InvalidInput(
            f"{name} was registered as {lost.detail} before a backup was restored", "subjects"
        )
    generation = batch.generation if lost is None else UNCONFIRMED
    subject = batch.register(name, subject_number, kind, generation)
    if batch.get(LostRow, digest, "barred") is not None:
        subject = batch.suspend(subject, BARRED_REASON)
    if batch.get(LostRow, digest, "withdrawn") is not None:
        subject = batch.suspend(subject, WITHDRAWN_REASON)
    return subject


@dataclass(frozen=True, slots=True)
class _RequestJob:
    """Requests under one key about subjects of one kind; a commit has some rows of the call."""

    #: The kind of all subjects.
    kind: ClassVar[str]

    engine: CommitEngine
    key: str
    #: The subject of each row, as JSON.
    names: Sequence[str]
    queries: Sequence[Query]
    #: For each row, the index of its query.
    query_indices: Ints

    @abstractmethod
    def __call__(self, batch: Batch, rows: Sequence[int]) -> list[Any]:
        """Return a result for each row."""

    def run(self, rows: Sequence[int]) -> list[Any]:
        """Run in a commit; return a result for each row."""
        return self.engine.run_job(partial(self, rows=rows))

    def query(self, row: int) -> Query:
        """Return the query of a row."""
        return self.queries[int(self.query_indices[row])]

    def load(self, batch: Batch, rows: Sequence[int]) -> None:
        """Read the rows of all subjects and requests."""
        batch.load(SubjectRow, [(self.names[row],) for row in rows])
        batch.load(RequestRow, [(self.names[row], self.key) for row in rows])

    def subject(self, batch: Batch, row: int) -> SubjectRow:
        """Return the subject of a row; refuse an unknown one, and one of another kind."""
        name, location = self.names[row], f"row {row + 1}"
        subject = batch.subject(name)
        if subject is None:
            raise InvalidInput(f"no subject {name} in this ledger", location)
        if subject.kind != self.kind:
            reason = f"{name} is registered as {subject.kind}, not as {self.kind}"
            raise InvalidInput(reason, location)
        return subject

    def request(self, batch: Batch, row: int) -> RequestRow | None:
        """Return the earlier request of a row; refuse one that was about another query."""
        request = batch.get(RequestRow, self.names[row], self.key)
        query_id = self.query(row).content_id
        if request is not None and batch.catalog.query_number(query_id) != request.query:
            raise InvalidInput("was used for another query", self.row_location(row))
        return request

    def decide(
        self, batch: Batch, rows: Sequence[int]
    ) -> Iterator[tuple[int, SubjectRow, int, bool]]:
        """Decide about some rows: for each its subject, its query, and whether it is accepted."""
        if not rows:
            return iter(())
        check_not_ended(batch)
        subjects = [self.subject(batch, row) for row in rows]
        queries = [batch.catalog.add_query(self.query(row)) for row in rows]
        tallies, extras = [row.tally for row in subjects], [row.extras for row in subjects]
        accepted = self.engine.decider.accepted(tallies, extras, queries)
        return zip(rows, subjects, queries, accepted, strict=True)

    def row_location(self, row: int) -> str:
        return f"key {self.key!r}: row {row + 1}"


@dataclass(frozen=True, slots=True)
class ReserveJob(_RequestJob):
    """Reserve the next exchange of subjects; the result has an outcome for each row."""

    kind = DEVICE

    def __call__(self, batch: Batch, rows: Sequence[int]) -> list[Outcome]:
        self.load(batch, rows)
        outcomes = {row: self._known_outcome(batch, row) for row in rows}
        new = [row for row, outcome in outcomes.items() if outcome is None]
        for row, subject, query, fits in self.decide(batch, new):
            sequence = subject.sequence + 1 if fits else 0
            batch.add(RequestRow(subject.name, self.key, query, sequence))
            if fits:
                batch.update_subject(subject._replace(reserved=self.key, query=query))
            decision = "reserved" if fits else "refused"
            outcomes[row] = Outcome(subject_from_json(subject.name), decision, sequence)
        return [outcome for outcome in outcomes.values() if outcome is not None]

    def _known_outcome(self, batch: Batch, row: int) -> Outcome | None:
        """Return the outcome of a repeated request, or of one that has to wait."""
        subject = self.subject(batch, row)
        request, name = self.request(batch, row), subject_from_json(subject.name)
        if request is not None:
            return _repeated_outcome(batch, subject, request)
        state = subject_state(subject, batch.generation)
        if state != ACTIVE:
            return Outcome(name, state)
        if subject.reserved:
            reason = f"its device has to answer the reservation with key {subject.reserved!r} first"
            return Outcome(name, "waiting", subject.sequence + 1, reason=reason)
        return None


def _repeated_outcome(batch: Batch, subject: SubjectRow, request: RequestRow) -> Outcome:
    """Return what became of an earlier request."""
    name, sequence = subject_from_json(subject.name), request.sequence
    if not sequence:
        return Outcome(name, "refused")
    if subject.reserved == request.key:
        return Outcome(name, "reserved", sequence)
    if batch.get(DeclineRow, subject.name, request.key) is not None:
        return Outcome(name, "declined", sequence)
    exchange = batch.get(ExchangeRow, subject.name, sequence)
    if exchange is None or exchange.key != request.key:
        return Outcome(name, "dropped", sequence)
    return Outcome(name, "recorded", sequence, exchange.response)


@dataclass(frozen=True, slots=True)
class RecordJob(_RequestJob):
    """Record imported answers. They were given, so they count, whatever the filter says.

    The result says which of them the filter accepts.
    """

    kind = IMPORTED

    #: The position of each response among those of its query.
    positions: Sequence[int]

    def __call__(self, batch: Batch, rows: Sequence[int]) -> list[bool]:
        self.load(batch, rows)
        verdicts = {row: self._known_verdict(batch, row) for row in rows}
        new = [row for row, verdict in verdicts.items() if verdict is None]
        for row, subject, query, fits in self.decide(batch, new):
            verdicts[row] = self._append(batch, subject, query, self.positions[row], fits)
        return [bool(verdict) for verdict in verdicts.values()]

    def _known_verdict(self, batch: Batch, row: int) -> bool | None:
        """Return the verdict about an answer that is recorded already; None if it is new."""
        subject = self.subject(batch, row)
        request = self.request(batch, row)
        if request is None:
            return None
        exchange = batch.get(ExchangeRow, subject.name, request.sequence)
        recorded = exchange and batch.catalog.response(exchange.response).position
        if recorded != self.positions[row]:
            raise InvalidInput("was used for another response", self.row_location(row))
        states = batch.rows_of_subject(StateRow, subject.name)
        suspensions = [change.commit for change in states if change.state == SUSPENDED]
        return not any(commit <= request.commit for commit in suspensions)

    def _append(
        self, batch: Batch, subject: SubjectRow, query: int, position: int, fits: bool
    ) -> bool:
        """Append an answer; return whether the filter accepts it."""
        response = batch.catalog.add_response(query, position)
        active = subject_state(subject, batch.generation) == ACTIVE
        subject = batch.append_exchange(subject, self.key, query, response)
        batch.add(RequestRow(subject.name, self.key, query, subject.sequence))
        owner, query_id = batch.tickets.subject_digest(subject.name), batch.catalog.query_id(query)
        text = batch.catalog.response(response).text
        digest = batch.tickets.import_digest(subject.name, self.key, query_id, text)
        batch.events.append(f"imported {digest} {owner}")
        if batch.get(LostRow, digest, "imported") is not None:
            batch.add_mark("import restored", digest)
            active = subject.state == ACTIVE
            if active and owner not in lost_imports(batch):
                subject = batch.confirm(subject, "its lost answers are recorded again")
        if not fits and subject.state == ACTIVE:
            batch.suspend(subject, "an imported answer is not within the budget")
        return fits and active


def lost_imports(batch: Batch) -> set[str]:
    """Return the digests of subjects with imports that a restored backup lost."""
    restored = {mark.detail for mark in batch.rows(MarkRow) if mark.what == "import restored"}
    lost = [row for row in batch.rows(LostRow) if row.what == "imported"]
    return {row.detail for row in lost if row.digest not in restored}


def check_not_ended(batch: Batch) -> None:
    """Refuse requests after the end of the study."""
    if batch.ended:
        raise InvalidInput("the study has ended")


def end_study(batch: Batch) -> None:
    """End the study, permanently."""
    if not batch.ended:
        batch.add_mark("ended")
        batch.events.append("ended")


def _find_subject(batch: Batch, name: str) -> SubjectRow:
    subject = batch.subject(name)
    if subject is None:
        raise InvalidInput(f"no subject {name} in this ledger", "subjects")
    return subject


def suspend_held(batch: Batch, name: str, *, held: set[str]) -> bool:
    """Suspend a subject with a held message; return whether it was not suspended before."""
    subject = _find_subject(batch, name)
    if name not in held:
        raise InvalidInput(f"{name} has no message that is held", "subjects")
    if subject.state == ACTIVE:
        batch.suspend(subject, "by an operator, because of a held message")
    return subject.state == ACTIVE


def withdraw(batch: Batch, name: str) -> bool:
    """Ask a subject nothing more, permanently; return whether this is new."""
    subject = _find_subject(batch, name)
    if batch.is_withdrawn(name):
        return False
    batch.suspend(subject, WITHDRAWN_REASON)
    return True


def resolve(batch: Batch, name: str) -> bool:
    """End the suspension of a subject; return whether there was one."""
    subject = _find_subject(batch, name)
    if batch.is_withdrawn(name):
        raise InvalidInput(f"{name} has withdrawn from the study", "subjects")
    if subject.state == BARRED:
        reason = f"{name} cannot be resolved: a restored backup lost what it revealed"
        raise InvalidInput(reason, "subjects")
    unconfirmed = subject_state(subject, batch.generation) == "unconfirmed"
    if subject.kind == IMPORTED and unconfirmed:
        batch.confirm(subject, "by an operator")
        return True
    if subject.state == SUSPENDED and subject.kind != DEVICE:
        raise InvalidInput(f"{name} has no device that could confirm its chain", "subjects")
    if subject.state == SUSPENDED:
        batch.resolve(subject)
    return subject.state == SUSPENDED
