"""Ledgers on a real PostgreSQL: what only a server can do to them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import expost as xp
from expost.errors import InvalidInput
from expost.ledger import Behind, Broken, CheckpointFile, Damaged, Ledger
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.postgres import backend, connection, urls, writing
from expost.ledger.postgres.arrays import packed
from expost.ledger.postgres.statements import Call, Statements
from expost.ledger.postgres.writing import commit
from support.hiding import run_without
from support.postgres import Server, fresh, server_of_our_own

WORDS = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.25")
NAMES = [f"p{number}" for number in range(20)]
VALUES = ["no", "yes"] * 10


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checkpoints of servers are in a folder of the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def created(dsn: str, **options: Any) -> Ledger:
    ledger = xp.Ledger.create(dsn, WORDS, filter=xp.BayesianFilter(epsilon=1), **options)
    ledger.register(NAMES)
    return ledger


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that may be killed and started again with other settings."""
    with server_of_our_own() as server:
        yield server


@pytest.fixture
def killed(server: Server) -> Iterator[str]:
    with fresh(server.dsn) as dsn:
        yield dsn


def recorded(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as raw:
        return raw.execute("SELECT key, subject, sequence FROM requests ORDER BY 1, 2").fetchall()


def test_a_round_is_there_when_the_ledger_is_opened_again(postgres: str) -> None:
    with created(postgres, study="a study") as ledger:
        first = ledger.ask(QUERY, VALUES, key="week 1")
        root = ledger.tip
    with xp.Ledger(postgres) as ledger:
        assert ledger.tip == root
        assert ledger.policy.study == "a study"
        assert ledger.ask(QUERY, VALUES, key="week 1").responses == first.responses
        assert ledger.tip == root
        assert ledger.status().exchanges.tolist() == [1] * 20


def test_it_decides_and_draws_as_a_panel(postgres: str) -> None:
    guard, other = xp.BayesianFilter(epsilon=1), xp.randomized_response(epsilon="0.5")
    noise = [xp.sampling.InsecureSource(seed) for seed in (5, 5)]
    panel = xp.Panel(WORDS, filter=guard, subjects=NAMES, source=noise[0])
    with xp.Ledger.create(postgres, WORDS, filter=guard) as empty:
        empty.register(NAMES)
    with xp.Ledger(postgres, source=noise[1]) as ledger:
        for query in (QUERY, other, QUERY, QUERY, other, QUERY, other):
            theirs, ours = panel.ask(query, VALUES), ledger.ask(query, VALUES)
            assert ours.responses == theirs.responses
        assert ledger.status().remaining.tolist() == panel.remaining.tolist()
        for name in NAMES[:5]:
            assert ledger.transcript(name) == panel.transcript(name)
        assert ledger.answers().refused == panel.answers().refused


def test_two_ledgers_fit_into_one_database(postgres_server: str, state: Path) -> None:
    with fresh(postgres_server) as one, fresh(postgres_server) as other:
        with created(one) as first, created(other) as second:
            assert first.policy.content_id != second.policy.content_id
        assert len(list((state / "expost").iterdir())) == 2


def test_a_ledger_is_never_written_over(postgres: str, tmp_path: Path) -> None:
    with created(postgres) as ledger:
        policy = ledger.policy
    with pytest.raises(InvalidInput, match="is there already, and is not written over"):
        created(postgres, checkpoint=tmp_path / "other")
    with xp.Ledger(postgres) as ledger:
        assert ledger.policy == policy


def test_a_database_without_a_ledger_is_bad_input(postgres: str) -> None:
    with pytest.raises(InvalidInput, match="there is no ledger in this database"):
        xp.Ledger(postgres)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE requests SET response = 1",
        "DELETE FROM requests",
        "TRUNCATE requests",
        "DELETE FROM heads",
        "TRUNCATE heads",
        "UPDATE heads SET sequence = 0",
        "UPDATE heads SET closed = false WHERE subject = 2",
        "UPDATE ledger SET document = '{}'",
        "DELETE FROM ledger",
        "DELETE FROM commits WHERE number > 1",
        "UPDATE keys SET key = ''",
        "DELETE FROM closures",
        "UPDATE kept SET reason = ''",
    ],
)
def test_nobody_changes_what_was_recorded(postgres: str, statement: str) -> None:
    with created(postgres) as ledger:
        ledger.ask(QUERY, VALUES, key="week 1")
        ledger.record(QUERY, ["no"] * 9, ["p1"] * 9)
        ledger.receive([b"no message"])
    with psycopg.connect(postgres) as raw, pytest.raises(psycopg.Error, match="never changed or"):
        raw.execute(statement.encode())


