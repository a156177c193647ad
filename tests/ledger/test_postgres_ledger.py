"""Ledgers on a real PostgreSQL: what only a server can do to them."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

import expost as xp
from expost.errors import InvalidInput
from expost.ledger import _postgres
from expost.ledger._postgres import Postgres
from expost.ledger.backend import Commit, Tip
from expost.ledger.database_url import checkpoint_path, is_database_url, shown_url
from expost.ledger.errors import (
    LedgerBehind,
    LedgerBroken,
    LedgerDamaged,
    LedgerLocked,
    LedgerReadOnly,
)
from expost.ledger.tables import TABLES, CommitRow, MarkRow, RequestRow, SubjectRow
from support.missing_packages import run_without
from support.postgres_server import Server, fresh, in_schema, server_of_our_own

ANN = SubjectRow('"ann"', 1, "device", "active", 0, 0, b"head", b"", b"", "", 0, 1, 5)


def commit(number: int, *, changed: bool = False) -> Commit:
    """A commit with a row in two tables, which is seen to be whole or missing."""
    added: dict[type[Any], list[Any]] = {
        MarkRow: [MarkRow(number, "ended", "", number)],
        RequestRow: [RequestRow('"ann"', f"week {number}", 1, number, number)],
    }
    if number == 1:
        added[SubjectRow] = [ANN]
    moved = [ANN._replace(sequence=number)] if changed else []
    return Commit(Tip(number, bytes([number % 256]) * 32), "[]", added, moved)


OPENED: list[Postgres] = []


def connect(url: str) -> Postgres:
    """Open a ledger until the end of the test."""
    OPENED.append(Postgres.open(url))
    return OPENED[-1]


@contextmanager
def schema(server: str) -> Iterator[str]:
    """A schema that is dropped once nothing is open: a transaction would hold it."""
    with fresh(server) as url:
        try:
            yield url
        finally:
            while OPENED:
                OPENED.pop().close()


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    with schema(postgres_server) as url:
        yield url


def create(url: str) -> Postgres:
    """A new ledger with one commit, and its writer."""
    Postgres.create(url, "{}", b"root")
    backend = connect(url)
    backend.claim()
    backend.commit(commit(1))
    return backend


@contextmanager
def admin(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def terminate(backend: Postgres, url: str) -> None:
    """End the connection of a backend, and wait until the server has."""
    process = backend._connection.info.backend_pid
    with admin(url) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (process,))
        while connection.execute(
            "SELECT FROM pg_stat_activity WHERE pid = %s", (process,)
        ).fetchall():
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checkpoints of servers are in a folder of the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that may be killed and started again with other settings."""
    with server_of_our_own() as server:
        yield server


@pytest.fixture
def killable(server: Server) -> Iterator[str]:
    with schema(server.dsn) as url:
        yield url


# -- opening


def test_a_database_without_a_ledger_is_refused(postgres: str) -> None:
    with pytest.raises(InvalidInput, match=r"^there is no ledger in this database$"):
        connect(postgres)


def test_a_ledger_of_the_first_schema_is_refused_in_one_line(postgres: str) -> None:
    with admin(postgres) as connection:
        connection.execute("CREATE TABLE ledger(one int, version int, document text)")
        connection.execute("INSERT INTO ledger VALUES (1, 1, '{}')")
    with pytest.raises(InvalidInput, match=r"written by an older expost \(schema version 1"):
        connect(postgres)


def test_a_ledger_of_a_later_schema_is_refused(postgres: str) -> None:
    create(postgres).close()
    with admin(postgres) as connection:
        connection.execute("UPDATE study SET version = 99, epoch = epoch + 1")
    with pytest.raises(InvalidInput, match=r"written by a newer expost \(schema version 99"):
        connect(postgres)


def test_a_schema_has_to_exist(postgres_server: str) -> None:
    for call in (connect, lambda url: Postgres.create(url, "{}", b"root")):
        with pytest.raises(InvalidInput, match="no schema of its search path exists"):
            call(in_schema(postgres_server, "nowhere"))


