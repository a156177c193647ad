"""Jobs that register subjects, reserve exchanges for devices, and record imported answers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from expost.answers import Subject
from expost.errors import InvalidInput, at, expect
from expost.ledger.batch import UNCONFIRMED, Batch, subject_of
from expost.ledger.engine import Engine
from expost.ledger.tables import (
    ACTIVE,
    SUSPENDED,
    DeclineRow,
    ExchangeRow,
    LostRow,
    RequestRow,
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
    "Record",
    "Register",
    "Reserve",
    "end_study",
    "lost_imports",
    "read_key",
    "register_subject",
    "shown_state",
]

#: The kinds of subjects: a device answers, answers come from elsewhere, or `ask` draws them.
DEVICE, IMPORTED, SIMULATED = KINDS = ("device", "imported", "simulated")

_MAX_KEY = 200
#: The longest name of a subject, in bytes of its JSON.
MAX_NAME = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request for one subject."""

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


def shown_state(subject: SubjectRow, generation: int) -> str:
    """Return the state of a subject: active, suspended or unconfirmed."""
    if subject.state != ACTIVE:
        return SUSPENDED
    return ACTIVE if subject.generation >= generation else "unconfirmed"


@dataclass(frozen=True, slots=True)
class Register:
    """Add subjects of one kind; the result counts the new ones."""

    engine: Engine
    #: JSON.
    names: Sequence[str]
    kind: str

    def __call__(self, batch: Batch) -> int:
        check_not_ended(batch)
        batch.load(SubjectRow, [(name,) for name in self.names])
        known, new = self.engine.names(), 0
        for name in dict.fromkeys(self.names):
            subject = batch.subject(name)
            if (subject is None) != (name not in known) and not batch.is_new(name):
                raise InvalidInput("the database contradicts itself; run expost ledger verify")
            if subject is None:
                if len(name) > MAX_NAME:
                    raise InvalidInput(f"a name has more than {MAX_NAME} bytes", "subjects")
                register_subject(self.engine, batch, name, self.kind)
                new += 1
            elif subject.kind != self.kind:
                raise InvalidInput(
                    f"{name} is registered as {subject.kind}, not as {self.kind}", "subjects"
                )
        return new


