"""A rollback is noticed, whoever it concerns is closed, and weak settings are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.ledger import (
    Behind,
    Broken,
    CheckpointFile,
    Damaged,
    Ledger,
    connecting,
    schema,
    settings,
)
from expost.ledger.checkpoint import Checkpoint

SMOKES = xp.FiniteSet(["no", "yes"])
GUARD = xp.BayesianFilter(epsilon=1)
QUERY = xp.randomized_response(epsilon="1/4")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "study.db"
    with Ledger.create(path, SMOKES, filter=GUARD, every=1) as ledger:
        ledger.register(["ann", "bob", "carl"])
        ledger.ask(QUERY, ["no"] * 3)
    return path


def asked(place: Path, *names: str, every: int = 1) -> None:
    with Ledger(place, every=every) as ledger:
        ledger.ask(QUERY, ["no"] * len(names), list(names))


def test_an_older_copy_is_refused_and_recovered(place: Path, tmp_path: Path) -> None:
    shutil.copy(place, tmp_path / "backup")
    asked(place, "ann", "bob")
    shutil.copy(tmp_path / "backup", place)
    with pytest.raises(Behind, match=r"has 2 commits, and there were 3: it is an older copy"):
        Ledger(place)
    assert Ledger.recover(place) == ["ann", "bob"]
    with Ledger(place) as ledger:
        assert ledger.status().closed.tolist() == [True, True, False]
        assert ledger.ask(QUERY, ["no"] * 3).answered.tolist() == [False, False, True]
        assert ledger.verify().good
        assert ledger.audit().closed == ("ann", "bob")


def test_a_fork_is_refused_and_recovered(place: Path, tmp_path: Path) -> None:
    backup = [shutil.copy(place, tmp_path / "backup"), tmp_path / "old"]
    shutil.copy(tmp_path / "study.db.checkpoint", tmp_path / "old")
    asked(place, "ann")
    newer = (tmp_path / "study.db.checkpoint").read_bytes()
    shutil.copy(backup[0], place)
    shutil.copy(backup[1], tmp_path / "study.db.checkpoint")
    # Somebody goes on from the older copy, for longer than the newer one went.
    for _ in range(2):
        asked(place, "bob")
    (tmp_path / "study.db.checkpoint").write_bytes(newer)
    with pytest.raises(Behind, match="another one since commit 3 or before"):
        Ledger(place)
    assert Ledger.recover(place) == ["ann"]
    with Ledger(place) as ledger:
        assert ledger.verify().good


@pytest.mark.parametrize("lost", ["reservation", "closing"])
def test_who_was_reserved_or_closed_since_is_concerned(
    place: Path, tmp_path: Path, lost: str
) -> None:
    shutil.copy(place, tmp_path / "backup")
    with Ledger(place) as ledger:
        if lost == "reservation":
            ledger.reserve(QUERY, ["bob"])
        else:
            ledger.record(xp.randomized_response(epsilon=2), ["no"], ["bob"])
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["bob"]


def test_a_reservation_that_is_still_there_concerns_nobody(place: Path, tmp_path: Path) -> None:
    with Ledger(place) as ledger:
        ledger.reserve(QUERY, ["bob"])
    shutil.copy(place, tmp_path / "backup")
    asked(place, "ann")
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann"]


def test_a_closing_is_missed_also_where_its_reservation_is_still_there(
    place: Path, tmp_path: Path
) -> None:
    with Ledger(place) as ledger:
        (given,) = ledger.reserve(QUERY, ["bob"])
        assert given is not None
    shutil.copy(place, tmp_path / "backup")
    tree = {
        "ledger": given.ledger, "subject": "bob", "sequence": 9, "key": given.key,
        "query": QUERY.content_id, "response": "no", "head": "0" * 64,
    }  # fmt: skip
    with Ledger(place) as ledger:
        (receipt,) = ledger.receive([json.dumps(tree)])
        assert receipt.outcome == "kept"
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["bob"]


def test_the_window_is_as_many_commits_as_was_said(place: Path, tmp_path: Path) -> None:
    """Within it a rollback is not noticed; that is what the setting says."""
    copies = []
    ledger = Ledger(place, every=4)
    for turn in range(6):
        ledger.ask(QUERY, ["no"], ["ann"], key=str(turn))
        copy = tmp_path / f"copy{turn}"
        for end in ("", "-wal"):
            shutil.copy(f"{place}{end}", f"{copy}{end}")
        copies.append(copy)
    shutil.copy(tmp_path / "study.db.checkpoint", tmp_path / "kept")
    noticed = []
    for copy in copies:
        shutil.copy(tmp_path / "kept", tmp_path / "other")
        try:
            Ledger(copy, checkpoint=tmp_path / "other").close()
            noticed.append(False)
        except Behind:
            noticed.append(True)
    ledger.close()
    assert noticed == [True, True, True, False, False, False]


def test_what_a_crash_left_uncovered_is_covered_when_it_is_opened(
    place: Path, tmp_path: Path
) -> None:
    shutil.copy(place, tmp_path / "backup")
    ledger = Ledger(place, every=100)
    ledger.ask(QUERY, ["no"], ["carl"])
    ledger._core.backend.close()  # as if it were killed: no checkpoint was written
    asked(place, "ann")
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann", "carl"]


def test_who_was_registered_since_does_not_come_back_with_a_new_budget(
    place: Path, tmp_path: Path
) -> None:
    shutil.copy(place, tmp_path / "backup")
    with Ledger(place) as ledger:
        ledger.register(["dora", "eve"])
    asked(place, "eve")
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["eve"]
    with Ledger(place) as ledger:
        assert ledger.register(["dora", "eve"]) == 1
        assert ledger.subjects == ("ann", "bob", "carl", "eve", "dora")
        status = ledger.status(["eve", "dora"])
        assert status.closed.tolist() == [True, False]
        assert ledger.verify().good


def test_who_was_registered_is_known_also_if_that_process_is_killed(
    place: Path, tmp_path: Path
) -> None:
    shutil.copy(place, tmp_path / "backup")
    with Ledger(place, every=1) as other:
        killed = Ledger(place, every=64)
        killed.register(["eve"])
        killed._core.backend.close()
        other.ask(QUERY, ["no"], ["eve"])
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["eve"]
    with Ledger(place) as ledger:
        assert ledger.register(["eve"]) == 0
        assert ledger.status(["eve"]).closed.all()


def test_a_checkpoint_that_names_nobody_does_not_help_to_recover(
    place: Path, tmp_path: Path
) -> None:
    shutil.copy(place, tmp_path / "backup")
    asked(place, "ann")
    kept = tmp_path / "study.db.checkpoint"
    kept.write_bytes(kept.read_bytes().splitlines(keepends=True)[-1])
    shutil.copy(tmp_path / "backup", place)
    with pytest.raises(xp.InvalidInput, match="not say whom 2 of 3 commits concern, such as num"):
        Ledger.recover(place)
    with pytest.raises(xp.InvalidInput, match="does not say who subject number 1 is"):
        Ledger.recover(place, everybody=True)


def test_a_recovery_can_be_repeated(place: Path, tmp_path: Path) -> None:
    """A crash before the checkpoint starts again leaves it behind, and those are closed already."""
    shutil.copy(place, tmp_path / "backup")
    asked(place, "ann")
    newer = (tmp_path / "study.db.checkpoint").read_bytes()
    asked(place, "bob")
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann", "bob"]
    (tmp_path / "study.db.checkpoint").write_bytes(newer)
    with pytest.raises(Behind):
        Ledger(place)
    assert Ledger.recover(place) == []
    with Ledger(place) as ledger:
        assert ledger.status().closed.tolist() == [True, True, False]
    # And from here on a rollback is noticed as before.
    shutil.copy(place, tmp_path / "backup")
    asked(place, "carl")
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["carl"]


def test_a_checkpoint_that_is_missing_is_noticed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "study.db.checkpoint").unlink()
    with pytest.raises(Behind, match="the checkpoint of the ledger is missing"):
        Ledger(place)
    for kept in (None, tmp_path / "nowhere"):
        with pytest.raises(xp.InvalidInput, match="no checkpoint, so nobody would be closed"):
            Ledger.recover(place, checkpoint=kept)
    assert Ledger.recover(place, lost=True) == []
    Ledger(place).close()


def test_the_checkpoint_of_another_ledger_is_refused(place: Path, tmp_path: Path) -> None:
    other, kept = tmp_path / "other.db.checkpoint", tmp_path / "study.db.checkpoint"
    Ledger.create(tmp_path / "other.db", SMOKES, filter=GUARD).close()
    shutil.copy(other, kept)
    for call in (Ledger, Ledger.recover):
        with pytest.raises(xp.InvalidInput, match="is the checkpoint of another ledger"):
            call(place)
    assert kept.read_bytes() == other.read_bytes()


def test_a_line_that_was_cut_off_does_not_count(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.db.checkpoint"
    before = file.read_bytes()
    asked(place, "ann")
    whole = file.read_bytes()
    last = Checkpoint(CheckpointFile(file), "", 1)
    for end in range(len(before), len(whole)):
        file.write_bytes(whole[:end])
        tree = last.reached().places
        assert tree[1][0] == 1 + (end == len(whole) - 1)  # only the line feed is not needed
    file.write_bytes(whole[:-30])
    asked(place, "bob")
    assert last.reached().places[1][0] == last.reached().places[2][0] == 2


def test_a_long_checkpoint_is_made_shorter(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.ledger.checkpoint._GROWTH", 2_000)
    file = tmp_path / "study.db.checkpoint"
    shutil.copy(place, tmp_path / "backup")
    with Ledger(place, every=1) as ledger:
        for turn in range(40):
            ledger.ask(QUERY, ["no"], [("ann", "bob")[turn % 2]])
        assert file.stat().st_size < 4_000
        assert len(list(tmp_path.iterdir())) < 8  # nothing is left behind
    Ledger(place).close()
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann", "bob"]


def test_a_checkpoint_of_many_subjects_is_not_written_anew_by_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.ledger.checkpoint._GROWTH", 2_000)
    place, file = tmp_path / "many.db", tmp_path / "many.db.checkpoint"
    with Ledger.create(place, SMOKES, filter=GUARD, every=1) as ledger:
        ledger.register(range(300))
        ledger.ask(QUERY, ["no"] * 300)
    before = file.read_bytes()
    assert len(before) > 4_000
    with Ledger(place, every=1) as ledger:
        ledger.ask(QUERY, ["no"], [7])
    assert file.read_bytes().startswith(before)


def test_a_checkpoint_that_cannot_be_written_stops_the_ledger(place: Path) -> None:
    ledger = Ledger(place, every=1)

    def full(lines: bytes) -> int:
        raise Broken("the disk is full")

    ledger._core.checkpoint.place.append = full  # type: ignore[method-assign]
    with pytest.raises(Broken, match="the disk is full"):
        ledger.ask(QUERY, ["no"], ["ann"], key="k")
    with pytest.raises(Broken, match="an earlier write failed; open the ledger again"):
        ledger.ask(QUERY, ["no"], ["bob"])
    ledger._core.backend.close()
    with Ledger(place) as again:
        assert again.ask(QUERY, ["no"], ["ann"], key="k").answered.all()
        assert again.status().exchanges.tolist() == [2, 1, 1]


def test_another_journal_mode_is_refused(place: Path) -> None:
    connection = apsw.Connection(str(place))
    connection.pragma("journal_mode", "delete")
    connection.close()
    with pytest.raises(xp.InvalidInput, match=r"journal mode is 'delete'.*PRAGMA journal_mode=wal"):
        Ledger(place)


@pytest.mark.parametrize("name", settings.REQUIRED)
def test_a_setting_that_does_not_read_back_is_refused(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = settings.REQUIRED[name]._replace(good=("never",))
    monkeypatch.setitem(settings.REQUIRED, name, weak)
    with pytest.raises(xp.InvalidInput, match=f"PRAGMA {name} is .* and cannot be set to"):
        Ledger(place)


def test_a_sqlite_with_a_known_bug_is_refused() -> None:
    for version in ("3.7.0", "3.40.1", "3.51.2"):
        with pytest.raises(xp.InvalidInput, match="can lose commits"):
            settings.check_version(version)
    for version in ("3.51.3", "3.54.1", "4.0.0"):
        settings.check_version(version)


def test_a_newer_schema_is_refused_and_an_older_one_brought_up(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (*schema.MIGRATIONS, "CREATE TABLE notes(number INTEGER PRIMARY KEY) STRICT;")
    monkeypatch.setattr(connecting, "MIGRATIONS", steps)
    Ledger(place).close()
    connection = apsw.Connection(str(place))
    assert connection.pragma("user_version") == 2
    assert list(connection.execute("SELECT * FROM notes")) == []
    connection.close()
    monkeypatch.undo()
    with pytest.raises(xp.InvalidInput, match="has schema version 2, and this expost knows 1"):
        Ledger(place)


@pytest.fixture
def rows(place: Path) -> Iterator[Any]:
    connection = apsw.Connection(str(place))
    yield connection
    connection.close()


def test_what_is_recorded_is_neither_changed_nor_removed(rows: Any) -> None:
    tables = [name for (name,) in rows.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
    assert len(tables) == 12
    with_rows = [name for name in tables if rows.execute(f"SELECT 1 FROM {name}").fetchall()]
    assert {"policy", "commits", "subjects", "requests", "heads", "keys"} <= set(with_rows)
    for name in with_rows:
        column = rows.execute(f"SELECT * FROM {name}").description[0][0]
        with pytest.raises(apsw.ConstraintError, match="never removed"):
            rows.execute(f"DELETE FROM {name}")
        said = "only move forward" if name == "heads" else "never changed"
        with pytest.raises(apsw.ConstraintError, match=said):
            rows.execute(f"UPDATE {name} SET {column} = {column} + 1")
    with pytest.raises(apsw.ConstraintError, match="only move forward"):
        rows.execute("UPDATE heads SET sequence = 0 WHERE sequence = 1")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE heads SET sequence = sequence + 1",
        "UPDATE heads SET tally = x'0100000009000000'",
        "UPDATE heads SET digest = zeroblob(32)",
        "UPDATE heads SET closed = 1",
        "UPDATE heads SET reserved = 'k'",
        "UPDATE heads SET last = 9",
        "DELETE FROM heads",
    ],
)
def test_a_head_that_is_damaged_is_not_decided_on(place: Path, rows: Any, change: str) -> None:
    rows.execute("DROP TRIGGER heads_stay; DROP TRIGGER heads_move_forward")
    rows.execute(change)
    rows.close()
    with Ledger(place) as ledger:
        for call in (
            lambda: ledger.ask(QUERY, ["no"], ["ann"]),
            lambda: ledger.decide(QUERY),
            lambda: ledger.status(),
            lambda: ledger.transcript("ann"),
        ):
            with pytest.raises(Damaged):
                call()
        assert not ledger.verify().good


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("subjects", "UPDATE subjects SET name = '\"anna\"' WHERE number = 1"),
        ("responses", "UPDATE responses SET response = '\"NO\"' WHERE number = 1"),
        ("queries", "UPDATE queries SET document = replace(document, '0.25', '0.125')"),
        ("policy", "UPDATE policy SET document = replace(document, '\"1\"', '\"2\"')"),
    ],
)
def test_a_word_that_is_damaged_is_noticed(place: Path, rows: Any, table: str, change: str) -> None:
    rows.execute(f"DROP TRIGGER {table}_last")
    rows.execute(change)
    rows.close()
    with pytest.raises(Damaged), Ledger(place) as ledger:
        ledger.status()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE requests SET sequence = 0",
        "UPDATE requests SET response = -1",
        "UPDATE requests SET response = 9",
        "UPDATE requests SET query = 9",
    ],
)
def test_a_request_that_cannot_have_been_recorded_is_not_repeated(
    place: Path, rows: Any, change: str
) -> None:
    with Ledger(place) as ledger:
        ledger.ask(QUERY, ["no"] * 3, key="again")
    rows.execute("DROP TRIGGER requests_last")
    rows.execute(change)
    rows.close()
    with Ledger(place) as ledger, pytest.raises(Damaged, match="what became of a request"):
        ledger.ask(QUERY, ["no"] * 3, key="again")


def test_a_response_that_became_another_one_is_not_released(place: Path, rows: Any) -> None:
    """Also if it is one of the same query, which nothing in its row tells."""
    with Ledger(place) as ledger:
        ledger.record(QUERY, ["no", "yes", "no"], key="again")
        ledger.record(QUERY, ["no"] * 3, key="later")
    rows.execute("DROP TRIGGER requests_last")
    rows.execute("UPDATE requests SET response = 3 - response WHERE made = 3 AND subject = 2")
    rows.close()
    with Ledger(place) as ledger:
        for key in ("again", "later"):
            with pytest.raises(Damaged, match="the chain of subject number 2 is broken"):
                ledger.ask(QUERY, ["no"] * 3, key=key)
        for read in (ledger.answers, ledger.audit, lambda: ledger.export(place.with_name("x"))):
            with pytest.raises(Damaged, match="exchanges of subject number 2 are not its tally"):
                read()
        assert ledger.ask(QUERY, ["no"], ["ann"], key="again").responses == ("no",)


@pytest.mark.parametrize(
    "change",
    [
        # What somebody else answered, or what was answered to another question.
        "UPDATE requests SET subject = 4 WHERE key = 2 AND subject = 3",
        "UPDATE requests SET key = 3 WHERE key = 2 AND subject = 3",
        "INSERT INTO requests SELECT 3, subject, query, sequence, response, previous, made"
        " FROM requests WHERE key = 2 AND subject = 3",
        "INSERT INTO requests VALUES (3, 3, 1, 7, 0, 0, 3)",
        "UPDATE reservations SET sequence = 8",
    ],
)
def test_what_was_recorded_elsewhere_is_not_released(place: Path, rows: Any, change: str) -> None:
    with Ledger(place) as ledger:
        ledger.register(["dora"])
        ledger.record(QUERY, ["no"] * 3, ["ann", "bob", "carl"], key="again")
        ledger.record(QUERY, ["no"] * 2, ["ann", "dora"], key="other")
        ledger.reserve(QUERY, ["ann"], key="reserved")
    for table in ("requests", "reservations"):
        rows.execute(f"DROP TRIGGER {table}_last")
    rows.execute(change)
    rows.close()
    with Ledger(place) as ledger:
        calls: list[Callable[[], Any]] = [
            lambda: ledger.ask(QUERY, ["no"], ["dora"], key="again"),
            lambda: ledger.ask(QUERY, ["no"], ["carl"], key="other"),
            lambda: ledger.reserve(QUERY, ["ann"], key="reserved"),
        ]
        refused = 0
        for call in calls:
            try:
                call()
            except Damaged:
                refused += 1
        assert refused
        assert not ledger.verify().good