def test_a_head_that_was_changed_behind_our_back_is_damaged(postgres: str) -> None:
    with created(postgres) as ledger:
        ledger.ask(QUERY, VALUES)
        with psycopg.connect(postgres) as raw:
            raw.execute("UPDATE heads SET tally = '' WHERE subject = 3")
        with pytest.raises(Damaged, match="subject number 3"):
            ledger.decide(QUERY)


def test_a_response_that_became_another_one_is_not_released(postgres: str) -> None:
    with created(postgres) as ledger:
        ledger.record(QUERY, VALUES, key="again")
        ledger.record(QUERY, VALUES, key="later")
        with psycopg.connect(postgres) as raw:
            raw.execute("SET session_replication_role = replica")
            raw.execute(
                "UPDATE requests SET response = 3 - response WHERE subject = 3 AND sequence = 1"
            )
        for key in ("again", "later"):
            with pytest.raises(Damaged, match="the chain of subject number 3 is broken"):
                ledger.ask(QUERY, VALUES, key=key)
        with pytest.raises(Damaged, match="the exchanges of subject number 3 are not its tally"):
            ledger.answers()
        assert ledger.ask(QUERY, ["no"], ["p0"], key="again").responses == ("no",)


def test_a_head_that_is_gone_is_damaged(postgres: str) -> None:
    with created(postgres) as ledger:
        with psycopg.connect(postgres) as raw:
            raw.execute("ALTER TABLE heads DISABLE TRIGGER ALL")
            raw.execute("DELETE FROM heads WHERE subject = 3")
        for call in (lambda: ledger.ask(QUERY, VALUES, key="week 1"), ledger.status):
            with pytest.raises(Damaged, match="the head of somebody is missing"):
                call()


def test_a_study_that_somebody_else_has_closed_is_closed(postgres: str, tmp_path: Path) -> None:
    with created(postgres, checkpoint=tmp_path / "checkpoint") as ledger:
        ledger.ask(QUERY, VALUES, key="week 1")
        with xp.Ledger(postgres, checkpoint=tmp_path / "checkpoint") as other:
            other.end()
        with pytest.raises(InvalidInput, match="the study is closed"):
            ledger.ask(QUERY, VALUES, key="week 2")
        assert len(recorded(postgres)) == 20