def test_a_database_in_another_encoding_is_refused(server: Server) -> None:
    with admin(server.dsn) as connection:
        connection.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    with pytest.raises(InvalidInput, match="encoding of the database is LATIN1; it must be UTF8"):
        Postgres.create(server.dsn.replace("/postgres?", "/latin?"), "{}", b"root")


def test_an_old_server_is_refused(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "OLDEST_SERVER", 990_000)
    with pytest.raises(InvalidInput, match=r"^is PostgreSQL \d\d; it must be 99 or newer$"):
        Postgres.create(postgres, "{}", b"root")


def test_a_standby_is_refused(server: Server, killable: str) -> None:
    create(killable).close()
    signal = server._data / "standby.signal"
    server.stop()
    signal.touch()
    try:
        server.start()
        with pytest.raises(InvalidInput, match="is a standby server, which may be behind"):
            connect(killable)
    finally:
        server.stop()
        signal.unlink()
        server.start()
    assert connect(killable).tip().commit_number == 1


def check_order(url: str) -> None:
    backend = create(url)
    rows = [RequestRow(name, "k", 1, 1, 2) for name in ("Z", "a", "é", "\u20ac", "\U0001f600")]
    backend.commit(Commit(Tip(2, b"r"), "[]", {RequestRow: rows[::-1]}, []))
    assert [row for row in backend.scan(RequestRow) if row.key == "k"] == rows
    keys = [row[:2] for row in rows]
    assert backend.find(RequestRow, keys) == dict(zip(keys, rows, strict=True))
    backend.close()


def test_the_client_encoding_of_a_url_changes_nothing(postgres: str) -> None:
    check_order(f"{postgres}&client_encoding=LATIN1")


def test_the_locale_of_a_database_changes_nothing(server: Server) -> None:
    with admin(server.dsn) as connection:
        if connection.info.server_version < 150_000:
            pytest.skip("PostgreSQL 15 is the first with a locale that every build has")
        connection.execute(
            "CREATE DATABASE english TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'"
        )
    check_order(server.dsn.replace("/postgres?", "/english?"))


# -- settings that durability depends on


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_commits_is_refused(
    server: Server, killable: str, name: str
) -> None:
    create(killable).close()
    server.stop()
    server.start(**{name: "off"})
    try:
        with pytest.raises(InvalidInput, match=f"setting {name} is off") as raised:
            connect(killable)
        assert f"ALTER SYSTEM SET {name} = on" in str(raised.value)
    finally:
        server.stop()
        server.start()
    connect(killable).close()


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
@pytest.mark.parametrize("verb", ["commit", "claim"])
def test_a_setting_that_is_changed_under_an_open_ledger_is_noticed(
    server: Server, killable: str, name: str, verb: str
) -> None:
    backend = create(killable)
    with admin(server.dsn) as connection:
        connection.execute(f"ALTER SYSTEM SET {name} = off".encode())
        server.reload()
        try:
            while connection.execute(f"SHOW {name}".encode()).fetchone() != ("off",):
                time.sleep(0.01)
            time.sleep(0.1)  # the other connection reads it as soon as it is used
            with pytest.raises(LedgerBroken, match=f"setting {name} is off"):
                backend.commit(commit(2)) if verb == "commit" else backend.claim()
        finally:
            connection.execute(f"ALTER SYSTEM RESET {name}".encode())
            server.reload()
            while connection.execute(f"SHOW {name}".encode()).fetchone() != ("on",):
                time.sleep(0.01)
    again = connect(killable)
    again.claim()
    assert again.tip().commit_number == 1
    again.commit(commit(2))
    again.close()


def test_commits_that_would_not_wait_for_the_disk_are_made_to(
    server: Server, killable: str
) -> None:
    hasty = f"{killable}%20-csynchronous_commit%3Doff"
    with admin(hasty) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
    create(hasty)
    server.kill()
    server.start()
    assert connect(hasty).tip().commit_number == 1


def test_a_commit_that_would_not_wait_for_the_disk_is_refused(postgres: str) -> None:
    backend = create(postgres)
    backend._connection.execute("SET synchronous_commit = off")
    with pytest.raises(LedgerBroken, match="setting synchronous_commit is off"):
        backend.commit(commit(2))
    assert connect(postgres).tip().commit_number == 1


