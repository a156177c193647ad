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
from expost.ledger.postgres.arrays import number, packed
from expost.ledger.postgres.connection import check_settings, settings_of
from expost.ledger.postgres.driver import driver
from expost.ledger.postgres.statements import Call, Statements
from expost.ledger.records import Change, Head, Tip
from expost.ledger.seals import head_seal, seal_of

__all__ = ["commit", "key_id", "settle"]

_BEGIN: Call = ("BEGIN", ())
_COMMIT: Call = ("COMMIT", ())
_ROLLBACK: Call = ("ROLLBACK", ())
# Whoever writes waits for whoever wrote before; who only reads does not.
_LOCK: Call = ("LOCK TABLE commits IN SHARE ROW EXCLUSIVE MODE", ())
_NUMBER = """
INSERT INTO commits
SELECT last.number + 1,
    sha256(convert_to(encode(last.root, 'hex') || chr(10), 'UTF8') || $1::bytea)
FROM commits AS last ORDER BY last.number DESC LIMIT 1
RETURNING number, root
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
_MADE = ("subjects", "requests", "reservations", "closures", "kept", "ends")
"""Tables whose last column is the number of the commit."""
_MOVED = (*_COLUMNS["heads"], "bigint", "boolean", "bytea")
"""The columns of a head that moves, and of what it has to be before."""
_CLOSED, _WAS_CLOSED = 4, 9


def _unnest(kinds: Iterable[str]) -> str:
    return f"unnest({', '.join(f'${place}::{kind}[]' for place, kind in enumerate(kinds, 1))})"


def _insert(table: str) -> str:
    made = ", (SELECT max(number) FROM commits)" if table in _MADE else ""
    known = " ON CONFLICT DO NOTHING" if table == "keys" else ""
    rows = _unnest(_COLUMNS[table])
    return f"INSERT INTO {table} SELECT new.*{made} FROM {rows} AS new{known}"  # noqa: S608


_INSERT = {table: _insert(table) for table in _COLUMNS}
_MOVE = f"""
UPDATE heads SET sequence = new.sequence, digest = new.digest, tally = new.tally,
    closed = new.closed, reserved = new.reserved, last = new.last, seal = new.seal
FROM {_unnest(_MOVED)}
    AS new(subject, sequence, digest, tally, closed, reserved, last, seal,
        was_sequence, was_closed, was_reserved)
WHERE heads.subject = new.subject AND heads.sequence = was_sequence
    AND heads.closed = was_closed AND heads.reserved = was_reserved
RETURNING 1
"""  # noqa: S608
_AGREED: Call = ("SELECT agreed(0, 0)", ())

Rows = dict[str, list[tuple[Any, ...]]]


def commit(statements: Statements, changes: Sequence[Change], lines: Sequence[bytes]) -> Tip:
    """Add changes durably. If the connection is lost, nobody knows whether it was done."""
    errors = driver().errors
    try:
        _, _, (tip,), *_ = statements.run(_BEGIN, _LOCK, *_calls(changes, lines), _COMMIT)
        return Tip(*tip)
    except errors.InvalidSqlStatementName:
        statements.forget()
        _roll_back(statements)
        raise Stale from None
    except (driver().IntegrityError, errors.SerializationFailure):
        _roll_back(statements)
        raise Stale from None
    except errors.LockNotAvailable:
        _roll_back(statements)
        raise InvalidInput("another process holds the ledger and does not let go") from None
    except errors.ProgramLimitExceeded:
        _roll_back(statements)
        raise InvalidInput("a name is too long for PostgreSQL") from None
    except errors.ObjectNotInPrerequisiteState:
        _roll_back(statements)
        check_settings(settings_of(statements.raw))
        raise


def settle(statements: Statements) -> None:
    """Wait until whoever is writing has ended, whatever comes of it."""
    statements.run(_BEGIN, _LOCK, _ROLLBACK)


def key_id(key: str) -> bytes:
    """What rows have in place of a key."""
    return hashlib.sha256(key.encode()).digest()[:16]


def _roll_back(statements: Statements) -> None:
    """End a transaction, if the connection is there; where it is lost, the server does."""
    if not statements.raw.closed:
        statements.run(_ROLLBACK)


def _calls(changes: Sequence[Change], lines: Sequence[bytes]) -> Iterator[Call]:
    """What adds all rows, moves heads, and fails unless all have moved."""
    rows: Rows = {table: [] for table in _INSERT}
    moves: list[tuple[Any, ...]] = []
    for change in changes:
        key = key_id(change.key)
        _fill(rows, change, key)
        moves += _moves(change, key)
    rows["closures"] = [(move[0],) for move in moves if move[_CLOSED] and not move[_WAS_CLOSED]]
    yield _NUMBER, [b"".join(sorted(lines))]
    for table, entries in rows.items():
        if entries:
            yield _INSERT[table], packed(_COLUMNS[table], entries)
    if moves:
        agreed = f"SELECT agreed(count(*), ${len(_MOVED) + 1}::bigint) FROM moved"  # noqa: S608
        yield f"WITH moved AS ({_MOVE}) {agreed}", [*packed(_MOVED, moves), number(len(moves))]
    else:
        yield _AGREED


def _fill(rows: Rows, change: Change, key: bytes) -> None:
    """Add the rows of a change to those of each table."""
    rows["queries"] += ((n, ids, name.encode(), text) for n, ids, name, text in change.queries)
    rows["responses"] += (
        (word.number, word.query, word.response.encode(), seal_of(word))
        for word in change.responses
    )
    for place, name, digest in change.subjects:
        rows["subjects"].append((place, name, seal_of((place, name))))
        first = head_seal(place, 0, digest, b"", False, "", 0)
        rows["heads"].append((place, 0, digest, b"", False, b"", b"", first))
    if change.answers or change.refused or change.reserved or change.declined:
        rows["keys"].append((key, change.key.encode()))
    rows["requests"] += [
        (key, subject, query, after.sequence, response, _last(before))
        for subject, query, response, before, after in change.answers
    ]
    for moves, response in ((change.refused, 0), (change.declined, DECLINED)):
        rows["requests"] += ((key, each.subject, each.query, 0, response, b"") for each in moves)
    rows["reservations"] += (
        (key, each.subject, each.query, each.before.sequence + 1) for each in change.reserved
    )
    rows["kept"] += (
        (each.subject, each.digest, each.reason.encode(), each.message) for each in change.kept
    )
    if change.end:
        rows["ends"].append((1,))


def _moves(change: Change, key: bytes) -> Iterator[tuple[Any, ...]]:
    """Which heads move, where to, and from where; an answer is found by its key."""
    last = int.from_bytes(key, "big")
    for subject, _, _, before, after in change.answers:
        yield _move(subject, before, after, last, key)
    for moves in (change.refused, change.declined, change.reserved, change.closed):
        for subject, _, before, after in moves:
            yield _move(subject, before, after, after.last, _last(after))


def _move(subject: int, before: Head, after: Head, last: int, key: bytes) -> tuple[Any, ...]:
    sequence, digest, tally, closed, reserved, _ = after
    return (
        subject, sequence, digest, tally, closed, reserved.encode(), key,
        head_seal(subject, sequence, digest, tally, closed, reserved, last),
        before.sequence, before.closed, before.reserved.encode(),
    )  # fmt: skip


def _last(head: Head) -> bytes:
    """The key of the last exchange; nothing if there is none."""
    return head.last.to_bytes(16, "big") if head.last else b""
