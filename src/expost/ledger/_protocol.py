"""The protocol between a ledger and its devices: reservations, messages, receipts, syncs.

The formats, and what happens to everything that can arrive, are in docs/reference/ledger.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from expost.answers import Subject
from expost.errors import InvalidInput
from expost.files.canonical import json_text
from expost.files.reading import NumberText, members, parse, text
from expost.ledger.tables import MAX_SIZE
from expost.transcript import response_from_json

__all__ = ["Message", "Receipt", "Reservation", "SyncAnswer", "SyncRequest"]

#: The outcomes of a message.
RECORDED, DECLINED, QUARANTINED, INCOMPLETE = "recorded", "declined", "quarantined", "incomplete"

_MESSAGE = ("ledger", "subject", "sequence", "previous", "key", "query", "ticket")
_OUTCOME = ("response", "head", "declined")
_SYNC = ("ledger", "subject", "sequence", "head", "nonce", "messages", "queries")
_INTEGER = re.compile("-?[0-9]{1,18}")
# A sync may carry many messages. A device splits them; this bounds what a stranger can send.
_MAX_SYNC = 4 * MAX_SIZE


@dataclass(frozen=True, slots=True)
class Reservation:
    """The next exchange of a subject, which its device is to answer."""

    ledger: str
    subject: Subject
    sequence: int
    #: The head before the exchange.
    previous: str
    key: str
    #: The query, as JSON.
    document: str
    ticket: str

    def tree(self) -> dict[str, Any]:
        """Return what a sync answer has."""
        fields = asdict(self)
        return fields | {"query": json.loads(fields.pop("document"))}


class Message(NamedTuple):
    """A device's answer to one reservation: a response, or that it declines."""

    ledger: str
    subject: Subject
    sequence: int
    previous: str
    key: str
    #: Its content id.
    query: str
    ticket: str
    response: Any
    head: str
    declined: bool

    @classmethod
    def read(cls, content: bytes) -> Message:
        """Read a message strictly."""
        fields = _read(content, MAX_SIZE, _MESSAGE, _OUTCOME)
        declined = "declined" in fields
        if any((name in fields) is declined for name in ("response", "head")):
            raise InvalidInput("needs either response and head, or declined")
        if declined and fields["declined"] is not True:
            raise InvalidInput("must be true", "declined")
        return cls(
            text(fields["ledger"]),
            _name(fields["subject"]),
            _integer(fields["sequence"], "sequence"),
            text(fields["previous"]),
            text(fields["key"]),
            text(fields["query"]),
            text(fields["ticket"]),
            None if declined else response_from_json(fields["response"]),
            "" if declined else text(fields["head"]),
            declined,
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a message."""

    #: "recorded", "declined", "quarantined", or "incomplete": nothing was recorded, and the device
    #: has to sync.
    outcome: str
    subject: Subject | None = None
    sequence: int = 0
    key: str = ""
    head: str = ""
    #: Why a message was quarantined or is incomplete.
    reason: str = ""
    #: True if its subject was not suspended, because an operator has to look first.
    held: bool = False

    def tree(self) -> dict[str, Any]:
        """Return what is sent back; empty fields are left out."""
        fields: dict[str, Any] = {"outcome": self.outcome}
        for name in ("subject", "sequence", "key", "head", "reason", "held"):
            value = getattr(self, name)
            if value or (value == 0 and name == "subject"):
                fields[name] = value
        return fields

    def to_json(self) -> str:
        return json_text(self.tree())


class SyncRequest(NamedTuple):
    """The chain head of a device, and the messages that the ledger may lack."""

    ledger: str
    subject: Subject
    sequence: int
    head: str
    nonce: str
    messages: Sequence[bytes]
    #: Query documents by content id.
    queries: Mapping[str, Any]

    @classmethod
    def read(cls, content: bytes) -> SyncRequest:
        """Read a sync request strictly."""
        fields = _read(content, _MAX_SYNC, _SYNC, ())
        messages, queries = fields["messages"], fields["queries"]
        if not isinstance(messages, list) or not isinstance(queries, dict):
            raise InvalidInput("messages must be a list, and queries an object")
        return cls(
            text(fields["ledger"]),
            _name(fields["subject"]),
            _integer(fields["sequence"], "sequence"),
            text(fields["head"]),
            text(fields["nonce"]),
            [text(message).encode() for message in messages],
            queries,
        )


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """The recorded head of a subject, receipts of its messages, and its open reservation."""

    ledger: str
    subject: Subject
    nonce: str
    #: The number of exchanges that the ledger has recorded.
    confirmed: int
    #: The head after them.
    head: str
    #: "active", "suspended", "unconfirmed", "ended" or "unknown".
    state: str
    receipts: tuple[Receipt, ...]
    reservation: Reservation | None

    def to_json(self) -> str:
        # Without asdict, which would copy what is replaced here.
        tree = {field.name: getattr(self, field.name) for field in fields(self)}
        tree["receipts"] = [receipt.tree() for receipt in self.receipts]
        tree["reservation"] = None if self.reservation is None else self.reservation.tree()
        return json_text(tree)


def _read(
    content: bytes, size_limit: int, required: Sequence[str], optional: Sequence[str]
) -> dict[str, Any]:
    if len(content) > size_limit:
        raise InvalidInput(f"has more than {size_limit:,} bytes")
    try:
        return members(parse(content.decode()), required, optional)
    except (UnicodeDecodeError, RecursionError):
        raise InvalidInput("is not UTF-8 JSON") from None


def _name(value: Any) -> Subject:
    if isinstance(value, NumberText):
        return _integer(value, "subject")
    name = text(value)
    if not name:
        raise InvalidInput("is empty", "subject")
    return name


def _integer(value: Any, field: str) -> int:
    if isinstance(value, NumberText) and _INTEGER.fullmatch(value):
        return int(value)
    raise InvalidInput("must be an integer", field)