# -- nobody changes what was recorded


@pytest.mark.parametrize(
    "statement",
    [
        *(
            f"{verb} {table.name}{rest}"
            for table in TABLES.values()
            for verb, rest in (("DELETE FROM", ""), ("TRUNCATE", ""))
        ),
        *(
            f"UPDATE {table.name} SET {table.quoted[-1]} = {table.quoted[-1]}"
            for row, table in TABLES.items()
            if row is not SubjectRow
        ),
        "UPDATE subjects SET sequence = -1",
        "UPDATE subjects SET number = 2",
        "UPDATE subjects SET name = '\"bob\"'",
        "UPDATE subjects SET kind = 'simulated'",
        "UPDATE study SET document = '', epoch = epoch + 1",
        "UPDATE study SET epoch = 0",
        "UPDATE study SET version = 1, epoch = epoch + 1",
        "DELETE FROM study",
        "TRUNCATE study",
    ],
)
def test_triggers_refuse_every_user(postgres: str, statement: str) -> None:
    create(postgres).close()
    with admin(postgres) as connection:
        before = connection.execute("SELECT * FROM subjects, study, requests").fetchall()
        with pytest.raises(psycopg.Error, match="rows are never changed or removed"):
            connection.execute(statement.encode())
        assert connection.execute("SELECT * FROM subjects, study, requests").fetchall() == before


def test_a_barred_subject_stays_barred(postgres: str) -> None:
    create(postgres).close()
    with admin(postgres) as connection:
        connection.execute("UPDATE subjects SET state = 'suspended'")
        connection.execute("UPDATE subjects SET state = 'active'")
        connection.execute("UPDATE subjects SET state = 'barred'")
        with pytest.raises(psycopg.Error, match="rows are never changed or removed"):
            connection.execute("UPDATE subjects SET state = 'active'")


def test_triggers_that_are_missing_or_disabled_are_found(postgres: str) -> None:
    backend = create(postgres)
    with admin(postgres) as connection:
        connection.execute("ALTER TABLE exchanges DISABLE TRIGGER append_only")
        connection.execute("DROP TRIGGER forward ON subjects")
    assert backend.check() == [
        "the trigger append_only of table exchanges is missing or disabled",
        "the trigger forward of table subjects is missing or disabled",
    ]
    backend.close()


# -- one writer


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "_PATIENCE", 0.1)


def test_a_second_writer_is_refused_while_the_first_is_connected(
    postgres: str, impatient: None
) -> None:
    first, second = create(postgres), connect(postgres)
    with pytest.raises(LedgerLocked, match="another process is writing to this ledger; stop it"):
        second.claim()
    first.commit(commit(2))
    assert second.tip().commit_number == 2
    first.close()
    second.claim()
    second.commit(commit(3))
    second.close()


def test_a_release_undoes_every_claim(postgres: str, impatient: None) -> None:
    first, second = create(postgres), connect(postgres)
    first.claim()
    first.release()
    second.claim()
    second.commit(commit(2))
    assert first.tip().commit_number == 2


def test_nobody_writes_to_a_ledger_after_releasing_it(postgres: str) -> None:
    backend = create(postgres)
    backend.release()
    with pytest.raises(LedgerBroken, match="another process has taken over"):
        backend.commit(commit(2))
    assert recorded(postgres) == 1


def test_a_released_ledger_connects_again_after_a_restart(server: Server, killable: str) -> None:
    """As a reader, which it is from then on; the lock went with the connection."""
    reader = create(killable)
    server.kill()
    reader.release()
    server.start()
    assert reader.tip().commit_number == 1
    writer = connect(killable)
    writer.claim()
    writer.commit(commit(2))
    assert reader.tip().commit_number == 2


def test_a_claim_waits_until_the_server_has_noticed_that_the_last_writer_is_gone(
    postgres: str,
) -> None:
    first, second = create(postgres), connect(postgres)
    threading.Timer(0.3, first.close).start()
    second.claim()
    second.commit(commit(2))
    second.close()


