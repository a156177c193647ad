"""What is exchanged with devices: reservations, messages and receipts.

The format, and what becomes of everything that can arrive, is in docs/reference/ledger.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from expost.answers import Subject
from expost.errors import ExpostError, InvalidInput, at, expect
from expost.files.canonical import json_text, readable
from expost.files.reading import NumberText, members, parse, scalar, text
from expost.queries import Query

__all__ = ["LONGEST", "Message", "Receipt", "Reservation", "read_message"]

LONGEST = 1 << 16
"""The most bytes of a message."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The next exchange of a subject, which its device is to answer."""

    ledger: str
    subject: Subject
    sequence: int
    previous: str
    """The head before the exchange."""
    key: str
    query: Query

    def to_json(self) -> str:
        """What is sent to the device."""
        query = readable({"kind": self.query.kind, **self.query.tree()})
        return json_text(
            {
                "ledger": self.ledger,
                "subject": self.subject,
                "sequence": self.sequence,
                "previous": self.previous,
                "key": self.key,
                "query": query,
            }
        )


class Message(NamedTuple):
    """What a device sent."""

    ledger: str
    subject: Subject
    sequence: int
    key: str
    query: str
    """Its content id."""
    response: Any
    head: str
    declined: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the ledger says to a message."""

    outcome: str
    """``recorded``, ``declined`` or ``kept``."""
    subject: Subject | None = None
    sequence: int = 0
    key: str = ""
    head: str = ""
    reason: str = ""
    """Why it did not fit, if it was kept."""

    def to_json(self) -> str:
        """What is sent back."""
        fields: dict[str, Any] = {"outcome": self.outcome}
        for name in ("subject", "sequence", "key", "head", "reason"):
            value = getattr(self, name)
            if value not in (None, "", 0):
                fields[name] = value
        return json_text(fields)


def read_message(message: bytes) -> Message:
    """Read what a device sent, strictly."""
    expect(message, bytes, "bytes")
    if len(message) > LONGEST:
        raise InvalidInput(f"has more than {LONGEST:,} bytes")
    try:
        fields = members(
            parse(message.decode()),
            required=("ledger", "subject", "sequence", "key", "query"),
            optional=("response", "head", "declined"),
        )
        declined = "declined" in fields
        for name in ("response", "head"):
            if (name in fields) is declined:
                raise InvalidInput("needs either a response and a head, or to be declined")
        if declined and fields["declined"] is not True:
            raise InvalidInput("must be true", "declined")
        with at("subject"):
            subject = _name(fields["subject"])
        with at("sequence"):
            sequence = _whole(fields["sequence"])
        response = None if declined else _response(fields["response"])
        return Message(
            text(fields["ledger"]),
            subject,
            sequence,
            text(fields["key"]),
            text(fields["query"]),
            response,
            "" if declined else text(fields["head"]),
            declined,
        )
    except (UnicodeDecodeError, RecursionError):
        raise InvalidInput("is not UTF-8 JSON") from None
    except ExpostError:
        raise
    except (TypeError, ValueError):
        raise InvalidInput("cannot be read") from None


def _name(value: Any) -> Subject:
    if isinstance(value, NumberText):
        return _whole(value)
    name = text(value)
    if not name:
        raise InvalidInput("is empty")
    return name


def _whole(value: Any) -> int:
    if not isinstance(value, NumberText):
        raise InvalidInput("must be a whole number")
    number = json.loads(value)
    if type(number) is not int or abs(number) >= 1 << 63:
        raise InvalidInput("must be a whole number")
    return number


def _response(value: Any) -> Any:
    with at("response"):
        return [scalar(entry) for entry in value] if isinstance(value, list) else scalar(value)
