"""The tables of a ledger in PostgreSQL, as a list of steps from nothing to the current version.

They are those of SQLite. What was recorded is never changed or removed: triggers refuse it, for
every user of the database. Only heads move, and those only forward.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS"]

# A text cannot have every character here, so what people choose is bytes, in UTF-8. Responses may
# be longer than what an index can hold. Rows have a digest in place of a key, which whoever writes
# knows without asking. A last column ``made`` is the number of the commit.
_TABLES = """
CREATE TABLE ledger(
    one integer PRIMARY KEY CHECK (one = 1),
    version integer NOT NULL,
    document text NOT NULL
);
CREATE TABLE commits(
    number bigint PRIMARY KEY CHECK (number >= 0),
    root bytea NOT NULL CHECK (length(root) = 32)
);
CREATE TABLE subjects(
    number bigint PRIMARY KEY CHECK (number > 0),
    name text NOT NULL UNIQUE,
    seal bigint NOT NULL,
    made bigint NOT NULL
);
CREATE TABLE queries(
    number bigint PRIMARY KEY CHECK (number > 0),
    content_id text NOT NULL UNIQUE,
    name bytea NOT NULL UNIQUE,
    document text NOT NULL,
    made bigint NOT NULL
);
CREATE TABLE responses(
    number bigint PRIMARY KEY CHECK (number > 0),
    query bigint NOT NULL REFERENCES queries,
    response bytea NOT NULL,
    seal bigint NOT NULL
);
CREATE UNIQUE INDEX responses_differ ON responses (query, sha256(response));
CREATE TABLE keys(
    id bytea PRIMARY KEY CHECK (id = substr(sha256(key), 1, 16)),
    key bytea NOT NULL
);
CREATE TABLE requests(
    key bytea NOT NULL,
    subject bigint NOT NULL,
    query bigint NOT NULL,
    sequence bigint NOT NULL,
    response bigint NOT NULL,
    previous bytea NOT NULL,
    made bigint NOT NULL,
    PRIMARY KEY (key, subject)
);
CREATE TABLE reservations(
    key bytea NOT NULL,
    subject bigint NOT NULL,
    query bigint NOT NULL,
    sequence bigint NOT NULL,
    made bigint NOT NULL,
    PRIMARY KEY (key, subject)
);
CREATE TABLE heads(
    subject bigint PRIMARY KEY,
    sequence bigint NOT NULL,
    digest bytea NOT NULL,
    tally bytea NOT NULL,
    closed boolean NOT NULL,
    reserved bytea NOT NULL,
    last bytea NOT NULL,
    seal bigint NOT NULL
) WITH (fillfactor = 60);
CREATE TABLE closures(
    subject bigint PRIMARY KEY,
    made bigint NOT NULL
);
CREATE TABLE kept(
    subject bigint NOT NULL,
    digest text NOT NULL,
    reason bytea NOT NULL,
    message bytea NOT NULL,
    made bigint NOT NULL,
    PRIMARY KEY (subject, digest)
);
CREATE TABLE ends(
    one bigint PRIMARY KEY CHECK (one = 1),
    made bigint NOT NULL
);
CREATE FUNCTION agreed(moved bigint, expected bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF moved <> expected THEN
        RAISE EXCEPTION 'somebody else has moved heads' USING ERRCODE = 'serialization_failure';
    END IF;
    IF 'off' IN (current_setting('fsync'), current_setting('full_page_writes'),
            current_setting('synchronous_commit')) THEN
        RAISE EXCEPTION 'commits may be lost'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN true;
END$$;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'the % of a ledger are never changed or removed', TG_TABLE_NAME; END$$;
-- Afterwards, so that a row need not be locked for it first: an eighth less is logged.
CREATE TRIGGER move_forward AFTER UPDATE ON heads FOR EACH ROW
    WHEN (NEW.subject <> OLD.subject OR NEW.closed < OLD.closed
        OR NEW.sequence NOT IN (OLD.sequence, OLD.sequence + 1))
    EXECUTE FUNCTION refuse();
CREATE TRIGGER stay BEFORE DELETE ON heads FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER stay_all BEFORE TRUNCATE ON heads EXECUTE FUNCTION refuse();
"""

_FIXED = (
    "commits", "subjects", "queries", "responses", "keys", "requests", "reservations", "closures",
    "kept", "ends",
)  # fmt: skip


def _append_only(table: str) -> str:
    return f"""
CREATE TRIGGER stay BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER stay_all BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse();
"""


_POLICY = """
CREATE TRIGGER stay BEFORE DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER stay_all BEFORE TRUNCATE ON ledger EXECUTE FUNCTION refuse();
CREATE TRIGGER same_policy BEFORE UPDATE ON ledger FOR EACH ROW
    WHEN (NEW.document <> OLD.document OR NEW.one <> OLD.one OR NEW.version < OLD.version)
    EXECUTE FUNCTION refuse();
"""

MIGRATIONS: tuple[str, ...] = (_TABLES + "".join(map(_append_only, _FIXED)) + _POLICY,)
"""Version n of the schema is what the first n of these make."""
