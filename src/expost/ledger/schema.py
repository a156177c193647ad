"""The tables of a ledger in SQLite, as a list of steps from nothing to the current version.

What was recorded is never changed or removed: triggers refuse it. Only heads move, and those only
forward. Rows that a decision depends on have a ``seal``, so that a flipped bit is noticed.
"""

from __future__ import annotations

__all__ = ["APPLICATION", "MIGRATIONS", "UNLINKED"]

APPLICATION = 0x65787073
"""What tells a ledger from other databases: "exps"."""

_TABLES = """
CREATE TABLE policy(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    document TEXT NOT NULL
) STRICT;
CREATE TABLE commits(
    number INTEGER PRIMARY KEY CHECK (number >= 0),
    root BLOB NOT NULL CHECK (length(root) = 32)
) STRICT;
CREATE TABLE subjects(
    number INTEGER PRIMARY KEY CHECK (number > 0),
    name TEXT NOT NULL UNIQUE,
    made INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT;
CREATE TABLE queries(
    number INTEGER PRIMARY KEY CHECK (number > 0),
    content_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL,
    made INTEGER NOT NULL
) STRICT;
CREATE TABLE responses(
    number INTEGER PRIMARY KEY CHECK (number > 0),
    query INTEGER NOT NULL REFERENCES queries,
    response TEXT NOT NULL,
    seal INTEGER NOT NULL,
    UNIQUE (query, response)
) STRICT;
CREATE TABLE keys(
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    seal INTEGER NOT NULL
) STRICT;
CREATE TABLE requests(
    key INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    query INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    response INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    made INTEGER NOT NULL,
    PRIMARY KEY (key, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations(
    key INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    query INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    made INTEGER NOT NULL,
    PRIMARY KEY (key, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads(
    subject INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    tally BLOB NOT NULL,
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    reserved TEXT NOT NULL,
    last INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT;
CREATE TABLE closures(
    subject INTEGER PRIMARY KEY,
    made INTEGER NOT NULL
) STRICT;
CREATE TABLE kept(
    number INTEGER PRIMARY KEY,
    subject INTEGER NOT NULL,
    digest TEXT NOT NULL,
    reason TEXT NOT NULL,
    message BLOB NOT NULL,
    made INTEGER NOT NULL,
    UNIQUE (subject, digest)
) STRICT;
CREATE TABLE ends(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    made INTEGER NOT NULL
) STRICT;
"""

_FIXED = (
    "policy", "commits", "subjects", "queries", "responses", "keys", "requests", "reservations",
    "closures", "kept", "ends",
)  # fmt: skip

_HEADS = """
CREATE TRIGGER heads_stay BEFORE DELETE ON heads
BEGIN SELECT RAISE(ABORT, 'heads are never removed'); END;
CREATE TRIGGER heads_move_forward BEFORE UPDATE ON heads
WHEN new.subject <> old.subject OR new.closed < old.closed
    OR new.sequence NOT IN (old.sequence, old.sequence + 1)
BEGIN SELECT RAISE(ABORT, 'heads only move forward'); END;
"""


def _append_only(table: str) -> str:
    return f"""
CREATE TRIGGER {table}_stay BEFORE DELETE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are never removed'); END;
CREATE TRIGGER {table}_last BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are never changed'); END;
"""


MIGRATIONS: tuple[str, ...] = (_TABLES + "".join(map(_append_only, _FIXED)) + _HEADS,)
"""Version n of the schema is what the first n of these make."""

UNLINKED = """
SELECT r.subject FROM requests r
LEFT JOIN requests p ON p.key = r.previous AND p.subject = r.subject
WHERE r.sequence > 0 AND coalesce(p.sequence, 0) <> r.sequence - 1
UNION
SELECT h.subject FROM heads h LEFT JOIN requests p ON p.key = h.last AND p.subject = h.subject
WHERE coalesce(p.sequence, 0) <> h.sequence
ORDER BY 1
"""
"""Whose exchanges do not lead from the last to the first; the tables of PostgreSQL have it too."""