class TestSettings:
    @pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
    def test_a_server_that_may_lose_commits_is_refused(
        self, server: Server, killed: str, name: str
    ) -> None:
        with created(killed) as ledger:
            ledger.ask(QUERY, VALUES, key="before")
            server.stop()
            server.start(**{name: "off"})
            try:
                with pytest.raises(InvalidInput, match=f"setting {name} is off") as raised:
                    xp.Ledger(killed)
                assert f"ALTER SYSTEM SET {name} = on" in str(raised.value)
                # Also by one that was opened before.
                with pytest.raises(InvalidInput, match=f"setting {name} is off"):
                    ledger.ask(QUERY, VALUES, key="after")
            finally:
                server.stop()
                server.start()
            ledger.ask(QUERY, VALUES, key="after")

    @pytest.mark.parametrize("verb", ["ask", "register"])
    def test_a_setting_that_is_changed_while_we_write_is_noticed(
        self, server: Server, killed: str, verb: str
    ) -> None:
        def write_again_and_again(ledger: Ledger) -> None:
            for number in range(200):  # until the server has read it
                if verb == "ask":
                    ledger.ask(QUERY, VALUES[:1], ["p0"], key=f"{number}")
                else:
                    ledger.register([f"new {number}"])

        with created(killed) as ledger, psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET fsync = off")
            server.reload()
            try:
                with pytest.raises(InvalidInput, match="fsync is off"):
                    write_again_and_again(ledger)
            finally:
                admin.execute("ALTER SYSTEM RESET fsync")
                server.reload()

    def test_commits_that_do_not_wait_for_the_disk_are_made_to(
        self, server: Server, killed: str
    ) -> None:
        slow = f"{killed}%20-csynchronous_commit%3Doff"
        with psycopg.connect(slow) as raw:
            assert raw.execute("SHOW synchronous_commit").fetchone() == ("off",)
        with created(slow) as ledger:
            first = ledger.ask(QUERY, VALUES, key="week 1")
            server.kill()
            server.start()
            assert ledger.ask(QUERY, VALUES, key="week 1").responses == first.responses


