"""One commit in SQLite: rows are added, and heads move if each is still where it was.

All requests of a commit go through one statement for each table, so that eight take little more
than one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from expost.ledger.backend import DECLINED, Stale
from expost.ledger.errors import Damaged
from expost.ledger.records import NOBODY, Answered, Change, Head, Heads, Move
from expost.ledger.seals import head_seals, seal_of

if TYPE_CHECKING:
    import apsw

__all__ = ["add", "key_numbers"]

_INSERT = {
    "queries": "INSERT INTO queries VALUES (?, ?, ?, ?, ?)",
    "responses": "INSERT INTO responses VALUES (?, ?, ?, ?)",
    "subjects": "INSERT INTO subjects VALUES (?, ?, ?, ?)",
    "heads": "INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "keys": "INSERT INTO keys VALUES (?, ?, ?)",
    "requests": "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)",
    "reservations": "INSERT INTO reservations VALUES (?, ?, ?, ?, ?)",
    "closures": "INSERT INTO closures VALUES (?, ?)",
    "kept": "INSERT INTO kept(subject, digest, reason, message, made) VALUES (?, ?, ?, ?, ?)",
    "ends": "INSERT INTO ends VALUES (?, ?)",
}
_UPDATE = """
UPDATE heads SET sequence = column2, digest = column3, tally = column4, closed = column5,
    reserved = column6, last = column7, seal = column8
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
WHERE subject = column1 AND sequence = column9 AND closed = column10 AND reserved = column11
"""
# Whoever answers, with nothing reserved and not closed, moves in less time.
_ADVANCE = """
INSERT INTO heads(closed, reserved, subject, sequence, digest, tally, last, seal)
VALUES (0, '', ?, ?, ?, ?, ?, ?)
ON CONFLICT (subject) DO UPDATE SET sequence = excluded.sequence, digest = excluded.digest,
    tally = excluded.tally, last = excluded.last, seal = excluded.seal