def test_a_writer_that_failed_lets_the_next_one_in(postgres: str) -> None:
    """Nobody has to close what is broken first."""
    first, second = create(postgres), connect(postgres)
    repeated = Commit(Tip(2, b"r"), "[]", {SubjectRow: [ANN]}, [])
    with pytest.raises(LedgerBroken, match="duplicate key"):
        first.commit(repeated)
    second.claim()
    second.commit(commit(2))
    with pytest.raises(LedgerBroken, match="the connection is closed"):
        first.tip()


def test_ledgers_in_two_schemas_have_two_writers(postgres_server: str, impatient: None) -> None:
    with schema(postgres_server) as one, schema(postgres_server) as other:
        writers = [create(one), create(other)]
        for writer in writers:
            writer.commit(commit(2))
            writer.close()


def test_a_writer_that_lost_its_connection_cannot_commit(postgres: str) -> None:
    first, second = create(postgres), connect(postgres)
    terminate(first, postgres)
    second.claim()
    with pytest.raises(LedgerBroken, match="the ledger could not be written"):
        first.commit(commit(2))
    second.commit(commit(2, changed=True))
    with pytest.raises(LedgerBroken):
        first.commit(commit(3))
    with pytest.raises(LedgerBroken, match="the ledger cannot be read"):
        first.tip()
    assert second.tip().commit_number == 2
    second.close()


@pytest.mark.parametrize("commits", [0, 1])
def test_the_epoch_stops_a_writer_whose_lock_was_lost(postgres: str, commits: int) -> None:
    """As behind a pooler, which hands one connection of the server to several clients."""
    first, second = create(postgres), connect(postgres)
    first._connection.execute("SELECT pg_advisory_unlock_all()")
    second.claim()
    for number in range(commits):
        second.commit(commit(2 + number))
    with pytest.raises(LedgerBroken, match="another process has taken over this ledger"):
        first.commit(commit(2))
    assert second.tip().commit_number == 1 + commits
    second.close()


def test_a_claim_waits_for_a_commit_under_way(postgres: str) -> None:
    first, second = create(postgres), connect(postgres)
    first._connection.execute("SELECT pg_advisory_unlock_all()")
    first._write(commit(2))
    claimed = threading.Thread(target=second.claim)
    claimed.start()
    claimed.join(0.3)
    assert claimed.is_alive()
    first._connection.execute("COMMIT")
    claimed.join(10)
    assert second.tip().commit_number == 2
    with pytest.raises(LedgerBroken, match="another process has taken over this ledger"):
        first.commit(commit(3))
    second.commit(commit(3))
    second.close()


def test_nobody_writes_to_a_new_ledger_without_claiming_it(postgres: str) -> None:
    Postgres.create(postgres, "{}", b"root")
    with pytest.raises(LedgerBroken, match="another process has taken over"):
        connect(postgres).commit(commit(1))
    assert connect(postgres).tip().commit_number == 0


@pytest.mark.parametrize("how", ["rights", "setting"])
def test_a_user_who_may_only_read_does_not_lock_the_ledger(
    server: Server, killable: str, impatient: None, how: str
) -> None:
    create(killable).close()
    url = f"{killable}%20-cdefault_transaction_read_only%3Don"
    if how == "rights":
        name = killable.rpartition("%3D")[2]
        with admin(killable) as connection, suppress(psycopg.errors.DuplicateObject):
            connection.execute("CREATE ROLE auditor LOGIN")
        with admin(killable) as connection:
            connection.execute(f"GRANT USAGE ON SCHEMA {name} TO auditor".encode())
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO auditor".encode())
            connection.execute("REVOKE SELECT ON lost FROM auditor")
        url = killable.replace("postgres@", "auditor@")
    reader = connect(url)
    assert reader.tip().commit_number == 1
    with reader.snapshot():
        assert list(reader.scan(SubjectRow)) == [ANN]
    with pytest.raises(LedgerReadOnly, match="this user may not write to the tables"):
        reader.claim()
    if how == "rights":
        with pytest.raises(InvalidInput, match="cannot be read: permission denied for table lost"):
            list(reader.scan(next(row for row, table in TABLES.items() if table.name == "lost")))
    writer = connect(killable)
    writer.claim()
    writer.commit(commit(2))
    assert reader.tip().commit_number == 2
    writer.close()
    reader.close()


