"""One commit: lock, add rows, move heads, look whether all have moved, commit.

All of it is sent at once, so that it takes one exchange with the server, however many rows there
are. The root is worked out there, because only the server knows which commit is the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from expost.errors import InvalidInput
from expost.ledger.backend import DECLINED, Stale
from expost.ledger.postgres.connection import check_settings, driver, settings_of
from expost.ledger.records import Change, Head, Tip
from expost.ledger.seals import head_seal, seal_of

__all__ = ["columns", "commit", "key_id", "settle"]

# Whoever writes waits for whoever wrote before; who only reads does not.
_LOCK = "LOCK TABLE commits IN SHARE ROW EXCLUSIVE MODE"
_TIP = """
SELECT number + 1 AS number,
    sha256(convert_to(encode(root, 'hex') || chr(10), 'UTF8') || %b::bytea) AS root
FROM commits ORDER BY number DESC LIMIT 1
"""
_COLUMNS = {
    "queries": ("bigint", "text", "bytea", "text"),
    "responses": ("bigint", "bigint", "bytea", "bigint"),
    "subjects": ("bigint", "text", "bigint"),
    "heads": ("bigint", "bigint", "bytea", "bytea", "boolean", "bytea", "bytea", "bigint"),
    "keys": ("bytea", "bytea"),
    "requests": ("bytea", "bigint", "bigint", "bigint", "bigint", "bytea"),
    "reservations": ("bytea", "bigint", "bigint", "bigint"),
    "closures": ("bigint",),
    "kept": ("bigint", "text", "bytea", "bytea"),
    "ends": ("bigint",),
}
_MADE = ("queries", "subjects", "requests", "reservations", "closures", "kept", "ends")
"""Tables whose last column is the number of the commit."""


def _unnest(kinds: Iterable[str]) -> str:
    return f"unnest({', '.join(f'%b::{kind}[]' for kind in kinds)})"


def _insert(table: str) -> str:
    rows = _unnest(_COLUMNS[table])
    if table in _MADE:
        return f"INSERT INTO {table} SELECT new.*, tip.number FROM tip, {rows} AS new"  # noqa: S608
    known = " ON CONFLICT DO NOTHING" if table == "keys" else ""
    return f"INSERT INTO {table} SELECT * FROM {rows}{known}"  # noqa: S608


_INSERT = {table: _insert(table) for table in _COLUMNS}
_MOVE = f"""
UPDATE heads SET sequence = new.sequence, digest = new.digest, tally = new.tally,
    closed = new.closed, reserved = new.reserved, last = new.last, seal = new.seal
FROM {_unnest((*_COLUMNS["heads"], "bigint", "boolean", "bytea"))}
    AS new(subject, sequence, digest, tally, closed, reserved, last, seal,
        was_sequence, was_closed, was_reserved)
WHERE heads.subject = new.subject AND heads.sequence = was_sequence
    AND heads.closed = was_closed AND heads.reserved = was_reserved
RETURNING 1
"""  # noqa: S608

Rows = dict[str, list[tuple[Any, ...]]]


def commit(raw: Any, changes: Sequence[Change], lines: Sequence[bytes]) -> Tip:
    """Add changes durably. If the connection is lost, nobody knows whether it was done."""
    errors = driver().errors
    statement, values = _statement(changes, lines)
    try:
        with raw.pipeline():
            raw.execute("BEGIN", prepare=False)
            raw.execute(_LOCK, prepare=False)
            added = raw.execute(statement, values, binary=True)
            raw.execute("COMMIT", prepare=False)
        number, root, _ = added.fetchone()
        return Tip(number, root)
    except (
        driver().IntegrityError,
        errors.SerializationFailure,
        # The driver takes a statement for prepared that an earlier failure had cut off.
        errors.InvalidSqlStatementName,
    ):
        _roll_back(raw)  # after which it prepares all anew
        raise Stale from None
    except errors.LockNotAvailable:
        _roll_back(raw)
        raise InvalidInput("another process holds the ledger and does not let go") from None
    except errors.ProgramLimitExceeded:
        _roll_back(raw)
        raise InvalidInput("a name is too long for PostgreSQL") from None
    except errors.ObjectNotInPrerequisiteState:
        _roll_back(raw)
        check_settings(settings_of(raw))
        raise


def settle(raw: Any) -> None:
    """Wait until whoever is writing has ended, whatever comes of it."""
    raw.execute("BEGIN")
    raw.execute(_LOCK)
    raw.execute("ROLLBACK")


def key_id(key: str) -> bytes:
    """What rows have in place of a key."""
    return hashlib.sha256(key.encode()).digest()[:16]


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The columns of some rows, as statements take them."""
    return [list(column) for column in zip(*rows, strict=True)]


