"""A ledger in a PostgreSQL: for several computers that write to one ledger.

A commit takes a lock on the table of commits first, so commits follow each other, and whoever has
the lock sees all that was committed before. If the connection is lost on the way, nobody knows
whether it was recorded. So a new connection waits for the same lock until the server is done with
it, and looks for a commit whose root is that of the same lines. If there is none, whoever asked
begins again, with the same key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

from expost.errors import InvalidInput
from expost.ledger.backend import Backend, Looked, Row, Stale
from expost.ledger.digests import next_root
from expost.ledger.errors import Broken, Damaged
from expost.ledger.postgres.arrays import packed
from expost.ledger.postgres.connection import Connection
from expost.ledger.postgres.driver import driver, first_line
from expost.ledger.postgres.schema import MIGRATIONS
from expost.ledger.postgres.writing import commit, key_id, settle
from expost.ledger.records import Change, Head, Heads, Kept, Outcome, QueryWord, ResponseWord, Tip
from expost.ledger.schema import UNLINKED
from expost.ledger.seals import checked_name, head_seals, seal_of

__all__ = ["Postgres"]

_TIP = "SELECT number, root FROM commits ORDER BY number DESC LIMIT 1"
_EXCHANGES = """
WITH RECURSIVE chain(key, query, sequence, response, made, previous) AS (
    SELECT key, query, sequence, response, made, previous FROM requests
    WHERE key = %s AND subject = %s
    UNION ALL
    SELECT r.key, r.query, r.sequence, r.response, r.made, r.previous
    FROM chain c JOIN requests r ON r.key = c.previous AND r.subject = %s
    WHERE c.sequence > 1 AND r.sequence = c.sequence - 1
)
SELECT c.key, k.key, query, sequence, response, made
FROM chain c LEFT JOIN keys k ON k.id = c.key ORDER BY sequence
"""
# An answer or a refusal is what became of a reservation.
_LOOK = """
SELECT place, EXISTS (SELECT FROM ends),
    coalesce(r.query, v.query),
    CASE WHEN r.response < 0 THEN CASE r.sequence WHEN 0 THEN coalesce(v.sequence, 0) ELSE 0 END
        ELSE coalesce(r.sequence, v.sequence) END,
    coalesce(r.response, 0),
    coalesce(r.made, v.made),
    h.sequence, h.digest, h.tally, h.closed, h.reserved, h.last, h.seal
FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS p(place, key, subject)
LEFT JOIN requests r ON r.key = p.key AND r.subject = p.subject
LEFT JOIN reservations v ON v.key = p.key AND v.subject = p.subject
LEFT JOIN heads h ON h.subject = p.subject
"""
# Where an outcome starts in a row of it, and where a head.
_OUTCOME, _HEAD = 2, 6
_MISSING = (None,) * 7
_MOVED = """
SELECT subject FROM requests WHERE made = ANY(%(commits)s) AND sequence > 0
UNION SELECT subject FROM reservations WHERE made = ANY(%(commits)s)
UNION SELECT subject FROM closures WHERE made = ANY(%(commits)s)
ORDER BY 1
"""


class Postgres(Backend):
    """The tables of one schema of a database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._broken = False
        connection.confirmed = self.tip()

    @classmethod
    def create(cls, url: str, document: str, root: bytes) -> None:
        """Make the tables, with a policy and the root before the first commit.

        Tables that are there already are never written over.
        """
        connection = Connection(url)
        psycopg = driver()
        try:
            with connection.raw.transaction():
                for step in MIGRATIONS:
                    connection.raw.execute(step.encode())
                policy = (len(MIGRATIONS), document)
                connection.raw.execute("INSERT INTO ledger VALUES (1, %s, %s)", policy)
                connection.raw.execute("INSERT INTO commits VALUES (0, %s)", (root,))
        except (psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
            raise InvalidInput("is there already, and is not written over") from None
        except psycopg.ProgrammingError as error:
            raise InvalidInput(f"cannot be created: {first_line(error)}") from None
        except psycopg.Error as error:
            raise Broken(f"the ledger could not be created ({first_line(error)})") from None
        finally:
            connection.close()

    @classmethod
    def open(cls, url: str) -> Postgres:
        """Open a ledger that is there, if all settings of its server will do."""
        connection = Connection(url)
        psycopg = driver()
        try:
            try:
                found = connection.raw.execute("SELECT version FROM ledger").fetchone()
            except psycopg.errors.UndefinedTable:
                raise InvalidInput("there is no ledger in this database") from None
            version = found[0] if found else 0
            if version != len(MIGRATIONS):
                raise InvalidInput(
                    f"has schema version {version}, and this expost knows {len(MIGRATIONS)}; a "
                    "newer expost wrote it"
                )
            return cls(connection)
        except BaseException:
            connection.close()
            raise

    def policy(self) -> str:
        ((document,),) = self._connection.read("SELECT document FROM ledger")
        return str(document)

    def tip(self) -> Tip:
        found = self._connection.read(_TIP)
        if not found:
            raise Damaged("there are no commits")
        return Tip(*found[0])

    def root(self, commit: int) -> bytes | None:
        found = self._connection.read("SELECT root FROM commits WHERE number = %s", (commit,))
        return found[0][0] if found else None

    def queries(self, after: int = 0) -> list[QueryWord]:
        found = self._connection.read(
            "SELECT number, content_id, name, document FROM queries WHERE number > %s"
            " ORDER BY number",
            (after,),
        )
        return [QueryWord(number, ids, name.decode(), text) for number, ids, name, text in found]

    def introduced(self) -> list[tuple[QueryWord, int]]:
        found = self._connection.read(
            "SELECT number, content_id, name, document, made FROM queries"
        )
        return [
            (QueryWord(number, ids, name.decode(), text), made)
            for number, ids, name, text, made in found
        ]

    def responses(self, after: int = 0) -> list[ResponseWord]:
        words = []
        for number, query, response, seal in self._connection.read(
            "SELECT number, query, response, seal FROM responses WHERE number > %s ORDER BY number",
            (after,),
        ):
            word = ResponseWord(number, query, response.decode())
            if seal != seal_of(word):
                raise Damaged(f"response {number} is not what was recorded")
            words.append(word)
        return words

    def subjects(self, after: int = 0) -> list[tuple[int, str]]:
        found = self._connection.read(
            "SELECT number, name, seal FROM subjects WHERE number > %s ORDER BY number", (after,)
        )
        return [(number, checked_name(number, name, seal)) for number, name, seal in found]

    def numbers(self, names: Sequence[str]) -> list[int]:
        found = self._connection.read(
            "SELECT number, name, seal FROM subjects WHERE name = ANY(%s)", (list(names),)
        )
        known = {checked_name(number, name, seal): number for number, name, seal in found}
        return [known.get(name, 0) for name in names]

    def size(self) -> int:
        ((size,),) = self._connection.read("SELECT coalesce(max(number), 0) FROM subjects")
        return int(size)

    def heads(self, subjects: Sequence[int]) -> list[Head]:
        found = self._connection.read(
            "SELECT subject, sequence, digest, tally, closed, reserved, last, seal FROM heads"
            " WHERE subject = ANY(%b::bigint[])",
            (list(subjects),),
        )
        rows = {subject: head for subject, *head in found}
        return list(_checked(subjects, [rows.get(subject, _MISSING) for subject in subjects]))

    def waiting(self, first: int, last: int) -> list[int]:
        found = self._connection.read(
            "SELECT subject FROM heads WHERE subject BETWEEN %s AND %s AND reserved <> ''",
            (first, last),
        )
        return [subject for (subject,) in found]

    def outcomes(self, key: str, subjects: Sequence[int]) -> dict[int, Outcome]:
        return _outcomes(subjects, self._looked_up([(key, subjects)]))

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked:
        rows = self._looked_up(asked)
        subjects = [subject for _, own in asked for subject in own]
        heads = _checked(subjects, [row[_HEAD:] for row in rows])
        outcomes, parts, start = list[dict[int, Outcome]](), list[Heads](), 0
        for _, own in asked:
            end = start + len(own)
            outcomes.append(_outcomes(own, rows[start:end]))
            parts.append(heads.part(start, end))
            start = end
        return Looked(outcomes, parts, rows[0][1] if rows else bool(self.ended()))

    def _looked_up(self, asked: Sequence[tuple[str, Sequence[int]]]) -> list[Any]:
        """A row for each subject of each request, in order: what became of it, and the head."""
        keys = [id_ for key, own in asked for id_ in [key_id(key)] * len(own)]
        if not keys:
            return []
        subjects = [subject for _, own in asked for subject in own]
        values = packed(("bigint", "bytea", "bigint"), (range(len(keys)), keys, subjects))
        rows = self._connection.look(_LOOK, values)
        rows.sort()  # by their places; as a rule they are in this order
        return rows

    def append(self, change: Change, lines: Sequence[bytes], after: Tip | None = None) -> Tip:
        if self._broken:
            raise Broken("an earlier write failed; open the ledger again")
        self._broken = True
        psycopg = driver()
        try:
            tip = commit(self._connection.statements, change, lines, after)
        except (Stale, InvalidInput):
            self._broken = False
            raise
        except psycopg.Error as error:
            if not self._connection.raw.closed:
                raise Broken(
                    f"the ledger could not be written ({first_line(error)}); open it again "
                    "when that is mended"
                ) from None
            found = self._recorded(lines)
            if found is None:
                self._broken = False
                raise Stale from None
            tip = found
        self._connection.confirmed = tip
        self._broken = False
        return tip

    def _recorded(self, lines: Sequence[bytes]) -> Tip | None:
        """The commit of these lines whose connection was lost; None if it was not recorded."""
        self._settle()
        known = self._connection.confirmed
        assert known is not None
        since = self._connection.read(
            "SELECT number, root FROM commits WHERE number >= %s ORDER BY number", (known.commits,)
        )
        for (_, before), (number, root) in pairwise(since):
            if next_root(before, lines) == root:
                return Tip(number, root)
        return None

    def _settle(self) -> None:
        """Connect again, and wait until the server is done with what the old connection did."""
        psycopg = driver()
        while True:
            self._connection.again()
            try:
                return settle(self._connection.statements)
            except psycopg.OperationalError as error:
                if not self._connection.raw.closed:
                    raise Broken(f"the ledger cannot be reached ({first_line(error)})") from None

    def exchanges(self, subject: int, head: Head) -> list[Row]:
        last = head.last.to_bytes(16, "big")
        found = self._connection.read(_EXCHANGES, (last, subject, subject))
        if [row[3] for row in found] != list(range(1, head.sequence + 1)):
            raise Damaged(f"an exchange of subject number {subject} is missing")
        return [Row(_key_of(id_, key), subject, *row) for id_, key, *row in found]

    def unlinked(self) -> list[int]:
        return [subject for (subject,) in self._connection.read(UNLINKED)]

    def rows(self) -> Iterator[Row]:
        return self._rows(
            "SELECT r.key, k.key, subject, query, sequence, response, made"
            " FROM requests r LEFT JOIN keys k ON k.id = r.key"
        )

    def reservations(self) -> Iterator[Row]:
        return self._rows(
            "SELECT r.key, k.key, subject, query, sequence, 0, made"
            " FROM reservations r LEFT JOIN keys k ON k.id = r.key"
        )

    def _rows(self, statement: str) -> Iterator[Row]:
        for id_, content, *others in self._connection.stream(statement):
            yield Row(_key_of(id_, content), *others)

    def registered(self) -> Iterator[tuple[int, str, int]]:
        for number, name, made, seal in self._connection.stream(
            "SELECT number, name, made, seal FROM subjects"
        ):
            yield number, checked_name(number, name, seal), made

    def closures(self) -> list[tuple[int, int]]:
        return [
            (subject, made)
            for subject, made in self._connection.read("SELECT subject, made FROM closures")
        ]

    def moved_in(self, commits: Sequence[int]) -> list[int]:
        found = self._connection.stream(_MOVED, {"commits": list(commits)})
        return [subject for (subject,) in found]

    def reason_kept(self, subject: int, digest: str) -> str | None:
        found = self._connection.read(
            "SELECT reason FROM kept WHERE subject = %s AND digest = %s", (subject, digest)
        )
        return found[0][0].decode() if found else None

    def kept(self) -> list[tuple[Kept, int]]:
        found = self._connection.read(
            "SELECT subject, digest, reason, message, made FROM kept ORDER BY made, subject, digest"
        )
        return [
            (Kept(subject, digest, reason.decode(), message), made)
            for subject, digest, reason, message, made in found
        ]

    def ended(self) -> int:
        found = self._connection.read("SELECT made FROM ends")
        return int(found[0][0]) if found else 0

    def roots(self) -> Iterator[bytes]:
        commits = self._connection.stream("SELECT number, root FROM commits ORDER BY number")
        for place, (number, root) in enumerate(commits):
            if number != place:
                raise Damaged(f"commit {place} is missing")
            yield root

    def snapshot(self) -> AbstractContextManager[None]:
        return self._connection.snapshot()

    def close(self) -> None:
        self._connection.close()


def _key_of(id_: bytes, content: bytes | None) -> str:
    """A key by its digest, if it is the one that was recorded."""
    key = "" if content is None else content.decode()
    if id_ != key_id(key):
        raise Damaged("the key of a request is not what was recorded")
    return key


def _outcomes(subjects: Sequence[int], rows: Sequence[Any]) -> dict[int, Outcome]:
    """What became of a request; nothing for those who never had it."""
    return {
        subject: Outcome(*row[_OUTCOME:_HEAD])
        for subject, row in zip(subjects, rows, strict=True)
        if row[_OUTCOME] is not None
    }


def _checked(subjects: Sequence[int], rows: Sequence[Any]) -> Heads:
    """The heads of some subjects from their rows, if all are what was recorded."""
    sequence, digest, tally, closed, reserved, last, seals = (
        zip(*rows, strict=True) if rows else [()] * 7
    )
    if None in sequence:
        raise Damaged("the head of somebody is missing")
    heads = Heads(
        sequence, digest, tally, closed,
        [key.decode() for key in reserved], [int.from_bytes(key, "big") for key in last],
    )  # fmt: skip
    for subject, seal, due in zip(subjects, seals, head_seals(subjects, heads), strict=True):
        if seal != due:
            raise Damaged(f"the head of subject number {subject} is not what was recorded")
    return heads