# -- lost connections


def recorded(url: str) -> int:
    """Return the number of the last commit, all of whose rows are there."""
    backend = connect(url)
    last = backend.tip().commit_number
    for row in (CommitRow, MarkRow, RequestRow):
        numbers = [
            values[-1] if row is not CommitRow else values[0] for values in backend.scan(row)
        ]
        assert sorted(numbers) == list(range(0 if row is CommitRow else 1, last + 1))
    backend.close()
    return last


@pytest.mark.parametrize(
    ("when", "last", "reason"),
    [
        ("before", 1, "the ledger could not be written"),
        ("during", 1, "it is not known whether the last commit was written"),
        ("after", 2, "it is not known whether the last commit was written"),
    ],
)
def test_a_server_is_killed_in_a_commit(
    server: Server,
    killable: str,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    last: int,
    reason: str,
) -> None:
    backend = create(killable)
    connection = backend._connection
    execute = connection.execute

    def killed(statement: Any, *values: Any, **options: Any) -> Any:
        if statement == "COMMIT":
            if when == "after":
                execute(statement)
            server.kill()
        return execute(statement, *values, **options)

    if when == "before":
        server.kill()
    monkeypatch.setattr(connection, "execute", killed)
    try:
        with pytest.raises(LedgerBroken, match=reason) as raised:
            backend.commit(commit(2, changed=True))
    finally:
        server.start()
    assert "week" not in str(raised.value)
    for call in (lambda: backend.commit(commit(2)), backend.tip, backend.claim):
        with pytest.raises(LedgerBroken):
            call()
    assert recorded(killable) == last
    again = connect(killable)
    assert again.find(SubjectRow, [('"ann"',)])['"ann"',].sequence == (2 if last == 2 else 0)
    again.claim()
    again.commit(commit(last + 1))
    again.close()


def test_a_server_killed_at_any_time_has_every_commit_that_returned(
    server: Server, killable: str
) -> None:
    create(killable).close()
    random, number = Random(5), 1
    for _ in range(6):
        backend = connect(killable)
        backend.claim()
        killer = threading.Timer(random.uniform(0.002, 0.1), server.kill)
        killer.start()
        with suppress(LedgerBroken):
            while True:
                backend.commit(commit(number + 1, changed=True))
                number += 1
        killer.join()
        server.start()
        last = recorded(killable)
        assert last in (number, number + 1)
        number = last
    assert number > 6