WHERE sequence = excluded.sequence - 1 AND closed = 0 AND reserved = ''
"""
_WHERE = "SELECT sequence, closed FROM heads WHERE subject = ?"

# Rows that are added by one statement: to step through one for each takes as long as to add it.
_TOGETHER = 64


def add(cursor: apsw.Cursor, change: Change, made: int) -> None:
    """Add a change in commit number ``made``, or raise :class:`Stale`."""
    _stayed(cursor, change.refused)
    answers = Answered.of(change.answers)
    moving = (*change.refused, *change.declined, *change.reserved)
    keys = _interned(cursor, dict.fromkeys([*answers.keys, *(move.key for move in moving)]))
    _words(cursor, change, made)
    if answers:
        _answers(cursor, answers, keys, made)
    if moving or change.closed:
        _moves(cursor, change, keys, made)
    _add(cursor, "kept", [(*each, made) for each in change.kept])
    if change.end:
        _add(cursor, "ends", [(1, made)])


def _add(cursor: apsw.Cursor, table: str, rows: Collection[tuple[Any, ...]]) -> None:
    """Add some rows to a table."""
    if rows:
        _run(cursor, _INSERT[table], *zip(*rows, strict=True))


def _run(cursor: apsw.Cursor, statement: str, *columns: Sequence[Any]) -> None:
    """Run a statement with the values of these columns, for many rows at a time.

    What is the same in all of them, as much is in a round, is given once.
    """
    count = len(columns[0])
    same = tuple([count >= _TOGETHER and _alike(column) for column in columns])
    shared = [column[0] for column, alike in zip(columns, same, strict=True) if alike]
    own = [column for column, alike in zip(columns, same, strict=True) if not alike]
    start = 0
    while start < count:
        rows = _TOGETHER if count - start >= _TOGETHER else 1
        values = [*shared]
        for column in own:
            values += column[start : start + rows]
        cursor.execute(_of_many(statement, same, rows), values)
        start += rows


def _alike(column: Sequence[Any]) -> bool:
    first = column[0]
    return bool(first == column[-1]) and column.count(first) == len(column)


@cache
def _of_many(statement: str, same: tuple[bool, ...], rows: int) -> str:
    """A statement for so many rows: first come values that they share, then column by column."""
    before, values, after = re.split(r"(?<=VALUES )(\([^)]+\))", statement)
    shared, own = itertools.count(1), itertools.count(1 + sum(same), rows)
    first = [(next(shared), 0) if alike else (next(own), 1) for alike in same]
    result = []
    for row in range(rows):
        numbers = iter([start + step * row for start, step in first])
        result.append(re.sub(r"\?", lambda _, numbers=numbers: f"?{next(numbers)}", values))
    return before + ", ".join(result) + after


def key_numbers(cursor: apsw.Cursor, keys: Iterable[str]) -> dict[str, int]:
    """The numbers of those keys that were used before."""
    statement, result = "SELECT key, number, seal FROM keys WHERE key = ?", {}
    for key, number, seal in cursor.executemany(statement, zip(keys, strict=True)):
        if seal != seal_of((number, key)):
            raise Damaged("a key is not what was recorded")
        result[key] = number
    return result


def _interned(cursor: apsw.Cursor, keys: Collection[str]) -> dict[str, int]:
    """The numbers of keys, which they get now if they have none."""
    known = key_numbers(cursor, keys) if keys else {}
    new = [key for key in keys if key not in known]
    if new:
        ((last,),) = cursor.execute("SELECT coalesce(max(number), 0) FROM keys")
        numbered = list(enumerate(new, last + 1))
        cursor.executemany(
            _INSERT["keys"], [(number, key, seal_of((number, key))) for number, key in numbered]
        )
        known.update((key, number) for number, key in numbered)
    return known


def _stayed(cursor: apsw.Cursor, moves: Sequence[Move]) -> None:
    """Refusals change no head, but are right only on the one that they were decided on."""
    if moves:
        subjects = zip((move.subject for move in moves), strict=True)
        found = cursor.executemany(_WHERE, subjects).fetchall()
        if found != [(move.before.sequence, move.before.closed) for move in moves]:
            raise Stale


def _words(cursor: apsw.Cursor, change: Change, made: int) -> None:
    """Words and subjects that are new."""
    _add(cursor, "queries", [(*word, made) for word in change.queries])
    _add(cursor, "responses", [(*word, seal_of(word)) for word in change.responses])
    if change.subjects:
        named = [(number, name) for number, name, _ in change.subjects]
        _add(cursor, "subjects", [(*each, made, seal_of(each)) for each in named])
        numbers = [number for number, _ in named]
        new = Heads.of(Head(0, digest, b"", False, "", 0) for _, _, digest in change.subjects)
        _run(cursor, _INSERT["heads"], numbers, *new.columns, head_seals(numbers, new))


def _answers(cursor: apsw.Cursor, answers: Answered, keys: Mapping[str, int], made: int) -> None:
    """Exchanges. The last one of each subject is the one of its key now."""
    subjects, before = answers.subjects, answers.before
    numbers = list(map(keys.__getitem__, answers.keys))
    after, after.last = answers.after, numbers
    _run(
        cursor, _INSERT["requests"], numbers, subjects, answers.queries, after.sequence,
        answers.responses, before.last, [made] * len(numbers),
    )  # fmt: skip
    _add(cursor, "closures", [(subject, made) for subject in answers.closing])
    if any(after.closed) or any(before.reserved):
        _move(cursor, subjects, before, after)
    else:
        _advance(cursor, subjects, after)


def _moves(cursor: apsw.Cursor, change: Change, keys: Mapping[str, int], made: int) -> None:
    """What becomes of requests without an exchange."""
    for own, response in ((change.refused, 0), (change.declined, DECLINED)):
        requests = [
            (keys[each.key], each.subject, each.query, 0, response, 0, made) for each in own
        ]
        _add(cursor, "requests", requests)
    reservations = [
        (keys[each.key], each.subject, each.query, each.before.sequence + 1, made)
        for each in change.reserved
    ]
    _add(cursor, "reservations", reservations)
    _add(cursor, "closures", [(each.subject, made) for each in change.closed])
    moving = (*change.declined, *change.reserved, *change.closed)
    if moving:
        before = Heads.of(move.before for move in moving)
        after = Heads.of(move.after for move in moving)
        _move(cursor, [move.subject for move in moving], before, after)


def _move(cursor: apsw.Cursor, subjects: Sequence[int], before: Heads, after: Heads) -> None:
    """Move heads, if each is still where it was: compare and swap."""
    was = (before.sequence, before.closed, before.reserved)
    changes = cursor.connection.total_changes()
    _run(cursor, _UPDATE, subjects, *after.columns, head_seals(subjects, after), *was)
    if cursor.connection.total_changes() - changes != len(subjects):
        raise Stale


def _advance(cursor: apsw.Cursor, subjects: Sequence[int], after: Heads) -> None:
    """The same by one exchange each."""
    connection = cursor.connection
    changes = connection.total_changes()
    connection.set_last_insert_rowid(NOBODY)
    sequence, digest, tally, _, _, last = after.columns
    seals = head_seals(subjects, after)
    _run(cursor, _ADVANCE, subjects, sequence, digest, tally, last, seals)
    # In a damaged table one that is there may not be found, and be added.
    added = connection.last_insert_rowid() != NOBODY
    if added or connection.total_changes() - changes != len(subjects):
        raise Stale
