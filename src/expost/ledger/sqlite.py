"""A ledger in one file, by SQLite: the embedded backend, which needs no server."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, compress
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from expost.errors import InvalidInput
from expost.ledger.adding import add, key_numbers
from expost.ledger.backend import DECLINED, Backend, Looked, Row, Stale
from expost.ledger.connecting import connect, copy_database, is_writable, library, reading
from expost.ledger.digests import next_root
from expost.ledger.errors import READ_ONLY, Broken, Damaged
from expost.ledger.records import (
    Change,
    Head,
    Heads,
    Kept,
    Outcome,
    QueryWord,
    ResponseWord,
    Tip,
    joined,
)
from expost.ledger.schema import UNLINKED
from expost.ledger.seals import checked_name, head_seals, seal_of

if TYPE_CHECKING:
    import apsw

__all__ = ["Sqlite"]

_HEAD = "SELECT sequence, digest, tally, closed, reserved, last, seal FROM"
_HEADS = f"{_HEAD} heads WHERE subject"
_LISTED = f"{_HEAD} carray(?) AS listed CROSS JOIN heads ON heads.subject = listed.value"
_REQUESTED = "SELECT subject, query, sequence, response, made FROM requests WHERE key = ?"
_RESERVED = "SELECT subject, query, sequence, 0, made FROM reservations WHERE key = ?"
_EXCHANGES = """
WITH RECURSIVE chain(key, subject, query, sequence, response, made, previous) AS (
    SELECT key, subject, query, sequence, response, made, previous FROM requests
    WHERE key = ?1 AND subject = ?2 AND sequence = ?3 AND ?3 > 0
    UNION ALL
    SELECT r.key, r.subject, r.query, r.sequence, r.response, r.made, r.previous
    FROM chain c JOIN requests r ON r.key = c.previous AND r.subject = ?2
    WHERE c.sequence > 1 AND r.sequence = c.sequence - 1
)
SELECT k.key, subject, query, sequence, response, made, k.number, k.seal
FROM chain c LEFT JOIN keys k ON k.number = c.key ORDER BY sequence
"""


class Sqlite(Backend):
    """One connection to a database file."""

    def __init__(
        self, connection: apsw.Connection, copy: TemporaryDirectory[str] | None = None
    ) -> None:
        self._apsw = library()
        self._connection = connection
        self._copy = copy
        self._cursor = connection.cursor()
        self._broken = False

    @classmethod
    def open(cls, path: Path, *, vfs: str | None = None) -> Sqlite:
        """Open a database that is there, if all of its settings will do.

        One that this process may not write is read from a copy, and nothing is added to it.
        With a ``vfs`` of your own, as for tests, it is the only one who has it open.
        """
        if vfs is not None or is_writable(path):
            return cls(connect(path, vfs))
        copy = TemporaryDirectory(prefix="expost-")
        try:
            return cls(connect(copy_database(path, Path(copy.name))), copy)
        except BaseException:
            copy.cleanup()
            raise

    def policy(self) -> str:
        return str(self._one("SELECT document FROM policy")[0])

    def tip(self) -> Tip:
        found = self._one("SELECT number, root FROM commits ORDER BY number DESC LIMIT 1")
        if not found:
            raise Damaged("there are no commits")
        return Tip(*found)

    def root(self, commit: int) -> bytes | None:
        found = self._one("SELECT root FROM commits WHERE number = ?", (commit,))
        return found[0] if found else None

    def queries(self, after: int = 0) -> list[QueryWord]:
        return [
            QueryWord(*row)
            for row in self._all(
                "SELECT number, content_id, name, document FROM queries"
                " WHERE number > ? ORDER BY number",
                (after,),
            )
        ]

    def introduced(self) -> list[tuple[QueryWord, int]]:
        found = self._all("SELECT number, content_id, name, document, made FROM queries")
        return [(QueryWord(*word), made) for *word, made in found]

    def responses(self, after: int = 0) -> list[ResponseWord]:
        words = []
        for *word, seal in self._all(
            "SELECT number, query, response, seal FROM responses WHERE number > ? ORDER BY number",
            (after,),
        ):
            if seal != seal_of(word):
                raise Damaged(f"response {word[0]} is not what was recorded")
            words.append(ResponseWord(*word))
        return words

    def subjects(self, after: int = 0) -> list[tuple[int, str]]:
        found = self._all(
            "SELECT number, name, seal FROM subjects WHERE number > ? ORDER BY number", (after,)
        )
        return [(number, checked_name(number, name, seal)) for number, name, seal in found]

    def numbers(self, names: Sequence[str]) -> list[int]:
        result = []
        for name in names:
            # By its row, and not by the index alone: a damaged index would name somebody else.
            found = self._one("SELECT number, seal, made FROM subjects WHERE name = ?", (name,))
            if found:
                checked_name(found[0], name, found[1])
            result.append(found[0] if found else 0)
        return result

    def size(self) -> int:
        found = self._one("SELECT max(number) FROM subjects")
        return (found and found[0]) or 0

    def heads(self, subjects: Sequence[int]) -> list[Head]:
        return list(self._heads(subjects))

    def _heads(self, subjects: Sequence[int]) -> Heads:
        with reading:
            *columns, seals = _columns(self._found(subjects), 7)
        if len(seals) != len(subjects):
            raise Damaged("the head of somebody is missing")
        heads = Heads(*columns)
        try:
            due = head_seals(subjects, heads)
        except (TypeError, AttributeError):
            raise Damaged("the head of somebody is not what was recorded") from None
        if due != seals:
            wrong = next(compress(subjects, map(ne, due, seals)))
            raise Damaged(f"the head of subject number {wrong} is not what was recorded")
        return heads

    def _found(self, subjects: Sequence[int]) -> apsw.Cursor:
        """The rows of heads."""
        first, count = (subjects[0] if subjects else 0), len(subjects)
        if count == 1:
            return self._cursor.execute(f"{_HEADS} = ?", (first,))
        if list(subjects) == list(range(first, first + count)):
            # Neighbours, as in a round over all, are found together.
            statement = f"{_HEADS} BETWEEN ? AND ? ORDER BY subject"
            return self._cursor.execute(statement, (first, first + count - 1))
        # Others are in the order of the first table, which CROSS keeps. Their seals would tell.
        numbers = self._apsw.carray(array("q", subjects))
        return self._cursor.execute(_LISTED, (numbers,))

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked:
        with reading:
            used = key_numbers(self._cursor, [key for key, _ in asked])
        outcomes = [self.outcomes(key, subjects) if key in used else {} for key, subjects in asked]
        heads = self._heads(joined([subjects for _, subjects in asked]))
        parts, start = list[Heads](), 0
        for _, subjects in asked:
            parts.append(heads.part(start, start + len(subjects)))
            start += len(subjects)
        return Looked(outcomes, parts, bool(self.ended()))

    def waiting(self, first: int, last: int) -> list[int]:
        # Without a reservation ever made, no head is looked at.
        statement = (
            "SELECT subject FROM (SELECT 1 FROM reservations LIMIT 1) CROSS JOIN heads"
            " WHERE subject BETWEEN ? AND ? AND reserved <> ''"
        )
        return [subject for (subject,) in self._all(statement, (first, last))]

    def outcomes(self, key: str, subjects: Sequence[int]) -> dict[int, Outcome]:
        with reading:
            number = key_numbers(self._cursor, [key]).get(key)
            if number is None:
                return {}
            found: list[Any] = []
            if self._cursor.execute(f"{_RESERVED} LIMIT 1", (number,)).fetchall():
                found += self._of_key(_RESERVED, number, subjects)
            found += self._of_key(_REQUESTED, number, subjects)
        _check_numbers(found)
        result: dict[int, Outcome] = {}
        for subject, query, sequence, response, made in found:
            if response == DECLINED:  # of an exchange that was reserved
                sequence = result[subject].sequence if subject in result and not sequence else 0
            result[subject] = Outcome(query, sequence, response, made)
        return result

    def _of_key(self, statement: str, key: int, subjects: Sequence[int]) -> list[Any]:
        """The rows of a key for some subjects."""
        first, last = min(subjects, default=0), max(subjects, default=0)
        if last - first < 2 * len(subjects):  # nearly neighbours, as in a round over all
            rows = self._cursor.execute(
                f"{statement} AND subject BETWEEN ? AND ?", (key, first, last)
            ).fetchall()
            own = set(subjects) if rows else ()
            return [row for row in rows if row[0] in own]
        return self._cursor.executemany(
            f"{statement} AND subject = ?", ((key, subject) for subject in subjects)
        ).fetchall()

    def append(self, change: Change, lines: Sequence[bytes], after: Tip | None = None) -> Tip:
        if self._broken:
            raise Broken("an earlier write failed; open the ledger again")
        if self._copy is not None:
            raise InvalidInput(READ_ONLY)
        apsw = self._apsw
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            raise InvalidInput("another process holds the ledger and does not let go") from None
        except apsw.Error as error:
            raise self._failed(error) from None
        try:
            tip = self._write(change, lines, after)
        except (apsw.ConstraintError, Stale):
            self._cursor.execute("ROLLBACK")
            raise Stale from None
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._failed(error) from None
        except BaseException:
            self._roll_back()
            raise
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise self._failed(error) from None
        return tip

    def _roll_back(self) -> None:
        """Neither show what is not recorded, nor keep others waiting."""
        self._broken = True
        with suppress(self._apsw.Error):
            self._cursor.execute("ROLLBACK")

    def _failed(self, error: Exception) -> Broken:
        """After a failed write nothing is known of the disk, so there are no more writes."""
        self._roll_back()
        return Broken(
            f"the ledger could not be written ({error}); open it again when that is mended"
        )

    def _write(self, change: Change, lines: Sequence[bytes], after: Tip | None) -> Tip:
        before = self.tip()
        if after not in (None, before):
            raise Stale
        tip = Tip(before.commits + 1, next_root(before.root, lines))
        self._cursor.execute("INSERT INTO commits VALUES (?, ?)", tip)
        add(self._cursor, change, tip.commits)
        return tip

    def exchanges(self, subject: int, head: Head) -> list[Row]:
        found = self._all(_EXCHANGES, (head.last, subject, head.sequence))
        if [row[3] for row in found] != list(range(1, head.sequence + 1)):
            raise Damaged(f"an exchange of subject number {subject} is missing")
        _check_numbers(row[1:] for row in found)
        for key, *_, number, seal in found:
            _check_key(number, key, seal)
        return [Row(*row[:6]) for row in found]

    def unlinked(self) -> list[int]:
        return [subject for (subject,) in self._all(UNLINKED)]

    def rows(self) -> Iterator[Row]:
        return self._rows(
            "SELECT k.key, subject, query, sequence, response, made"
            " FROM requests r LEFT JOIN keys k ON k.number = r.key"
        )

    def reservations(self) -> Iterator[Row]:
        return self._rows(
            "SELECT k.key, subject, query, sequence, 0, made"
            " FROM reservations r LEFT JOIN keys k ON k.number = r.key"
        )

    def _rows(self, statement: str) -> Iterator[Row]:
        for number, key, seal in self._stream("SELECT number, key, seal FROM keys"):
            _check_key(number, key, seal)
        for row in self._stream(statement):
            if row[0] is None:
                raise Damaged("a request has no key")
            yield Row(*row)

    def registered(self) -> Iterator[tuple[int, str, int]]:
        for number, name, made, seal in self._stream(
            "SELECT number, name, made, seal FROM subjects"
        ):
            yield number, checked_name(number, name, seal), made

    def closures(self) -> list[tuple[int, int]]:
        return self._all("SELECT subject, made FROM closures")

    def moved_in(self, commits: Sequence[int]) -> list[int]:
        found = self._all(
            "WITH own AS (SELECT value FROM json_each(?)) "
            "SELECT subject FROM requests WHERE made IN own AND sequence > 0 UNION "
            "SELECT subject FROM reservations WHERE made IN own UNION "
            "SELECT subject FROM closures WHERE made IN own",
            (json.dumps(list(commits)),),
        )
        return [subject for (subject,) in found]

    def reason_kept(self, subject: int, digest: str) -> str | None:
        found = self._one(
            "SELECT reason FROM kept WHERE subject = ? AND digest = ?", (subject, digest)
        )
        return found[0] if found else None

    def kept(self) -> list[tuple[Kept, int]]:
        found = self._all("SELECT subject, digest, reason, message, made FROM kept ORDER BY number")
        return [(Kept(*row[:4]), row[4]) for row in found]

    def ended(self) -> int:
        found = self._one("SELECT made FROM ends")
        return found[0] if found else 0

    def roots(self) -> Iterator[bytes]:
        commits = self._stream("SELECT number, root FROM commits ORDER BY number")
        for place, (number, root) in enumerate(commits):
            if number != place:
                raise Damaged(f"commit {place} is missing")
            yield root

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with reading:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _one(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        with reading:
            return self._cursor.execute(statement, values).fetchone()

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with reading:
            return self._cursor.execute(statement, values).fetchall()

    def _stream(self, statement: str) -> Iterator[Any]:
        with reading:
            yield from self._connection.execute(statement)


def _check_numbers(rows: Iterable[Sequence[Any]]) -> None:
    """Refuse rows in which a flipped bit has made something else of a number."""
    if any(type(each) is not int for row in rows for each in row):
        raise Damaged("a request is not what was recorded")


def _check_key(number: int, key: str, seal: int) -> None:
    if seal != seal_of((number, key)):
        raise Damaged("a key is not what was recorded")


def _columns(rows: Iterator[Any], count: int) -> list[list[Any]]:
    """The columns of some rows, none of which is kept: many would take longer."""
    values = list(chain.from_iterable(rows))
    return [values[place::count] for place in range(count)]