class TestLostConnections:
    """The answer to a commit is lost: it is looked up, and never written twice."""

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_commit_is_there_once(
        self, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        times = 0

        def lost(statements: Statements, change: Any, lines: Sequence[bytes], *after: Any) -> Any:
            nonlocal times
            times += 1
            if times > 1:
                return commit(statements, change, lines, *after)
            if when == "after":
                commit(statements, change, lines, *after)
            statements.raw.close()
            raise psycopg.OperationalError("the connection is lost")

        file = tmp_path / "checkpoint"
        with created(postgres, every=1, checkpoint=file) as ledger:
            monkeypatch.setattr(backend, "commit", lost)
            replies = ledger.ask(QUERY, VALUES, key="week 1")
            assert times == (1 if when == "after" else 2)
            # Nothing is released before its checkpoint.
            kept = Checkpoint(CheckpointFile(file), ledger.policy.content_id, 1).last()
            assert kept == ledger.tip
            assert len(recorded(postgres)) == 20
            assert ledger.ask(QUERY, VALUES, key="week 1").responses == replies.responses
            assert ledger.tip.commits == 2
            assert ledger.verify().good

    def test_a_transaction_that_is_still_under_way_is_waited_for(
        self, postgres: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The server works on a commit whose client is gone: looking too early would be wrong."""
        slow = psycopg.connect(postgres)

        def lost(statements: Statements, change: Any, lines: Sequence[bytes], *after: Any) -> Any:
            monkeypatch.setattr(backend, "commit", commit)
            slow.execute("LOCK TABLE commits IN SHARE ROW EXCLUSIVE MODE")
            Statements(slow).run(*writing._calls(change, lines, *after))
            threading.Timer(0.3, slow.commit).start()
            statements.raw.close()
            raise psycopg.OperationalError("the connection is lost")

        with created(postgres) as ledger:
            monkeypatch.setattr(backend, "commit", lost)
            ledger.ask(QUERY, VALUES, key="week 1")
            assert ledger.tip.commits == 2
            assert len(recorded(postgres)) == 20
        slow.close()

    def test_a_server_that_lost_what_it_had_confirmed_is_not_written_to(
        self, server: Server, killed: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = created(killed)
        ledger.ask(QUERY, VALUES, key="week 1")
        with psycopg.connect(killed, autocommit=True) as admin:
            admin.execute("ALTER TABLE commits DISABLE TRIGGER ALL")
            admin.execute("DELETE FROM commits WHERE number = 2")
        server.kill()
        server.start()
        for _ in range(2):
            with pytest.raises(Behind, match="without what it had confirmed"):
                ledger.ask(QUERY, VALUES, key="week 2")

    def test_a_server_that_stays_away_stops_the_ledger(
        self, server: Server, killed: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "_PATIENCE", 0.2)
        ledger = created(killed)
        server.kill()
        try:
            with pytest.raises(Broken, match="the connection to the ledger was lost"):
                ledger.ask(QUERY, VALUES, key="week 1")
        finally:
            server.start()
        with xp.Ledger(killed) as again:
            assert again.ask(QUERY, VALUES, key="week 1").answered.all()


def test_nobody_sees_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://zoe:geheim@127.0.0.1:1/study?sslmode=disable"
    with pytest.raises(InvalidInput) as raised:
        xp.Ledger(url)
    assert str(raised.value).startswith("postgresql://127.0.0.1:1/study: cannot be opened: ")
    assert "geheim" not in str(raised.value)
    assert "zoe" not in str(raised.value)
    with pytest.raises(InvalidInput, match="is not the URL of a database"):
        xp.Ledger("postgresql://[/study")


def test_a_checkpoint_belongs_to_where_the_tables_are(state: Path) -> None:
    one = urls.checkpoint_of("postgresql://ann:x@host/study")
    assert one == urls.checkpoint_of("postgres://bob@host/study?sslmode=require")
    assert one.parent == state / "expost"
    others = [
        "postgresql://other/study",
        "postgresql://host/another",
        "postgresql://host:5433/study",
        "postgresql://host/study?options=-csearch_path%3Dother",
    ]
    assert len({one, *map(urls.checkpoint_of, others)}) == 5


def test_a_user_without_a_writable_home_is_asked_for_a_checkpoint_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    advice = r"checkpoint: .*set XDG_STATE_HOME to a writable folder, or name a checkpoint file"
    monkeypatch.setenv("HOME", os.devnull)
    with pytest.raises(InvalidInput, match=advice):
        xp.Ledger("postgresql://host/study")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)  # no such user
    with pytest.raises(InvalidInput, match=advice):
        xp.Ledger("postgresql://host/study")


def test_without_the_driver_the_extra_is_named() -> None:
    program = """
import expost as xp
try:
    xp.Ledger("postgresql://127.0.0.1:1/study")
except xp.errors.InvalidInput as error:
    print(error)
"""
    done = run_without(["psycopg"], program)
    assert "pip install 'expost[postgres]'" in done.stdout, done.stderr


def test_a_statement_that_the_server_has_forgotten_is_prepared_again(postgres: str) -> None:
    with created(postgres) as ledger:
        for week in range(8):
            ledger.ask(QUERY, VALUES[:1], [NAMES[week]])
        # Behind the driver's back, as a failure in the middle of a pipeline may.
        raw = ledger._core.backend._connection.raw  # type: ignore[attr-defined]
        raw.pgconn.exec_(b"DEALLOCATE ALL")
        assert ledger.ask(QUERY, VALUES[:1], [NAMES[8]]).answered.all()
        raw.pgconn.exec_(b"DEALLOCATE ALL")
        assert ledger.status().exchanges.tolist() == [1] * 9 + [0] * 11
        assert ledger.verify().good


def test_no_table_is_read_from_end_to_end_for_a_request(postgres: str) -> None:
    """Plans are made when tables are empty, and must still do when they are not."""
    with created(postgres) as ledger:
        for week in range(30):
            ledger.ask(QUERY, VALUES, key=f"week {week}")
        ledger.reserve(QUERY, NAMES[:3])
        ledger.ask(QUERY, VALUES, key="week 3")
    tables = ("commits", "subjects", "keys", "requests", "reservations", "heads")
    with psycopg.connect(postgres, autocommit=True) as raw:
        read: dict[str, int] = {}
        for _ in range(100):  # until the server has counted what the other connection did
            rows = raw.execute(
                "SELECT relname, seq_tup_read, n_tup_ins FROM pg_stat_user_tables"
                " WHERE schemaname = current_schema()"
            ).fetchall()
            if any(name == "requests" and added for name, _, added in rows):
                read = {name: count for name, count, _ in rows}
                break
            time.sleep(0.05)
    assert {name: read[name] for name in tables} == dict.fromkeys(tables, 0)


def test_a_request_is_two_exchanges_with_the_server_and_the_next_one_of_the_same_is_one(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is, and a commit; of who answered lately that is known."""
    waits = 0

    def counted(generator: Any, *options: Any) -> Any:
        nonlocal waits
        waits += 1
        return wait(generator, *options)

    with created(postgres) as ledger:
        ledger.ask(QUERY, VALUES, NAMES, key="week 1")
        ledger.register(["somebody else"])
        raw = ledger._core.backend._connection.raw  # type: ignore[attr-defined]
        wait = raw.wait
        monkeypatch.setattr(raw, "wait", counted)
        ledger.ask(QUERY, VALUES, NAMES, key="week 2")
        assert waits == 2
        ledger.ask(QUERY, VALUES, NAMES, key="week 3")
        assert waits == 3
        assert ledger.verify().good


KINDS = {
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "boolean": st.booleans(),
    "bytea": st.binary(max_size=5),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(*KINDS.values()), min_size=1, max_size=40))
def test_the_server_reads_what_was_packed(postgres_server: str, rows: list[Any]) -> None:
    columns = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(KINDS, 1))
    with psycopg.connect(postgres_server) as raw:
        statement = f"SELECT * FROM unnest({columns})"
        (found,) = Statements(raw).run((statement, packed(KINDS, zip(*rows, strict=True))))
    assert found == rows


