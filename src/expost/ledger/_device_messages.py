"""Jobs that take in messages and syncs of devices.

A message fits its reservation and is recorded, repeats a recorded one and changes nothing, restores
an exchange that a rolled-back ledger has forgotten (its ticket proves that), or does not fit: then
it is quarantined and its subject suspended.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from expost.errors import InvalidInput
from expost.ledger._batch import UNCONFIRMED, Batch
from expost.ledger._catalog import query_document
from expost.ledger._digests import first_head, next_head
from expost.ledger._protocol import (
    DECLINED,
    INCOMPLETE,
    QUARANTINED,
    RECORDED,
    Message,
    Receipt,
    Reservation,
    SyncAnswer,
    SyncRequest,
)
from expost.ledger._requests import DEVICE, MAX_NAME, register_subject, subject_state
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import (
    ACTIVE,
    NO_SUBJECT,
    DeclineRow,
    ExchangeRow,
    ExtraRow,
    LostRow,
    QuarantineRow,
    RequestRow,
    SubjectRow,
)
from expost.queries import query_from_json
from expost.tally import add_response

__all__ = ["IncomingMessage", "ReceiveJob", "SyncJob"]

#: Bytes of a quarantined message that are stored.
_STORED_BYTES = 4096
_REASON_LENGTH = 200
# From so many subjects on, and if more than this share of them do not fit, a call looks like a
# faulty client release, and an operator decides about suspensions.
_HOLD_SUBJECTS, _HOLD_SHARE = 100, 0.01


class IncomingMessage(NamedTuple):
    """A received message: its bytes, the documents sent with it, and who sent it if known."""

    content: bytes
    documents: Mapping[str, Any] = {}
    #: The only subject that the sender may speak for (JSON).
    sender: str | None = None


class _Misfit(NamedTuple):
    """Why a message does not fit."""

    reason: str
    subject: str = NO_SUBJECT


@dataclass(frozen=True, slots=True)
class ReceiveJob:
    """Take in messages, in their order; the result has a receipt for each."""

    incoming: Sequence[IncomingMessage]

    def __call__(self, batch: Batch) -> list[Receipt]:
        messages = [_parse(incoming, batch.tickets.policy_id) for incoming in self.incoming]
        self._load(batch, [message for message in messages if isinstance(message, Message)])
        receipts: list[Receipt | _Misfit] = []
        fitting: set[str] = set()
        for message, incoming in zip(messages, self.incoming, strict=True):
            if not isinstance(message, Message):
                receipts.append(message)
                continue
            name = json.dumps(message.subject)
            before = batch.subject(name)
            receipts.append(_MessageReceiver(batch, message, incoming).receive())
            if batch.subject(name) is not before:
                fitting.add(name)
        return self._quarantine(batch, messages, receipts, fitting)

    def _load(self, batch: Batch, messages: Sequence[Message]) -> None:
        """Read the rows that messages need, table by table."""
        names = [json.dumps(message.subject) for message in messages]
        batch.load(SubjectRow, [(name,) for name in names])
        repeated = []
        for message, name in zip(messages, names, strict=True):
            subject = batch.subject(name)
            if subject is not None and 1 <= message.sequence <= subject.sequence:
                repeated.append((name, message.sequence))
        batch.load(ExchangeRow, repeated)

    def _quarantine(
        self,
        batch: Batch,
        messages: Sequence[Message | _Misfit],
        receipts: Sequence[Receipt | _Misfit],
        fitting: set[str],
    ) -> list[Receipt]:
        """Quarantine what did not fit, and suspend its subjects unless an operator has to look.

        Junk and repeats do not count: with them, a few cheating devices would look like many.
        """
        misfits = {
            receipt.subject
            for receipt, incoming in zip(receipts, self.incoming, strict=True)
            if isinstance(receipt, _Misfit) and _would_suspend(batch, receipt, incoming.content)
        }
        senders = fitting | misfits
        held = len(senders) >= _HOLD_SUBJECTS and len(misfits) > _HOLD_SHARE * len(senders)
        result = []
        for message, incoming, receipt in zip(messages, self.incoming, receipts, strict=True):
            if isinstance(receipt, _Misfit):
                readable = message if isinstance(message, Message) else None
                receipt = _quarantine_one(batch, receipt, incoming.content, readable, held)
            result.append(receipt)
        return result


class _MessageReceiver(NamedTuple):
    """One message about a subject of this ledger, and what becomes of it."""

    batch: Batch
    message: Message
    incoming: IncomingMessage

    def receive(self) -> Receipt | _Misfit:
        message, name = self.message, json.dumps(self.message.subject)
        if self.incoming.sender not in (None, name):
            return _Misfit("about another subject than its sender")
        subject = self.batch.subject(name)
        if subject is None:
            subject = restore_subject(self.batch, name, message)
            if subject is None:
                return _Misfit("about no subject of this ledger")
        if subject.kind != DEVICE:
            return _Misfit("about a subject without a device")
        if message.sequence < 1:
            return _Misfit("its sequence number is not positive", name)
        if message.declined:
            return self._decline(subject)
        if message.sequence <= subject.sequence:
            return self._repeat(subject)
        if self._is_reserved(subject):
            return self._append(subject, subject.query, restored=False)
        return self._restore(subject)

    def _is_reserved(self, subject: SubjectRow) -> bool:
        """Return whether the message answers the open reservation."""
        message = self.message
        return (
            subject.reserved == message.key != ""
            and subject.sequence + 1 == message.sequence
            and self.batch.catalog.query_number(message.query) == subject.query
        )

    def _repeat(self, subject: SubjectRow) -> Receipt | _Misfit:
        """Compare a message with the exchange that is recorded under its number."""
        message, catalog = self.message, self.batch.catalog
        exchange = self.batch.get(ExchangeRow, subject.name, message.sequence)
        if exchange is None:
            raise LedgerDamaged(f"an exchange of subject number {subject.number} is missing")
        position = catalog.likelihood(exchange.query).position(message.response)
        recorded = (
            exchange.key == message.key
            and exchange.head.hex() == message.head
            and catalog.query_id(exchange.query) == message.query
            and catalog.response(exchange.response).position == position
        )
        if recorded:
            return self._receipt(RECORDED, head=message.head)
        return _Misfit(f"another answer to exchange {message.sequence}", subject.name)

    def _decline(self, subject: SubjectRow) -> Receipt | _Misfit:
        """Release a declined reservation. A device that declines has drawn nothing."""
        batch, message = self.batch, self.message
        if self._is_reserved(subject):
            batch.add(DeclineRow(subject.name, message.key))
            batch.update_subject(subject._replace(reserved="", query=0))
        elif batch.get(DeclineRow, subject.name, message.key) is None and not has_ticket(
            batch, message
        ):
            return _Misfit("declines a reservation that was never made", subject.name)
        return self._receipt(DECLINED)

    def _restore(self, subject: SubjectRow) -> Receipt | _Misfit:
        """Record an exchange that is not reserved, if its ticket proves that it once was."""
        batch, message = self.batch, self.message
        request = batch.get(RequestRow, subject.name, message.key)
        declined = batch.get(DeclineRow, subject.name, message.key) is not None
        if not has_ticket(batch, message):
            reason = "another reservation is open" if subject.reserved else "nothing is reserved"
            return _Misfit(reason, subject.name)
        if message.sequence > subject.sequence + 1:
            missing = subject.sequence + 1
            return self._receipt(INCOMPLETE, reason=f"exchange {missing} is missing; sync first")
        if message.previous != subject.head.hex():
            return _Misfit("does not follow the recorded chain", subject.name)
        query = self._query()
        if not query:
            return self._receipt(INCOMPLETE, reason="its query is unknown; sync first")
        current = subject.generation == batch.generation
        remembered = request is not None and request[2:4] == (query, message.sequence)
        if remembered and declined:
            return _Misfit("answers a reservation that was declined", subject.name)
        receipt = self._append(subject, query, restored=True)
        if isinstance(receipt, Receipt) and request is None:
            batch.add(RequestRow(subject.name, message.key, query, message.sequence))
        if isinstance(receipt, Receipt) and not remembered and current:
            # A ticket that this ledger does not remember, although it knows of no rollback that
            # would explain it: database and checkpoint were put back together.
            batch.add_mark("rollback", "proved by a ticket")
        return receipt

    def _query(self) -> int:
        """Return the number of the message's query, adding the document that was sent with it."""
        query_id = self.message.query
        query_number = self.batch.catalog.query_number(query_id)
        if query_number or query_id not in self.incoming.documents:
            return query_number
        try:
            query = query_from_json(self.incoming.documents[query_id])
            if query.content_id != query_id:
                return 0
            self.batch.engine.check_query(query)
            return self.batch.catalog.add_query(query)
        except InvalidInput:
            return 0

    def _append(self, subject: SubjectRow, query: int, *, restored: bool) -> Receipt | _Misfit:
        batch, message = self.batch, self.message
        position = batch.catalog.likelihood(query).position(message.response)
        if position is None:
            return _Misfit("not a response of the query", subject.name)
        response = batch.catalog.add_response(query, position)
        prefix = batch.catalog.response(response).chain_prefix
        head = next_head(subject.head, prefix, message.sequence)
        if head.hex() != message.head:
            return _Misfit("the head does not follow", subject.name)
        decider = batch.engine.decider
        fits = not restored or decider.accepted([subject.tally], [subject.extras], [query])[0]
        subject = batch.append_exchange(subject, message.key, query, response, head)
        if not fits and subject.state == ACTIVE:
            batch.suspend(subject, "a restored answer is not within the budget")
        return self._receipt(RECORDED, head=message.head)

    def _receipt(self, outcome: str, *, head: str = "", reason: str = "") -> Receipt:
        message = self.message
        return Receipt(outcome, message.subject, message.sequence, message.key, head, reason)


