"""The tables of a ledger: one record per kind of row, the same in SQLite and PostgreSQL.

Rows are only ever added, except that a subject's row changes as its chain grows. The last field of
every row is the number of the commit that added it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_type_hints

from expost.ledger.errors import Damaged

__all__ = [
    "ACTIVE",
    "BARRED",
    "MAX_SIZE",
    "NOBODY",
    "SUSPENDED",
    "TABLES",
    "CommitRow",
    "DeclineRow",
    "ExchangeRow",
    "ExtraRow",
    "LostRow",
    "MarkRow",
    "QuarantineRow",
    "QueryRow",
    "RequestRow",
    "ResponseRow",
    "StateRow",
    "SubjectRow",
    "Table",
    "check_seal",
    "root_line",
    "seal",
    "table_of",
]

MAX_SIZE = 1 << 20
#: The largest message, reservation or query document, in bytes.

NOBODY = ""
#: Stands for a subject where a row is about none.

ACTIVE, SUSPENDED, BARRED = "active", "suspended", "barred"
#: The stored states of a subject. A barred subject is suspended and cannot be resolved.


class CommitRow(NamedTuple):
    """One commit: its root, and the events that the checkpoint lists for it."""

    number: int
    root: bytes
    events: str
    #: A JSON list, see :mod:`expost.ledger.checkpoint`.


class SubjectRow(NamedTuple):
    """One subject: who it is, and where its chain stands. The fields after ``kind`` change."""

    name: str
    #: JSON, so that 1 and "1" differ.
    number: int
    #: Counts registrations from 1.
    kind: str
    #: "device", "imported" or "simulated".
    state: str
    generation: int
    #: How many recoveries of the ledger its device has confirmed; fewer than there were means that
    #: it is unconfirmed.
    sequence: int
    #: How many exchanges are recorded.
    head: bytes
    tally: bytes
    #: How often each response was given, as :mod:`expost.ledger.tallies` packs it.
    extras: bytes
    #: The same for the responses in quarantined messages that no exchange records.
    reserved: str
    #: The idempotency key of the open reservation; empty if there is none.
    query: int
    #: The query of the open reservation.
    commit: int
    seal: int = 0
    #: A checksum of everything above.


class QueryRow(NamedTuple):
    """A query by its number."""

    number: int
    content_id: str
    name: str
    document: str
    commit: int


class ResponseRow(NamedTuple):
    """A response to a query by its number; ``response`` is JSON."""

    number: int
    query: int
    response: str
    commit: int


class RequestRow(NamedTuple):
    """What a key was used for: a reserved or recorded exchange, or a refusal (sequence 0)."""

    subject: str
    key: str
    query: int
    sequence: int
    commit: int


class DeclineRow(NamedTuple):
    """A reservation that its device declined."""

    subject: str
    key: str
    commit: int


class ExchangeRow(NamedTuple):
    """A recorded exchange, and the head of the chain after it."""

    subject: str
    sequence: int
    key: str
    query: int
    response: int
    head: bytes
    commit: int


class QuarantineRow(NamedTuple):
    """A message that did not fit: its digest, its size, and its first kilobytes."""

    digest: str
    subject: str
    #: JSON; empty if the message is about no subject of this ledger.
    reason: str
    message: bytes
    size: int
    held: int
    #: 1 if its subject was not suspended, because an operator has to look first.
    commit: int


class ExtraRow(NamedTuple):
    """A response in a quarantined message: it was revealed, so it counts."""

    subject: str
    digest: str
    #: Of the message.
    sequence: int
    #: The number that the message claims.
    query: int
    response: int
    commit: int


class StateRow(NamedTuple):
    """A change of a subject's state: suspended, resolved, confirmed."""

    subject: str
    number: int
    #: Counts the changes of this subject from 1.
    state: str
    reason: str
    commit: int


class LostRow(NamedTuple):
    """What the checkpoint lists and a restored database does not have."""

    digest: str
    #: Of a subject's name, or of an import.
    what: str
    #: "registered", "barred" or "imported".
    detail: str
    #: For a registration, the kind of the subject.
    commit: int


class MarkRow(NamedTuple):
    """An event of the study as a whole: ended, recovered, or a rollback that a ticket proved."""

    number: int
    what: str
    detail: str
    commit: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the class of its rows, and how many leading columns are its primary key."""

    name: str
    row: type[Any]
    keys: int
    TYPES: ClassVar[dict[type, str]] = {int: "integer", str: "text", bytes: "bytes"}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.row._fields)

    @property
    def types(self) -> tuple[str, ...]:
        """For each column: integer, text or bytes."""
        hints = get_type_hints(self.row)
        return tuple(self.TYPES[hints[name]] for name in self.columns)

    @property
    def quoted(self) -> tuple[str, ...]:
        """The columns as SQL names; "commit" and "key" are words of SQL."""
        return tuple(f'"{name}"' for name in self.columns)

    @property
    def quoted_key(self) -> tuple[str, ...]:
        return self.quoted[: self.keys]


TABLES = {
    table.row: table
    for table in (
        Table("commits", CommitRow, 1),
        Table("subjects", SubjectRow, 1),
        Table("queries", QueryRow, 1),
        Table("responses", ResponseRow, 1),
        Table("requests", RequestRow, 2),
        Table("declines", DeclineRow, 2),
        Table("exchanges", ExchangeRow, 2),
        Table("quarantine", QuarantineRow, 2),
        Table("extras", ExtraRow, 2),
        Table("states", StateRow, 2),
        Table("lost", LostRow, 2),
        Table("marks", MarkRow, 1),
    )
}
#: All tables by the class of their rows.

# The fields of a subject that never change, which are all that a root covers: its chain is covered
# by its exchanges.
_FIXED = 3


def table_of(row: type[Any]) -> Table:
    """The table that has these rows."""
    return TABLES[row]


def root_line(table: Table, row: Sequence[Any]) -> bytes:
    """The line of an added row, of which the root of its commit is a digest.

    It is a JSON list in ASCII, so no two rows can be written as one.
    """
    fields = row[:_FIXED] if table.row is SubjectRow else row[:-1]
    plain = [field.hex() if type(field) is bytes else field for field in fields]
    return json.dumps([table.name, *plain]).encode() + b"\n"


def seal(row: SubjectRow) -> int:
    """The checksum of a subject's row: a flipped bit is noticed, whatever the database says."""
    return zlib.crc32(repr(row[:-1]).encode())


def check_seal(row: SubjectRow) -> SubjectRow:
    """Return a subject's row if it is what was recorded."""
    if seal(row) != row.seal:
        raise Damaged(f"the row of subject number {row.number} is not what was recorded")
    return row
