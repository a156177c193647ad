"""One attempt at a commit: lock, look where the ledger is, add rows, move heads, commit.

That takes three exchanges with the server, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from expost.errors import InvalidInput
from expost.ledger.backend import DECLINED, Stale
from expost.ledger.digests import next_root
from expost.ledger.errors import Damaged
from expost.ledger.postgres.connection import SETTINGS, check_settings, driver
from expost.ledger.records import Change, Head, Tip
from expost.ledger.seals import head_seal, seal_of

__all__ = ["Attempt", "checked_key", "columns"]

# Whoever writes waits for whoever wrote before; who only reads does not.
_BEGIN = f"""
BEGIN;
LOCK TABLE commits IN SHARE ROW EXCLUSIVE MODE;
SELECT number, root, (SELECT coalesce(max(number), 0) FROM keys), {SETTINGS}
FROM commits ORDER BY number DESC LIMIT 1
"""  # noqa: S608
_KEYS = "SELECT number, key, seal FROM keys WHERE key = ANY(%b)"
_COLUMNS = {
    "commits": ("bigint", "bytea"),
    "queries": ("bigint", "text", "bytea", "text"),
    "responses": ("bigint", "bigint", "bytea", "bigint"),
    "subjects": ("bigint", "text", "bigint", "bigint"),
    "heads": ("bigint", "bigint", "bytea", "bytea", "boolean", "bytea", "bigint", "bigint"),
    "keys": ("bigint", "bytea", "bigint"),
    "requests": ("bigint",) * 7,
    "reservations": ("bigint",) * 5,
    "closures": ("bigint",) * 2,
    "kept(subject, digest, reason, message, made)": ("bigint", "text", "bytea", "bytea", "bigint"),
    "ends": ("bigint",) * 2,
}


def _unnest(kinds: Iterable[str]) -> str:
    return f"unnest({', '.join(f'%b::{kind}[]' for kind in kinds)})"


_INSERT = {
    table: f"INSERT INTO {table} SELECT * FROM {_unnest(kinds)}"  # noqa: S608
    for table, kinds in _COLUMNS.items()
}
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


class Attempt:
    """A transaction on a connection. What fails leaves nothing behind.

    ``keys`` are numbers of keys that were looked up before; 0 for one that was not there. If it is
    by now, the database refuses it.
    """

    def __init__(self, raw: Any, keys: Mapping[str, int]) -> None:
        self._raw = raw
        self._keys = keys
        self.tip: Tip | None = None
        """The commit that is being made, from when on it may be there."""

    def commit(self, changes: Sequence[Change], lines: Sequence[bytes]) -> Tip:
        """Add changes; an error of the driver with a lost connection leaves it open whether."""
        psycopg = driver()
        try:
            tip = self._write(changes, lines)
        except (psycopg.IntegrityError, Stale):
            self._roll_back()
            raise Stale from None
        except psycopg.errors.LockNotAvailable:
            self._roll_back()
            raise InvalidInput("another process holds the ledger and does not let go") from None
        except psycopg.errors.ProgramLimitExceeded:
            self._roll_back()
            raise InvalidInput("a name is too long for PostgreSQL") from None
        except BaseException:
            self._roll_back()
            raise
        self.tip = tip
        self._confirm()
        return tip

    def _confirm(self) -> None:
        self._raw.execute("COMMIT")

    def finds(self, tip: Tip) -> bool:
        """Whether a commit is there whose connection was lost; whatever became of it has ended."""
        self._begin()
        found = self._raw.execute("SELECT root FROM commits WHERE number = %s", (tip.commits,))
        root = found.fetchone()
        self._roll_back()
        return root is not None and root[0] == tip.root

    def _begin(self) -> tuple[Tip, int]:
        """Lock; then where the ledger is, and the last number of a key."""
        cursor = self._raw.execute(_BEGIN)
        while cursor.nextset():
            pass
        found = cursor.fetchone()
        if found is None:
            raise Damaged("there are no commits")
        commits, root, last_key, *settings = found
        check_settings(settings)
        return Tip(commits, root), last_key

    def _roll_back(self) -> None:
        """End it, if the connection is there; where it is lost, the server does."""
        if not self._raw.closed:
            self._raw.execute("ROLLBACK")

    def _write(self, changes: Sequence[Change], lines: Sequence[bytes]) -> Tip:
        before, last_key = self._begin()
        tip = Tip(before.commits + 1, next_root(before.root, lines))
        rows: Rows = {table: [] for table in _INSERT}
        rows["commits"].append(tip)
        moves: list[tuple[Any, ...]] = []
        numbers = self._numbers(changes)
        for change in changes:
            if _has_requests(change) and not numbers[change.key]:
                last_key += 1
                numbers[change.key] = last_key
                seal = seal_of((last_key, change.key))
                rows["keys"].append((last_key, change.key.encode(), seal))
            key = numbers.get(change.key, 0)
            _fill(rows, change, key, tip.commits)
            moves += (
                (*_head(subject, after), before.sequence, before.closed, before.reserved.encode())
                for subject, before, after in _moves(change, key)
            )
        if self._add(rows, moves) != len(moves):
            raise Stale
        return tip

    def _numbers(self, changes: Sequence[Change]) -> dict[str, int]:
        """The numbers of the keys of changes; 0 for those that are new."""
        keys = {change.key for change in changes if _has_requests(change)}
        numbers = {key: self._keys[key] for key in keys if key in self._keys}
        if missing := [key.encode() for key in keys - set(numbers)]:
            numbers.update(dict.fromkeys(keys - set(numbers), 0))
            found = self._raw.execute(_KEYS, (missing,)).fetchall()
            numbers.update((checked_key(*row), row[0]) for row in found)
        return numbers

    def _add(self, rows: Rows, moves: Sequence[tuple[Any, ...]]) -> int:
        """Add all rows and move heads, in one statement; the number of heads that have moved."""
        filled = {table: entries for table, entries in rows.items() if entries}
        parts = [f"{table.partition('(')[0]}_ AS ({_INSERT[table]})" for table in filled]
        values = [column for entries in filled.values() for column in columns(entries)]
        last = "SELECT 0"
        if moves:
            parts.append(f"moved AS ({_MOVE})")
            values += columns(moves)
            last = "SELECT count(*) FROM moved"
        found = self._raw.execute(f"WITH {', '.join(parts)} {last}", values).fetchone()
        return int(found[0])


def checked_key(number: int, content: bytes, seal: int) -> str:
    """A key, if it is as it was recorded."""
    key = content.decode()
    if seal != seal_of((number, key)):
        raise Damaged("a key is not what was recorded")
    return key


def _has_requests(change: Change) -> bool:
    return bool(change.answers or change.refused or change.reserved or change.declined)


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The columns of some rows, as statements take them."""
    return [list(column) for column in zip(*rows, strict=True)]