def restore_subject(batch: Batch, name: str, message: Message | None) -> SubjectRow | None:
    """Register a device subject again that a restored backup has lost; None if it is unknown.

    Either the checkpoint lists the registration, or a ticket proves it.
    """
    if len(name) > MAX_NAME or name in batch.engine.subject_numbers():
        return None
    lost = batch.get(LostRow, batch.tickets.subject_digest(name), "registered")
    proved = False
    if lost is None and message is not None:
        start = first_head(batch.tickets.policy_id, message.subject).hex()
        proved = message.sequence == 1 and has_ticket(batch, message._replace(previous=start))
    if not proved and (lost is None or lost.detail != DEVICE):
        return None
    subject = register_subject(batch, name, DEVICE)._replace(generation=UNCONFIRMED)
    batch.update_subject(subject)
    if proved and not batch.generation:  # else a known rollback explains it
        batch.add_mark("rollback", "proved by a ticket")
    return subject


def has_ticket(batch: Batch, message: Message) -> bool:
    """Return whether a message has the ticket of its reservation."""
    expected = batch.tickets.ticket(
        message.subject, message.sequence, message.previous, message.key, message.query
    )
    return hmac.compare_digest(expected.encode(), message.ticket.encode())


def _parse(incoming: IncomingMessage, policy_id: str) -> Message | _Misfit:
    try:
        message = Message.read(incoming.content)
    except InvalidInput as error:
        return _Misfit(f"not a message: {error}"[:_REASON_LENGTH])
    return message if message.ledger == policy_id else _Misfit("of another ledger")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _would_suspend(batch: Batch, misfit: _Misfit, content: bytes) -> bool:
    """Return whether a message is a new misfit of a subject that is not suspended already."""
    subject = batch.subject(misfit.subject) if misfit.subject else None
    if subject is None or subject.state != ACTIVE:
        return False
    return batch.get(QuarantineRow, _digest(content), misfit.subject) is None