def _roll_back(raw: Any) -> None:
    """End a transaction, if the connection is there; where it is lost, the server does."""
    if not raw.closed:
        raw.execute("ROLLBACK", prepare=False)


def _statement(changes: Sequence[Change], lines: Sequence[bytes]) -> tuple[str, list[Any]]:
    """What adds all rows, moves heads, and fails unless all have moved; and its values."""
    rows: Rows = {table: [] for table in _INSERT}
    moves: list[tuple[Any, ...]] = []
    for change in changes:
        key = key_id(change.key)
        _fill(rows, change, key)
        moves += (
            (*_head(subject, after), before.sequence, before.closed, before.reserved.encode())
            for subject, before, after in _moves(change, key)
        )
    values: list[Any] = [b"".join(sorted(lines))]
    parts = [f"tip AS ({_TIP})"]
    parts.append("commits_ AS (INSERT INTO commits SELECT * FROM tip)")
    for table, entries in rows.items():
        if entries:
            parts.append(f"{table}_ AS ({_INSERT[table]})")
            values += columns(entries)
    moved = "0"
    if moves:
        parts.append(f"moved AS ({_MOVE})")
        values += columns(moves)
        moved = "(SELECT count(*) FROM moved)"
    last = f"SELECT number, root, agreed({moved}, %b::bigint) FROM tip"  # noqa: S608
    return f"WITH {', '.join(parts)} {last}", [*values, len(moves)]


def _head(subject: int, head: Head) -> tuple[Any, ...]:
    return (
        subject, head.sequence, head.digest, head.tally, head.closed, head.reserved.encode(),
        _last(head), head_seal(subject, *head),
    )  # fmt: skip


def _last(head: Head) -> bytes:
    """The key of the last exchange; nothing if there is none."""
    return head.last.to_bytes(16, "big") if head.last else b""


def _moves(change: Change, key: bytes) -> Iterator[tuple[int, Head, Head]]:
    """Whose heads move, from where, and where to; an answer is found by its key."""
    last = int.from_bytes(key, "big")
    for answer in change.answers:
        yield answer.subject, answer.before, answer.after._replace(last=last)
    for move in (*change.refused, *change.declined, *change.reserved, *change.closed):
        yield move.subject, move.before, move.after


def _fill(rows: Rows, change: Change, key: bytes) -> None:
    """Add the rows of a change to those of each table."""
    rows["queries"] += ((n, ids, name.encode(), text) for n, ids, name, text in change.queries)
    rows["responses"] += (
        (word.number, word.query, word.response.encode(), seal_of(word))
        for word in change.responses
    )
    for number, name, digest in change.subjects:
        rows["subjects"].append((number, name, seal_of((number, name))))
        rows["heads"].append(_head(number, Head(0, digest, b"", False, "", 0)))
    if change.answers or change.refused or change.reserved or change.declined:
        rows["keys"].append((key, change.key.encode()))
    rows["requests"] += (
        (key, subject, query, after.sequence, response, _last(before))
        for subject, query, response, before, after in change.answers
    )
    for moves, response in ((change.refused, 0), (change.declined, DECLINED)):
        rows["requests"] += ((key, each.subject, each.query, 0, response, b"") for each in moves)
    rows["reservations"] += (
        (key, each.subject, each.query, each.before.sequence + 1) for each in change.reserved
    )
    rows["closures"] += (
        (subject,)
        for subject, before, after in _moves(change, key)
        if after.closed and not before.closed
    )
    rows["kept"] += (
        (each.subject, each.digest, each.reason.encode(), each.message) for each in change.kept
    )
    if change.end:
        rows["ends"].append((1,))
