"""The tables of a ledger: one record per kind of row, the same in SQLite and PostgreSQL.

Rows are only ever added, except that a subject's row changes as its chain grows. Every row has the
number of the commit that added it, which a batch sets.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_type_hints

from expost.ledger.errors import LedgerDamaged

__all__ = [
    "ACTIVE",
    "BARRED",
    "MAX_SIZE",
    "NO_SUBJECT",
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
    "RowTable",
    "StateRow",
    "SubjectRow",
    "check_seal",
    "root_line",
    "seal",
]

#: The largest message, reservation or query document, in bytes.
MAX_SIZE = 1 << 20

#: Stands for a subject where a row is about none.
NO_SUBJECT = ""

#: The stored states of a subject. A barred subject is suspended and cannot be resolved, as after
#: its withdrawal.
ACTIVE, SUSPENDED, BARRED = "active", "suspended", "barred"


class CommitRow(NamedTuple):
    """One commit: its root, and the events that the checkpoint lists for it."""

    number: int  # name: a column of the stored tables
    root: bytes
    #: A JSON list, see :mod:`expost.ledger._checkpoint`.
    events: str


class SubjectRow(NamedTuple):
    """One subject: who it is, and where its chain stands. The fields after ``kind`` change."""

    #: JSON, so that 1 and "1" differ.
    name: str
    #: Counts registrations from 1.
    number: int  # name: a column of the stored tables
    #: "device", "imported" or "simulated".
    kind: str
    state: str
    #: The number of recoveries that its device has confirmed; fewer than there were means that
    #: it is unconfirmed.
    generation: int
    #: The number of recorded exchanges.
    sequence: int
    head: bytes
    #: The count of each response, as :mod:`expost.tally` packs it.
    tally: bytes
    #: The counts of responses in quarantined messages that no exchange records.
    extras: bytes
    #: The idempotency key of the open reservation; empty if there is none.
    reserved: str
    #: The query of the open reservation.
    query: int
    commit: int = 0
    #: A checksum of everything above.
    seal: int = 0


class QueryRow(NamedTuple):
    """A query by its number."""

    number: int  # name: a column of the stored tables
    content_id: str
    name: str
    document: str
    commit: int = 0


class ResponseRow(NamedTuple):
    """A response to a query by its number; ``response`` is JSON."""

    number: int  # name: a column of the stored tables
    query: int
    response: str
    commit: int = 0


class RequestRow(NamedTuple):
    """The use of a key: a reserved or recorded exchange, or a refusal (sequence 0)."""

    subject: str
    key: str
    query: int
    sequence: int
    commit: int = 0


class DeclineRow(NamedTuple):
    """A reservation that its device declined."""

    subject: str
    key: str
    commit: int = 0


class ExchangeRow(NamedTuple):
    """A recorded exchange, and the head of the chain after it."""

    subject: str
    sequence: int
    key: str
    query: int
    response: int
    head: bytes
    commit: int = 0


class QuarantineRow(NamedTuple):
    """A message that did not fit: its digest, its size, and its first kilobytes."""

    digest: str
    #: JSON; empty if the message is about no subject of this ledger.
    subject: str
    reason: str
    message: bytes
    size: int
    #: 1 if its subject was not suspended, because an operator has to look first.
    held: int
    commit: int = 0


class ExtraRow(NamedTuple):
    """A response in a quarantined message: it was revealed, so it counts."""

    subject: str
    #: The digest of the message.
    digest: str
    #: The number that the message claims.
    sequence: int
    query: int
    response: int
    commit: int = 0


class StateRow(NamedTuple):
    """A change of a subject's state: suspended, resolved, confirmed."""

    subject: str
    #: Counts the changes of this subject from 1.
    number: int  # name: a column of the stored tables
    state: str
    reason: str
    commit: int = 0


class LostRow(NamedTuple):
    """An event that the checkpoint lists and a restored database does not have."""

    #: The digest of a subject's name, or of an import.
    digest: str
    #: "registered", "barred", "withdrawn" or "imported".
    what: str  # name: a column of the stored tables
    #: The kind of a registered subject, or the digest of an imported one.
    detail: str
    commit: int = 0


class MarkRow(NamedTuple):
    """An event of the study as a whole: ended, recovered, or a rollback that a ticket proved."""

    number: int  # name: a column of the stored tables
    what: str  # name: a column of the stored tables
    detail: str
    commit: int = 0


@dataclass(frozen=True, slots=True)
class RowTable:
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

    def definition(self, types: Mapping[str, str], options: str) -> str:
        """Return the SQL statement that creates this table."""
        columns = [
            f"{name} {types[kind]} NOT NULL"
            for name, kind in zip(self.quoted, self.types, strict=True)
        ]
        key = f"PRIMARY KEY ({', '.join(self.quoted_key)})"
        return f"CREATE TABLE {self.name}({', '.join(columns)}, {key}){options};\n"

    def scan(self, prefix: Sequence[Any], after: int | None, mark: str) -> tuple[str, list[Any]]:
        """Return the SQL statement of :meth:`Backend.scan`, and its values."""
        conditions = [f"{name} = {mark}" for name in self.quoted_key[: len(prefix)]]
        order, values = self.quoted_key, [*prefix]
        if after is not None:
            commit = "number" if self.row is CommitRow else '"commit"'
            conditions, order, values = [f"{commit} > {mark}"], (commit, *order), [after]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        columns, keys = ", ".join(self.quoted), ", ".join(order)
        return f"SELECT {columns} FROM {self.name}{where} ORDER BY {keys}", values


#: All tables by the class of their rows.
TABLES = {
    table.row: table
    for table in (
        RowTable("commits", CommitRow, 1),
        RowTable("subjects", SubjectRow, 1),
        RowTable("queries", QueryRow, 1),
        RowTable("responses", ResponseRow, 1),
        RowTable("requests", RequestRow, 2),
        RowTable("declines", DeclineRow, 2),
        RowTable("exchanges", ExchangeRow, 2),
        RowTable("quarantine", QuarantineRow, 2),
        RowTable("extras", ExtraRow, 2),
        RowTable("states", StateRow, 2),
        RowTable("lost", LostRow, 2),
        RowTable("marks", MarkRow, 1),
    )
}

# The fields of a subject that never change, which are all that a root covers: its chain is covered
# by its exchanges.
_FIXED = 3


def root_line(table: RowTable, row: Sequence[Any]) -> bytes:
    """Write the line of an added row, which goes into the digest of its commit.

    It is a JSON list in ASCII, so no two rows can be written as one.
    """
    fields = row[:_FIXED] if table.row is SubjectRow else row[:-1]
    plain = [field.hex() if type(field) is bytes else field for field in fields]
    return json.dumps([table.name, *plain]).encode() + b"\n"


def seal(row: SubjectRow) -> int:
    """Compute the checksum of a subject's row, which reveals flipped bits."""
    return zlib.crc32(repr(row[:-1]).encode())


def check_seal(row: SubjectRow) -> SubjectRow:
    """Return a subject's row if it is what was recorded."""
    if seal(row) != row.seal:
        raise LedgerDamaged(f"the row of subject number {row.number} is not what was recorded")
    return row