def _quarantine_one(
    batch: Batch, misfit: _Misfit, content: bytes, message: Message | None, held: bool
) -> Receipt:
    """Store a message that does not fit, count what it revealed, and suspend its subject."""
    digest, reason, name = _digest(content), misfit.reason, misfit.subject
    quarantined = batch.get(QuarantineRow, digest, name)
    if quarantined is None:
        stored = content[:_STORED_BYTES]
        batch.add(QuarantineRow(digest, name, reason, stored, len(content), int(held)))
        subject = batch.subject(name) if name else None
        if subject is not None:
            if message is not None:
                subject = _count_extra(batch, subject, message, digest)
            if not held and subject.state == ACTIVE:
                batch.suspend(subject, reason)
    else:
        reason, held = quarantined.reason, bool(quarantined.held)
    if message is None or not name:
        return Receipt(QUARANTINED, reason=reason)
    return Receipt(
        QUARANTINED, message.subject, message.sequence, message.key, reason=reason, held=held
    )


def _count_extra(batch: Batch, subject: SubjectRow, message: Message, digest: str) -> SubjectRow:
    """Count the response in a quarantined message, unless it is the recorded one."""
    query = batch.catalog.query_number(message.query)
    if not query or message.declined:
        return subject
    position = batch.catalog.likelihood(query).position(message.response)
    if position is None:
        return subject
    response = batch.catalog.add_response(query, position)
    recorded = batch.get(ExchangeRow, subject.name, message.sequence)
    if recorded is not None and (recorded.query, recorded.response) == (query, response):
        return subject
    batch.add(ExtraRow(subject.name, digest, message.sequence, query, response))
    batch.events.append(f"extra {batch.tickets.subject_digest(subject.name)}")
    subject = subject._replace(extras=add_response(subject.extras, response))
    batch.update_subject(subject)
    return subject