class TestStatements:
    def test_the_first_error_is_told_and_nothing_after_it_is_done(self, postgres: str) -> None:
        with psycopg.connect(postgres, autocommit=True) as raw:
            raw.execute("CREATE TABLE here(number bigint)")
            statements = Statements(raw)
            insert: Call = (
                "INSERT INTO here SELECT unnest($1::bigint[])",
                packed(["bigint"], [[1]]),
            )
            with pytest.raises(psycopg.errors.DivisionByZero):
                statements.run(insert, ("SELECT 1 / 0", ()), ("SELECT 'after'", ()))
            assert statements.run(("SELECT count(*) FROM here", ())) == [[(0,)]]
            assert not raw.closed

    def test_what_is_larger_than_any_buffer_is_sent(self, postgres: str) -> None:
        with psycopg.connect(postgres, autocommit=True) as raw:
            large = bytes(range(256)) * 50_000
            echo: Call = ("SELECT $1::bytea", [large])
            assert Statements(raw).run(echo, ("SELECT length($1::bytea)", [large])) == [
                [(large,)],
                [(len(large),)],
            ]

    @pytest.mark.parametrize("statement", ["SELECT 1", "SELECT 2"])
    def test_a_connection_that_is_lost_is_closed(
        self, server: Server, killed: str, statement: str
    ) -> None:
        with psycopg.connect(killed, autocommit=True) as raw:
            statements = Statements(raw)
            statements.run(("SELECT 1", ()))
            server.kill()
            server.start()
            for _ in range(2):
                with pytest.raises(psycopg.OperationalError):
                    statements.run((statement, ()))
                assert raw.closed

    def test_whoever_is_interrupted_has_no_half_read_connection(
        self, postgres: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(generator: Any, *_: Any) -> Any:
            raise KeyboardInterrupt

        with created(postgres) as ledger:
            ledger.ask(QUERY, VALUES, key="week 1")
            ledger.register(["somebody else"])  # after which everybody is looked up again
            raw = ledger._core.backend._connection.raw  # type: ignore[attr-defined]
            monkeypatch.setattr(raw, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.ask(QUERY, VALUES, NAMES, key="week 2")
            assert raw.closed
            assert ledger.ask(QUERY, VALUES, NAMES, key="week 2").answered.all()
            assert ledger.verify().good
