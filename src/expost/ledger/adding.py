"""One commit in SQLite: rows are added, and heads move if each is still where it was.

All requests of a commit go through one statement for each table, so that eight take little more
than one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from expost.ledger.backend import DECLINED, Stale
from expost.ledger.errors import Damaged
from expost.ledger.records import Answered, Change, Head, Heads, Move
from expost.ledger.seals import head_seals, seal_of

if TYPE_CHECKING:
    import apsw

__all__ = ["add", "key_numbers"]

Rows = list[Iterable[tuple[Any, ...]]]

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
_WHERE = "SELECT sequence, closed FROM heads WHERE subject = ?"

# Rows that are added by one statement: to step through one for each takes as long as to add it.
_TOGETHER = 32


def add(cursor: apsw.Cursor, change: Change, made: int) -> None:
    """Add a change in commit number ``made``, or raise :class:`Stale`."""
    _stayed(cursor, change.refused)
    answers = Answered.of(change.answers)
    moving = (*change.refused, *change.declined, *change.reserved)
    keys = _interned(cursor, dict.fromkeys([*answers.keys, *(move.key for move in moving)]))
    rows: dict[str, Rows] = {table: [] for table in _INSERT}
    moves: Rows = []
    _words(change, made, rows)
    if answers:
        _answers(answers, keys, made, rows, moves)
    if moving or change.closed:
        _moves(change, keys, made, rows, moves)
    rows["kept"].append([(*each, made) for each in change.kept])
    if change.end:
        rows["ends"].append([(1, made)])
    for table, parts in rows.items():
        _add(cursor, _INSERT[table], parts)
    _move(cursor, moves, _moving(change))


def _add(cursor: apsw.Cursor, statement: str, parts: Rows) -> None:
    """Run a statement with some rows of values, many of them at a time."""
    rows = chain.from_iterable(parts)
    while len(some := list(islice(rows, _TOGETHER))) == _TOGETHER:
        cursor.execute(_of_many(statement), tuple(chain.from_iterable(some)))
    if some:
        cursor.executemany(statement, some)


@cache
def _of_many(statement: str) -> str:
    before, values, after = re.split(r"(\([?, ]+\))", statement)
    return before + ", ".join([values] * _TOGETHER) + after


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


def _words(change: Change, made: int, rows: dict[str, Rows]) -> None:
    """Words and subjects that are new."""
    rows["queries"].append([(*word, made) for word in change.queries])
    rows["responses"].append([(*word, seal_of(word)) for word in change.responses])
    if change.subjects:
        named = [(number, name) for number, name, _ in change.subjects]
        rows["subjects"].append([(*each, made, seal_of(each)) for each in named])
        numbers = [number for number, _ in named]
        new = Heads.of(Head(0, digest, b"", False, "", 0) for _, _, digest in change.subjects)
        seals = head_seals(numbers, *new.columns)
        rows["heads"].append(zip(numbers, *new.columns, seals, strict=True))


def _answers(
    answers: Answered,
    keys: Mapping[str, int],
    made: int,
    rows: dict[str, Rows],
    moves: Rows,
) -> None:
    """Exchanges. The last one of each subject is the one of its key now."""
    subjects, before, after = answers.subjects, answers.before, answers.after
    numbers = list(map(keys.__getitem__, answers.keys))
    rows["requests"].append(
        zip(numbers, subjects, answers.queries, after.sequence, answers.responses, before.last,
            repeat(made))
    )  # fmt: skip
    rows["closures"].append([(subject, made) for subject in answers.closing])
    moves.append(_moved(subjects, before, after.found_by(numbers)))


def _moves(
    change: Change,
    keys: Mapping[str, int],
    made: int,
    rows: dict[str, Rows],
    moves: Rows,
) -> None:
    """What becomes of requests without an exchange."""
    for own, response in ((change.refused, 0), (change.declined, DECLINED)):
        rows["requests"].append(
            [(keys[each.key], each.subject, each.query, 0, response, 0, made) for each in own]
        )
    rows["reservations"].append(
        [(keys[each.key], each.subject, each.query, each.before.sequence + 1, made)
         for each in change.reserved]
    )  # fmt: skip
    rows["closures"].append([(each.subject, made) for each in change.closed])
    moving = (*change.declined, *change.reserved, *change.closed)
    before = Heads.of(move.before for move in moving)
    after = Heads.of(move.after for move in moving)
    moves.append(_moved([move.subject for move in moving], before, after))


def _moved(subjects: Sequence[int], before: Heads, after: Heads) -> Iterable[tuple[Any, ...]]:
    """The values of the statement that moves heads."""
    seals = head_seals(subjects, *after.columns)
    was = (before.sequence, before.closed, before.reserved)
    return zip(subjects, *after.columns, seals, *was, strict=True)


def _moving(change: Change) -> int:
    """How many heads a change moves."""
    return sum(map(len, (change.answers, change.declined, change.reserved, change.closed)))


def _move(cursor: apsw.Cursor, moves: Rows, count: int) -> None:
    """Move heads, if each is still where it was: compare and swap."""
    before = cursor.connection.total_changes()
    _add(cursor, _UPDATE, moves)
    if cursor.connection.total_changes() - before != count:
        raise Stale