def register_subject(engine: Engine, batch: Batch, name: str, kind: str) -> SubjectRow:
    """Register one subject. A registration that a restored backup lost is not a new person."""
    digest = batch.tickets.subject_digest(name)
    number = len(engine.names()) + batch.count(SubjectRow) + 1
    lost = batch.get(LostRow, digest, "registered")
    if lost is not None and lost.detail != kind:
        raise InvalidInput(
            f"{name} was registered as {lost.detail} before a backup was restored", "subjects"
        )
    generation = batch.generation if lost is None else UNCONFIRMED
    subject = batch.register(name, number, kind, generation)
    if batch.get(LostRow, digest, "barred") is not None:
        subject = batch.bar(subject)
    return subject


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests about subjects of one kind under one key, a row for each subject."""

    engine: Engine
    kind: str
    key: str
    #: JSON; each appears once.
    names: Sequence[str]
    #: One for each name.
    queries: Sequence[Query]
    #: The rows of the call, for errors.
    rows: Sequence[int]

    def load(self, batch: Batch) -> None:
        """Read the rows of all subjects and requests."""
        batch.load(SubjectRow, [(name,) for name in self.names])
        batch.load(RequestRow, [(name, self.key) for name in self.names])

    def subject(self, batch: Batch, place: int) -> SubjectRow:
        """Return the subject of a row; refuse an unknown one, and one of another kind."""
        name, row = self.names[place], f"row {self.rows[place] + 1}"
        subject = batch.subject(name)
        if subject is None:
            raise InvalidInput(f"no subject {name} in this ledger", row)
        if subject.kind != self.kind:
            raise InvalidInput(f"{name} is registered as {subject.kind}, not as {self.kind}", row)
        return subject

    def request(self, batch: Batch, place: int) -> RequestRow | None:
        """Return the earlier request of a row; refuse one that was about another query."""
        request = batch.get(RequestRow, self.names[place], self.key)
        same = self.queries[place].content_id
        if request is not None and batch.catalog.number(same) != request.query:
            raise InvalidInput("was used for another query", self.place(place))
        return request

    def decide(
        self, batch: Batch, places: Sequence[int]
    ) -> list[tuple[int, SubjectRow, int, bool]]:
        """Decide about some rows: for each its subject, its query, and whether it is accepted."""
        check_not_ended(batch)
        subjects = [self.subject(batch, place) for place in places]
        queries = [batch.catalog.add_query(self.queries[place], batch.number) for place in places]
        tallies, extras = [row.tally for row in subjects], [row.extras for row in subjects]
        accepted = self.engine.decider.accepted(tallies, extras, queries)
        return list(zip(places, subjects, queries, accepted, strict=True))

    def place(self, place: int) -> str:
        return f"key {self.key!r}: row {self.rows[place] + 1}"


@dataclass(frozen=True, slots=True)
class Reserve(_Requests):
    """Reserve the next exchange of subjects; the result has an outcome for each."""

    def __call__(self, batch: Batch) -> list[Outcome]:
        self.load(batch)
        outcomes = {place: self._known(batch, place) for place in range(len(self.names))}
        new = [place for place, outcome in outcomes.items() if outcome is None]
        for place, subject, query, fits in self.decide(batch, new) if new else ():
            sequence = subject.sequence + 1 if fits else 0
            batch.add(RequestRow(subject.name, self.key, query, sequence, batch.number))
            if fits:
                batch.change(subject._replace(reserved=self.key, query=query))
            what = "reserved" if fits else "refused"
            outcomes[place] = Outcome(subject_of(subject.name), what, sequence)
        return [outcome for outcome in outcomes.values() if outcome is not None]

    def _known(self, batch: Batch, place: int) -> Outcome | None:
        """Return the outcome of a repeated request, or of one that has to wait."""
        subject = self.subject(batch, place)
        request = self.request(batch, place)
        if request is not None:
            return repeated_outcome(batch, subject, request)
        state = shown_state(subject, batch.generation)
        if state != ACTIVE:
            return Outcome(subject_of(subject.name), state)
        if subject.reserved:
            reason = f"its device has to answer the reservation with key {subject.reserved!r} first"
            return Outcome(subject_of(subject.name), "waiting", subject.sequence + 1, reason=reason)
        return None


def repeated_outcome(batch: Batch, subject: SubjectRow, request: RequestRow) -> Outcome:
    """Return what became of an earlier request."""
    name, sequence = subject_of(subject.name), request.sequence
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
class Record(_Requests):
    """Record imported answers. They were given, so they count, whatever the filter says.

    The result says which of them the filter accepts.
    """

    #: Of the responses.
    positions: Sequence[int]

    def __call__(self, batch: Batch) -> list[bool]:
        self.load(batch)
        verdicts = {place: self._known(batch, place) for place in range(len(self.names))}
        new = [place for place, verdict in verdicts.items() if verdict is None]
        for place, subject, query, fits in self.decide(batch, new) if new else ():
            verdicts[place] = self._append(batch, subject, query, self.positions[place], fits)
        return [bool(verdict) for verdict in verdicts.values()]

    def _known(self, batch: Batch, place: int) -> bool | None:
        """Return the verdict about an answer that is recorded already; None if it is new."""
        subject = self.subject(batch, place)
        request = self.request(batch, place)
        if request is None:
            return None
        exchange = batch.get(ExchangeRow, subject.name, request.sequence)
        recorded = exchange and batch.catalog.response(exchange.response).position
        if recorded != self.positions[place]:
            raise InvalidInput("was used for another response", self.place(place))
        changes = [row for row in batch.states(subject.name) if row.commit <= request.commit]
        suspended = [row for row in changes if row.state == SUSPENDED]
        return not suspended

    def _append(
        self, batch: Batch, subject: SubjectRow, query: int, position: int, fits: bool
    ) -> bool:
        """Append an answer; return whether the filter accepts it."""
        response = batch.catalog.add_response(query, position, batch.number)
        active = shown_state(subject, batch.generation) == ACTIVE
        subject = batch.append(subject, self.key, query, response)
        batch.add(RequestRow(subject.name, self.key, query, subject.sequence, batch.number))
        entry, owner = batch.catalog.response(response), batch.tickets.subject_digest(subject.name)
        digest = batch.tickets.import_digest(
            subject.name, self.key, batch.catalog.query_id(query), entry.text
        )
        batch.events.append(f"imported {digest} {owner}")
        if batch.get(LostRow, digest, "imported") is not None:
            batch.mark("import restored", digest)
            active = subject.state == ACTIVE
            if active and owner not in lost_imports(batch):
                subject = batch.confirm(subject, "its lost answers are recorded again")
        if not fits and subject.state == ACTIVE:
            batch.suspend(subject, "an imported answer is not within the budget")
        return fits and active


def lost_imports(batch: Batch) -> set[str]:
    """Return the digests of subjects with imports that a restored backup lost."""
    restored = {mark.detail for mark in batch.marks() if mark.what == "import restored"}
    return {row.detail for row in batch.lost("imported") if row.digest not in restored}


def check_not_ended(batch: Batch) -> None:
    """Refuse requests after the end of the study."""
    if batch.ended:
        raise InvalidInput("the study has ended")


def end_study(batch: Batch) -> None:
    """End the study, permanently."""
    if not batch.ended:
        batch.mark("ended")
        batch.events.append("ended")