def test_a_commit_that_the_server_rolled_back_is_not_taken_for_one(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A COMMIT after an error is answered by ROLLBACK, and by no error."""
    backend = create(postgres)

    def fail(commit: Commit) -> None:
        backend._connection.execute("BEGIN")
        with suppress(psycopg.Error):
            backend._connection.execute("SELECT 1 / 0")

    monkeypatch.setattr(backend, "_write", fail)
    with pytest.raises(LedgerBroken, match=r"the ledger could not be written \(ROLLBACK\)"):
        backend.commit(commit(2))


def test_an_interrupted_commit_is_rolled_back(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = create(postgres)

    def interrupted(columns: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(_postgres, "_columns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        backend.commit(commit(2))
    with pytest.raises(LedgerBroken):
        backend.commit(commit(2))
    assert recorded(postgres) == 1


def test_a_reader_connects_again_after_a_restart(server: Server, killable: str) -> None:
    writer, reader = create(killable), connect(killable)
    reads: list[Callable[[], int]] = [
        lambda: reader.tip().commit_number,
        lambda: len(list(reader.scan(SubjectRow))),
        lambda: len(reader.find(SubjectRow, [('"ann"',)])),
        lambda: int(reader.policy() == "{}"),
    ]
    for read in reads:
        server.kill()
        server.start()
        assert read() == 1
    server.kill()
    server.start()
    with reader.snapshot():
        assert list(reader.scan(SubjectRow)) == [ANN]
    server.kill()
    server.start()
    reader.claim()
    reader.commit(commit(2))
    with pytest.raises(LedgerBroken, match="the ledger cannot be read"):
        writer.tip()
    with pytest.raises(LedgerBroken, match="the ledger could not be written"):
        writer.commit(commit(2))
    reader.close()


def test_a_reader_of_a_server_that_stays_away_is_told_so(server: Server, killable: str) -> None:
    create(killable).close()
    reader = connect(killable)
    server.kill()
    try:
        for call in (reader.tip, reader.claim):
            with pytest.raises(
                LedgerBroken, match=r"the ledger cannot be read \(cannot be opened: "
            ):
                call()
    finally:
        server.start()
    assert reader.tip().commit_number == 1
    reader.close()


def test_a_snapshot_is_never_continued_on_another_connection(postgres: str) -> None:
    writer, reader = create(postgres), connect(postgres)
    for read in (reader.tip, lambda: list(reader.scan(SubjectRow))):
        with reader.snapshot():
            assert reader.tip().commit_number == 1
            terminate(reader, postgres)
            with pytest.raises(LedgerBroken, match="the ledger cannot be read"):
                read()
    assert reader.tip().commit_number == 1
    writer.close()


def test_a_closed_ledger_stays_closed(postgres: str) -> None:
    create(postgres).close()
    reader = connect(postgres)
    reader.close()
    reader.close()
    for call in (reader.tip, reader.policy, reader.claim):
        with pytest.raises(LedgerBroken, match="the connection is closed"):
            call()


# -- errors


@pytest.mark.parametrize(
    "row",
    [
        RequestRow('"secret"', "secret\0", 1, 1, 2),
        RequestRow('"secret"', "secret", 1 << 70, 1, 2),
        RequestRow('"secret"', "secret", "secret", 1, 2),  # type: ignore[arg-type]
        RequestRow("secret".join(map(chr, range(0x4E00, 0x4E00 + 3000))), "secret", 1, 1, 2),
        RequestRow('"ann"', "week 1", 1, 1, 2),
        RequestRow(None, "secret", 1, 1, 2),  # type: ignore[arg-type]
    ],
    ids=["null character", "number", "type", "size", "repeated", "null"],
)
def test_an_error_never_quotes_a_value(postgres: str, row: RequestRow) -> None:
    backend = create(postgres)
    with pytest.raises(
        LedgerBroken, match=r"^the ledger could not be written \(.+\); open it again"
    ) as e:
        backend.commit(Commit(Tip(2, b"r"), "[]", {RequestRow: [row]}, []))
    assert not re.search(r"secret|week|ann|\d{9}", str(e.value))
    assert e.value.__suppress_context__
    assert recorded(postgres) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE subjects",
        "ALTER TABLE subjects DROP COLUMN seal",
        "ALTER TABLE subjects RENAME COLUMN name TO label",
    ],
)
def test_tables_that_are_not_as_they_were_are_damaged(postgres: str, statement: str) -> None:
    backend = create(postgres)
    with admin(postgres) as connection:
        connection.execute(statement.encode())
    for read in (
        lambda: backend.find(SubjectRow, [('"ann"',)]),
        lambda: list(backend.scan(SubjectRow)),
    ):
        with pytest.raises(LedgerDamaged, match=r"the database cannot be read \("):
            read()
        with (
            pytest.raises(LedgerDamaged, match=r"the database cannot be read \("),
            backend.snapshot(),
        ):
            read()
    assert backend.tip().commit_number == 1
    backend.close()


def test_a_flipped_bit_in_a_text_is_damage(server: Server, killable: str) -> None:
    create(killable).close()
    with admin(killable) as connection:
        connection.execute("CHECKPOINT")
        ((file,),) = connection.execute("SELECT pg_relation_filepath('requests')").fetchall()
    server.stop()
    path = server._data / file
    path.write_bytes(path.read_bytes().replace(b"week 1", b"w\xffek 1"))
    server.start()
    with pytest.raises(LedgerDamaged, match="the database cannot be read"):
        list(connect(killable).scan(RequestRow))


def test_a_missing_first_commit_is_damage(postgres: str) -> None:
    create(postgres).close()
    with admin(postgres) as connection:
        connection.execute("ALTER TABLE commits DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM commits")
    with pytest.raises(LedgerDamaged, match="there are no commits"):
        connect(postgres).tip()


# -- plans


def test_no_table_is_read_from_end_to_end_for_a_commit(postgres: str) -> None:
    """Plans are made when tables are small, and must still do when they are not."""
    backend = create(postgres)
    with admin(postgres) as connection:
        for table in TABLES.values():  # now the server knows that each has one page
            connection.execute(f"VACUUM ANALYZE {table.name}".encode())
    for number in range(2, 40):
        backend.find(RequestRow, [('"ann"', f"week {n}") for n in range(number)])
        backend.find(SubjectRow, [('"ann"',), ('"bob"',)])
        backend.tip()
        backend.commit(commit(number, changed=True))
    backend.close()
    read: dict[str, int] = {}
    with admin(postgres) as connection:
        for _ in range(200):  # until the server has counted what the other connection did
            rows = connection.execute(
                "SELECT relname, seq_tup_read, n_tup_ins FROM pg_stat_user_tables"
                " WHERE schemaname = current_schema()"
            ).fetchall()
            if any(name == "requests" and added == 39 for name, _, added in rows):
                read = {name: count for name, count, _ in rows if name != "study"}
                break
            time.sleep(0.05)
    assert read == {table.name: 0 for table in TABLES.values()}


# -- the whole ledger

WORDS = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.25")


def simulated(url: str, **options: Any) -> xp.Ledger:
    ledger = xp.Ledger.create(url, WORDS, filter=xp.BayesianFilter(epsilon=1), **options)
    ledger.register(["ann", "bob"], kind="simulated")
    return ledger


def test_a_round_is_there_when_the_ledger_is_opened_again(postgres: str, state: Path) -> None:
    with simulated(postgres, study="a study") as ledger:
        first = ledger.ask(QUERY, ["no", "yes"], ["ann", "bob"], key="week 1")
        tip = ledger.tip
    with xp.Ledger(postgres) as ledger:
        assert ledger.tip == tip
        again = ledger.ask(QUERY, ["no", "yes"], ["ann", "bob"], key="week 1")
        assert again.responses == first.responses
        assert ledger.tip == tip
        assert ledger.verify().good
    (checkpoint, key) = sorted((state / "expost").iterdir())
    assert (checkpoint.suffix, key.name) == (".checkpoint", f"{checkpoint.name}.key")


def copy_schema(url: str, target: str) -> None:
    """Copy all tables with their rows, as a restored backup would."""
    copied = target.rpartition("%3D")[2]
    with admin(url) as connection:
        for name in ("study", *(table.name for table in TABLES.values())):
            connection.execute(f"CREATE TABLE {copied}.{name} (LIKE {name} INCLUDING ALL)".encode())
            connection.execute(f"INSERT INTO {copied}.{name} SELECT * FROM {name}".encode())


def test_a_copied_schema_is_no_second_ledger_under_the_same_checkpoint(
    postgres_server: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with fresh(postgres_server) as url, fresh(postgres_server) as copied:
        with simulated(url, checkpoint=checkpoint) as ledger:
            copy_schema(url, copied)
            copy = xp.Ledger(copied, checkpoint=checkpoint)
            with pytest.raises(LedgerLocked):
                copy.ask(QUERY, ["no"], ["ann"], key="week 1")
            ledger.ask(QUERY, ["no"], ["ann"], key="week 1")
        with pytest.raises(LedgerBehind, match="the database is an older copy"):
            copy.ask(QUERY, ["no"], ["ann"], key="week 1")
        copy.close()
        with pytest.raises(LedgerBehind, match="the database is an older copy"):
            xp.Ledger(copied, checkpoint=checkpoint)
        with xp.Ledger(url, checkpoint=checkpoint) as ledger:
            assert ledger.status().exchanges.tolist() == [1, 0]


def test_a_backup_is_the_command_that_makes_one(postgres: str, tmp_path: Path) -> None:
    backend = create(postgres)
    with pytest.raises(InvalidInput) as raised:
        backend.backup(tmp_path / "study.dump")
    name = postgres.rpartition("%3D")[2]
    command = f"pg_dump --format=custom --schema={name} --file={tmp_path}/study.dump "
    assert str(raised.value).endswith(command + shown_url(postgres))
    assert psycopg.conninfo.conninfo_to_dict(shown_url(postgres))["dbname"]
    backend.close()


# -- URLs


def test_a_server_is_named_by_a_url() -> None:
    assert is_database_url("postgresql://host/study")
    assert is_database_url("postgres://host/study")
    assert not is_database_url("study.db")
    assert not is_database_url(Path("postgresql://host/study"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://zoe:geheim@Host:5433/study?sslmode=require", "postgresql://host:5433/study"),
        ("postgresql:///study?host=/tmp&password=geheim", "postgresql://%2Ftmp/study"),
        ("postgresql://%2Ftmp/study", "postgresql://%2Ftmp/study"),
        ("postgresql://zoe@/study?host=h&port=1", "postgresql://h:1/study"),
        ("postgresql://[::1]:5433/?dbname=study", "postgresql://[::1]:5433/study"),
        ("postgresql://a:1,b:2/study%20one", "postgresql://a:1,b:2/study%20one"),
    ],
)
def test_a_shown_url_has_neither_user_nor_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    ours, theirs = (psycopg.conninfo.conninfo_to_dict(each) for each in (shown, url))
    assert ours["dbname"] == theirs["dbname"]
    assert str(ours["host"]).lower() == str(theirs["host"]).lower()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://zoe:geheim@127.0.0.1:1/study?sslmode=disable",
        "postgresql://zoe:geh@geheim@127.0.0.1:1/study",
        "postgresql://zoe:geheim/x@127.0.0.1:1/study",
        "postgresql://zoe:1?geheim@127.0.0.1:1/study",
        "postgresql://zoe:1#geheim@127.0.0.1:1/study",
        "postgresql://zoe:geheim%zz@127.0.0.1:1/study",
        "postgresql://zoe:geheim@[/study",
        "postgresql://zoe:geheim@127.0.0.1:port/study",
        "postgresql://127.0.0.1:1/study?password=geheim%zz",
        "postgresql://127.0.0.1:1/study?user=zoe&passwort=geheim",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"cannot be opened|is not the URL of a database"
    ) as raised:
        xp.Ledger(url)
    assert "geheim" not in str(raised.value)
    assert "zoe" not in str(raised.value)


def test_a_checkpoint_belongs_to_where_the_tables_are(state: Path) -> None:
    one = checkpoint_path("postgresql://ann:x@host/study")
    assert one == checkpoint_path("postgres://bob@host/study?sslmode=require")
    assert one.parent == state / "expost"
    assert one.parent.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"study-[0-9a-f]{12}\.checkpoint", one.name)
    others = [
        "postgresql://other/study",
        "postgresql://host/another",
        "postgresql://host:5433/study",
        "postgresql://host/study?options=-csearch_path%3Dother",
    ]
    assert len({one, *map(checkpoint_path, others)}) == 5


def test_a_user_without_a_writable_home_is_asked_for_a_checkpoint_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    advice = r"checkpoint: .*set XDG_STATE_HOME to a writable folder, or pass a checkpoint file"
    monkeypatch.setenv("HOME", os.devnull)
    with pytest.raises(InvalidInput, match=advice):
        checkpoint_path("postgresql://host/study")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)  # no such user
    with pytest.raises(InvalidInput, match=advice):
        checkpoint_path("postgresql://host/study")


def test_without_the_driver_the_extra_is_named() -> None:
    program = """
import expost as xp
try:
    xp.Ledger("postgresql://127.0.0.1:1/study")
except xp.errors.InvalidInput as error:
    print(error)
"""
    done = run_without(["psycopg"], program)
    assert "requires the extra: pip install 'expost[postgres]'" in done.stdout, done.stderr