@dataclass(frozen=True, slots=True)
class SyncJob:
    """Take in syncs of devices; the result has an answer for each, or a receipt of junk."""

    contents: Sequence[bytes]

    def __call__(self, batch: Batch) -> list[SyncAnswer | Receipt]:
        requests = [self._parse(batch, content) for content in self.contents]
        readable = [entry for entry in requests if isinstance(entry, SyncRequest)]
        for request in readable:
            if batch.subject(json.dumps(request.subject)) is None and not request.messages:
                restore_subject(batch, json.dumps(request.subject), None)
        incoming = [
            IncomingMessage(content, request.queries, json.dumps(request.subject))
            for request in readable
            for content in request.messages
        ]
        receipts = iter(ReceiveJob(incoming)(batch))
        return [
            self._answer(batch, request, tuple(next(receipts) for _ in request.messages))
            if isinstance(request, SyncRequest)
            else request
            for request in requests
        ]

    def _parse(self, batch: Batch, content: bytes) -> SyncRequest | Receipt:
        try:
            request = SyncRequest.read(content)
            if request.ledger != batch.tickets.policy_id:
                raise InvalidInput("of another ledger")
            return request
        except InvalidInput as error:
            misfit = _Misfit(f"not a sync request: {error}"[:_REASON_LENGTH])
            return _quarantine_one(batch, misfit, content, None, held=False)

    def _answer(
        self, batch: Batch, request: SyncRequest, receipts: tuple[Receipt, ...]
    ) -> SyncAnswer:
        policy_id, subject = batch.tickets.policy_id, batch.subject(json.dumps(request.subject))
        sequence, head, reservation = 0, first_head(policy_id, request.subject), None
        state = "unknown"
        if subject is not None and subject.kind == DEVICE:
            subject = self._compare(batch, request, subject)
            sequence, head = subject.sequence, subject.head
            state = subject_state(subject, batch.generation)
            state = "ended" if batch.ended and state == ACTIVE else state
            reservation = self._reservation(batch, request, subject, state)
        return SyncAnswer(
            policy_id, request.subject, request.nonce, sequence, head.hex(), state, receipts,
            reservation,
        )  # fmt: skip

    def _compare(self, batch: Batch, request: SyncRequest, subject: SubjectRow) -> SubjectRow:
        """Confirm a subject whose device has the recorded chain; suspend one that has another."""
        recorded_head: bytes | None = subject.head
        if request.sequence > subject.sequence or request.sequence < 0:
            return subject  # the device has to send what is missing
        if request.sequence == 0:
            recorded_head = first_head(batch.tickets.policy_id, request.subject)
        elif request.sequence < subject.sequence:
            exchange = batch.get(ExchangeRow, subject.name, request.sequence)
            recorded_head = None if exchange is None else exchange.head
        if recorded_head is None or recorded_head.hex() != request.head:
            claim = json.dumps([request.subject, request.sequence, request.head]).encode()
            reason = f"its device has another chain at exchange {request.sequence}"
            _quarantine_one(batch, _Misfit(reason, subject.name), claim, None, held=False)
            subject = batch.subject(subject.name) or subject
            # An operator may have resolved it, but its device still has another chain.
            return batch.suspend(subject, reason) if subject.state == ACTIVE else subject
        unconfirmed = subject_state(subject, batch.generation) == "unconfirmed"
        if unconfirmed and request.sequence == subject.sequence:
            return batch.confirm(subject, "its device has synced")
        return subject

    def _reservation(
        self, batch: Batch, request: SyncRequest, subject: SubjectRow, state: str
    ) -> Reservation | None:
        """Return the open reservation, for a device that is where the ledger is."""
        current = (request.sequence, request.head) == (subject.sequence, subject.head.hex())
        if state != ACTIVE or not current or not subject.reserved:
            return None
        sequence, previous = subject.sequence + 1, subject.head.hex()
        query_id = batch.catalog.query_id(subject.query)
        return Reservation(
            batch.tickets.policy_id,
            request.subject,
            sequence,
            previous,
            subject.reserved,
            query_document(batch.catalog.query(subject.query)),
            batch.tickets.ticket(request.subject, sequence, previous, subject.reserved, query_id),
        )