def _head(subject: int, head: Head) -> tuple[Any, ...]:
    return (
        subject, head.sequence, head.digest, head.tally, head.closed, head.reserved.encode(),
        head.last, head_seal(subject, *head),
    )  # fmt: skip


def _moves(change: Change, key: int) -> Iterator[tuple[int, Head, Head]]:
    """Whose heads move, from where, and where to; an answer is found by its key."""
    for answer in change.answers:
        yield answer.subject, answer.before, answer.after._replace(last=key)
    for move in (*change.refused, *change.declined, *change.reserved, *change.closed):
        yield move.subject, move.before, move.after


def _fill(rows: Rows, change: Change, key: int, made: int) -> None:
    """Add the rows of a change to those of each table."""
    rows["queries"] += ((n, ids, name.encode(), text) for n, ids, name, text in change.queries)
    rows["responses"] += (
        (word.number, word.query, word.response.encode(), seal_of(word))
        for word in change.responses
    )
    for number, name, digest in change.subjects:
        rows["subjects"].append((number, name, made, seal_of((number, name))))
        rows["heads"].append(_head(number, Head(0, digest, b"", False, "", 0)))
    rows["requests"] += (
        (key, subject, query, after.sequence, response, before.last, made)
        for subject, query, response, before, after in change.answers
    )
    for moves, response in ((change.refused, 0), (change.declined, DECLINED)):
        rows["requests"] += (
            (key, each.subject, each.query, 0, response, 0, made) for each in moves
        )
    rows["reservations"] += (
        (key, each.subject, each.query, each.before.sequence + 1, made) for each in change.reserved
    )
    rows["closures"] += (
        (subject, made)
        for subject, before, after in _moves(change, key)
        if after.closed and not before.closed
    )
    rows["kept(subject, digest, reason, message, made)"] += (
        (each.subject, each.digest, each.reason.encode(), each.message, made)
        for each in change.kept
    )
    if change.end:
        rows["ends"].append((1, made))
