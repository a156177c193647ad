"""One commit: lock, add rows, move heads, look whether all have moved, commit.

All of it is sent at once, so that it takes one exchange with the server, however many rows there
are. The root is worked out there, because only the server knows which commit is the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from expost.errors import InvalidInput
from expost.ledger.backend import DECLINED, Stale
from expost.ledger.postgres.arrays import number, packed
from expost.ledger.postgres.connection import check_settings, settings_of
from expost.ledger.postgres.driver import driver
from expost.ledger.postgres.statements import Call, Statements
from expost.ledger.records import Answered, Change, Head, Heads, Tip
from expost.ledger.seals import head_seals, seal_of

__all__ = ["commit", "key_id", "settle"]

_BEGIN: Call = ("BEGIN", ())
_COMMIT: Call = ("COMMIT", ())
_ROLLBACK: Call = ("ROLLBACK", ())
# Whoever writes waits for whoever wrote before; who only reads does not.
_LOCK: Call = ("LOCK TABLE commits IN SHARE ROW EXCLUSIVE MODE", ())
# Without a root, which no commit may be, if it must come after another one than the last.
_NUMBER = """
INSERT INTO commits
SELECT last.number + 1,
    CASE WHEN $2::bytea IN ('', last.root) THEN
        sha256(convert_to(encode(last.root, 'hex') || chr(10), 'UTF8') || $1::bytea) END
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
_MADE = ("queries", "subjects", "requests", "reservations", "closures", "kept", "ends")
"""Tables whose last column is the number of the commit."""
_MOVED = (*_COLUMNS["heads"], "bigint", "boolean", "bytea")
"""The columns of a head that moves, and of what it has to be before."""


def _unnest(kinds: Iterable[str]) -> str:
    return f"unnest({', '.join(f'${place}::{kind}[]' for place, kind in enumerate(kinds, 1))})"


# Statements are put together from names and types that stand above, and from nothing else (S608).


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


def commit(
    statements: Statements, change: Change, lines: Sequence[bytes], after: Tip | None
) -> Tip:
    """Add a change durably. If the connection is lost, nobody knows whether it was done."""
    errors = driver().errors
    try:
        _, _, (tip,), *_ = statements.run(_BEGIN, _LOCK, *_calls(change, lines, after), _COMMIT)
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


def _calls(change: Change, lines: Sequence[bytes], after: Tip | None) -> Iterator[Call]:
    """What adds all rows, moves heads, and fails unless all have moved."""
    tables = {table: _Columns(kinds) for table, kinds in _COLUMNS.items()}
    moves, answers = _Columns(_MOVED), Answered.of(change.answers)
    moving = (*change.refused, *change.declined, *change.reserved)
    keys = {key: key_id(key) for key in (*answers.keys, *(move.key for move in moving))}
    tables["keys"].add(keys.values(), [key.encode() for key in keys])
    _words(tables, change)
    if answers:
        _answers(tables, moves, answers, keys)
    if moving or change.closed:
        _moves(tables, moves, change, keys)
    for subject, digest, reason, message in change.kept:
        tables["kept"].add([subject], [digest], [reason.encode()], [message])
    if change.end:
        tables["ends"].add([1])
    yield _NUMBER, [b"".join(sorted(lines)), b"" if after is None else after.root]
    for table, columns in tables.items():
        if len(columns):
            yield _INSERT[table], columns.packed()
    if len(moves):
        agreed = f"SELECT agreed(count(*), ${len(_MOVED) + 1}::bigint) FROM moved"  # noqa: S608
        yield f"WITH moved AS ({_MOVE}) {agreed}", [*moves.packed(), number(len(moves))]
    else:
        yield _AGREED


class _Columns:
    """What is added to a table, column by column."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self._columns: list[list[Any]] = [[] for _ in kinds]

    def add(self, *columns: Iterable[Any]) -> None:
        for column, more in zip(self._columns, columns, strict=True):
            column.extend(more)

    def packed(self) -> list[bytes]:
        return packed(self._kinds, self._columns)

    def __len__(self) -> int:
        return len(self._columns[0])


Tables = dict[str, _Columns]


def _words(tables: Tables, change: Change) -> None:
    """Words and subjects that are new."""
    for place, content_id, name, document in change.queries:
        tables["queries"].add([place], [content_id], [name.encode()], [document])
    for word in change.responses:
        seal = seal_of(word)
        tables["responses"].add([word.number], [word.query], [word.response.encode()], [seal])
    if change.subjects:
        subjects, names, digests = zip(*change.subjects, strict=True)
        tables["subjects"].add(subjects, names, map(seal_of, zip(subjects, names, strict=True)))
        first = Heads.of(Head(0, digest, b"", False, "", 0) for digest in digests)
        tables["heads"].add(subjects, *_columns_of(subjects, first))


def _answers(tables: Tables, moves: _Columns, answers: Answered, keys: Mapping[str, bytes]) -> None:
    """Exchanges; the last one of each subject is found by its key now."""
    subjects, before = answers.subjects, answers.before
    numbers = {key: int.from_bytes(id_, "big") for key, id_ in keys.items()}
    after = answers.after
    after.last = list(map(numbers.__getitem__, answers.keys))
    tables["requests"].add(
        map(keys.__getitem__, answers.keys), subjects, answers.queries, after.sequence,
        answers.responses, _keys(before.last),
    )  # fmt: skip
    tables["closures"].add(answers.closing)
    _add_moves(moves, subjects, before, after)


def _moves(tables: Tables, moves: _Columns, change: Change, keys: Mapping[str, bytes]) -> None:
    """What becomes of requests without an exchange."""
    for own, response in ((change.refused, 0), (change.declined, DECLINED)):
        for key, subject, query, _, _ in own:
            tables["requests"].add([keys[key]], [subject], [query], [0], [response], [b""])
    for key, subject, query, before, _ in change.reserved:
        tables["reservations"].add([keys[key]], [subject], [query], [before.sequence + 1])
    moving = (*change.refused, *change.declined, *change.reserved, *change.closed)
    tables["closures"].add(
        move.subject for move in moving if move.after.closed and not move.before.closed
    )
    _add_moves(
        moves,
        [move.subject for move in moving],
        Heads.of(move.before for move in moving),
        Heads.of(move.after for move in moving),
    )


def _add_moves(moves: _Columns, subjects: Sequence[int], before: Heads, after: Heads) -> None:
    was = (before.sequence, before.closed, map(str.encode, before.reserved))
    moves.add(subjects, *_columns_of(subjects, after), *was)


def _columns_of(subjects: Sequence[int], heads: Heads) -> tuple[Iterable[Any], ...]:
    """Heads as their table has them, but for the number of the subject."""
    return (
        heads.sequence, heads.digest, heads.tally, heads.closed, map(str.encode, heads.reserved),
        _keys(heads.last), head_seals(subjects, heads),
    )  # fmt: skip


def _keys(last: Iterable[int]) -> list[bytes]:
    """The keys of last exchanges, as rows have them; nothing where there is none."""
    return [key.to_bytes(16, "big") if key else b"" for key in last]
