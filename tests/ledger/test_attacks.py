"""Attacks on a ledger, carried out: no subject ever has a second budget.

A restored or changed database is noticed, or `expost ledger verify` exits with 1.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.ledger import (
    Ledger,
    LedgerBehind,
    LedgerBroken,
    LedgerDamaged,
    LedgerLocked,
    LedgerStopped,
)
from expost.ledger.tables import TABLES, StateRow
from expost.sampling import InsecureSource
from support.scripted_devices import (
    HALF,
    OTHER,
    QUARTER,
    SMOKES,
    ScriptedDevice,
    a_ledger,
    reserved,
    restore,
)

Run = Callable[..., tuple[int, str, str]]

WHOLE = xp.randomized_response(epsilon=1)
"""A query that takes a whole budget."""
STOPPED = (LedgerStopped, xp.InvalidInput)


def place_of(folder: Path) -> Path:
    return folder / "study.db"


def put_back(folder: Path) -> None:
    """Restore the file ``backup.db`` and recover."""
    restore(folder / "backup.db", place_of(folder))
    with pytest.raises(LedgerBehind):
        Ledger(place_of(folder))
    Ledger.recover(place_of(folder))


class TestFlippedBits:
    """One bit of a database or of its log is flipped."""

    NAMES = tuple(f"subject {number}" for number in range(40))

    @pytest.mark.parametrize("seed", range(4))
    def test_a_flipped_bit_in_the_names_registers_no_one_again(
        self, tmp_path: Path, seed: int
    ) -> None:
        """Fifty flips for each seed, all of them in bytes of names."""
        place, chance = place_of(tmp_path), random.Random(seed)
        with a_ledger(tmp_path) as ledger:
            ledger.register(self.NAMES, kind="simulated")
            ledger.ask(WHOLE, ["no"] * len(self.NAMES), key="spent")
        content, lines = place.read_bytes(), Path(f"{place}.checkpoint").read_bytes()
        bytes_of_names = [
            start + offset
            for name in self.NAMES
            for start in _occurrences(content, json.dumps(name).encode())
            for offset in range(len(name) + 2)
        ]
        original, flips, noticed = rows_of(place), 0, 0
        while flips < 50:
            changed = bytearray(content)
            changed[chance.choice(bytes_of_names)] ^= 1 << chance.randrange(8)
            restore_bytes(place, changed, lines)
            if rows_of(place) == original:
                continue  # an old copy of a row, in the free space of a page
            flips += 1
            try:
                with Ledger(place) as ledger:
                    assert ledger.register(self.NAMES, kind="simulated") == 0
                    assert len(ledger) == len(self.NAMES)
                    assert not ledger.decide(WHOLE).accepted.any()
                    found = ledger.verify()
                    noticed += not found.good
            except STOPPED:
                noticed += 1
        assert noticed == 50

    @pytest.mark.parametrize("seed", range(3))
    def test_a_flipped_bit_anywhere_takes_nothing_back(self, tmp_path: Path, seed: int) -> None:
        place, chance = place_of(tmp_path), random.Random(seed)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann", "bob", 3], kind="simulated")
            released = {
                key: ledger.ask(query, ["no", "yes", "no"], key=key).responses
                for key, query in (("one", QUARTER), ("two", HALF), ("three", WHOLE))
            }
        content, lines = place.read_bytes(), Path(f"{place}.checkpoint").read_bytes()
        used = [position for position, byte in enumerate(content) if byte]
        stopped = 0
        for _ in range(40):
            changed = bytearray(content)
            changed[chance.choice(used)] ^= 1 << chance.randrange(8)
            restore_bytes(place, changed, lines)
            try:
                with Ledger(place) as ledger:
                    good = ledger.verify().good
                    stopped += not good
                    for key, query in (("one", QUARTER), ("two", HALF), ("three", WHOLE)):
                        again = ledger.ask(query, ["no", "yes", "no"], key=key)
                        assert again.responses == released[key] or not good
                    assert not ledger.decide(WHOLE).accepted.any() or not good
            except STOPPED:
                stopped += 1
        assert stopped

    def test_a_kill_and_a_flipped_bit_in_the_log_take_back_nothing_unnoticed(
        self, tmp_path: Path
    ) -> None:
        killed, place = tmp_path / "killed", place_of(tmp_path)
        killed.mkdir()
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"], kind="simulated")
            ledger.ask(HALF, ["no"], key="one")
            ledger.ask(HALF, ["no"], key="two")
            for suffix in ("", "-wal", ".checkpoint", ".checkpoint.key"):
                shutil.copyfile(f"{place}{suffix}", killed / f"study.db{suffix}")
            released = ledger.transcript("ann")
        chance, stopped = random.Random(1), 0
        files = {file.name: file.read_bytes() for file in killed.iterdir()}
        log = files["study.db-wal"]
        assert len(log) > 10_000
        for _ in range(100):
            changed = bytearray(log)
            changed[chance.randrange(len(log))] ^= 1 << chance.randrange(8)
            for file in killed.iterdir():
                file.unlink()
            for name, content in {**files, "study.db-wal": bytes(changed)}.items():
                (killed / name).write_bytes(content)
            try:
                with Ledger(place_of(killed)) as ledger:
                    assert ledger.transcript("ann") == released
            except STOPPED:
                stopped += 1
        assert stopped > 50


def _occurrences(content: bytes, part: bytes) -> Iterator[int]:
    start = content.find(part)
    while start >= 0:
        yield start
        start = content.find(part, start + 1)


def rows_of(place: Path) -> list[tuple[Any, ...]] | None:
    """Return all rows of a database; None if it cannot be read."""
    connection = apsw.Connection(str(place))
    try:
        return [
            row
            for table in TABLES.values()
            for row in connection.execute(f"SELECT * FROM {table.name}")
        ]
    except (apsw.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close(True)


def restore_bytes(place: Path, content: bytes | bytearray, checkpoint: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{place}{suffix}").unlink(missing_ok=True)
    place.write_bytes(content)
    Path(f"{place}.checkpoint").write_bytes(checkpoint)


class TestTwoDatabases:
    """Two databases under one checkpoint: only one of them can be written."""

    def test_a_backup_moved_under_a_running_worker_stops_it(self, tmp_path: Path) -> None:
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as worker:
            worker.register(["ann"])
            worker.backup(tmp_path / "backup.db")
            os.replace(tmp_path / "backup.db", place)
            with pytest.raises(LedgerBroken, match="was replaced by another file"):
                worker.reserve(WHOLE, key="k")
            with pytest.raises(LedgerLocked):
                Ledger(place).reserve(WHOLE, key="k")
        with Ledger(place) as ledger:
            assert reserved(ledger, WHOLE, key="k") == ["reserved"]
            assert ledger.verify().good

    def test_a_worker_whose_database_was_moved_away_stops(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as worker:
            worker.register(["ann"])
            os.rename(place_of(tmp_path), tmp_path / "moved.db")
            with pytest.raises(LedgerBroken, match="the ledger is no longer at"):
                worker.reserve(WHOLE, key="k")

    def test_a_database_with_a_second_name_is_not_written(self, tmp_path: Path) -> None:
        place, second = place_of(tmp_path), tmp_path / "second.db"
        with a_ledger(tmp_path) as worker:
            worker.register(["ann"])
            os.link(place, second)
            with pytest.raises(LedgerBroken, match="has 2 names"):
                worker.reserve(WHOLE, key="k")
        for name in (place, second):
            with (
                Ledger(name, checkpoint=f"{place}.checkpoint") as ledger,
                pytest.raises(LedgerBroken, match="has 2 names"),
            ):
                ledger.reserve(WHOLE, key="k")
        second.unlink()
        with Ledger(place) as ledger:
            assert reserved(ledger, WHOLE, key="k") == ["reserved"]

    def test_a_copy_is_locked_out_and_then_behind(self, tmp_path: Path) -> None:
        """The same key, on two databases that were the same a moment ago."""
        place, copy = place_of(tmp_path), tmp_path / "copy.db"
        with a_ledger(tmp_path) as worker:
            worker.register(["ann"])
            phone = ScriptedDevice(worker)
            worker.backup(copy)
            with (
                Ledger(copy, checkpoint=f"{place}.checkpoint") as other,
                pytest.raises(LedgerLocked, match="another process is writing"),
            ):
                other.reserve(WHOLE, key="k")
            worker.reserve(WHOLE, key="k")
            phone.send(worker, WHOLE)
        with pytest.raises(LedgerBehind, match="an older copy"):
            Ledger(copy, checkpoint=f"{place}.checkpoint")

    def test_a_copy_that_was_open_before_cannot_write_afterwards(self, tmp_path: Path) -> None:
        place, copy = place_of(tmp_path), tmp_path / "copy.db"
        with a_ledger(tmp_path) as worker:
            worker.register(["ann"])
            worker.backup(copy)
            other = Ledger(copy, checkpoint=f"{place}.checkpoint")
            worker.reserve(WHOLE, key="k")
        with other, pytest.raises(LedgerBehind, match="an older copy"):
            other.reserve(WHOLE, key="k")

    def test_a_copied_schema_is_locked_out_and_then_behind(
        self, postgres: str, tmp_path: Path
    ) -> None:
        psycopg = pytest.importorskip("psycopg")
        from support.postgres_server import fresh

        checkpoint = tmp_path / "checkpoint"
        guard = xp.BayesianFilter(epsilon=1)
        with (
            fresh(postgres) as second,
            Ledger.create(postgres, SMOKES, filter=guard, checkpoint=checkpoint) as worker,
        ):
            worker.register(["ann"])
            names = [_schema(psycopg, dsn) for dsn in (postgres, second)]
            with psycopg.connect(postgres, autocommit=True) as connection:
                for table in ("study", *(each.name for each in TABLES.values())):
                    old, new = (f'"{name}".{table}' for name in names)
                    connection.execute(f"CREATE TABLE {new} (LIKE {old} INCLUDING ALL)")
                    connection.execute(f"INSERT INTO {new} SELECT * FROM {old}")
            with Ledger(second, checkpoint=checkpoint) as other, pytest.raises(LedgerLocked):
                other.reserve(WHOLE, key="k")
            assert reserved(worker, WHOLE, key="k") == ["reserved"]
            with pytest.raises(LedgerBehind):
                Ledger(second, checkpoint=checkpoint)


def _schema(psycopg: Any, dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        return str(connection.execute("SELECT current_schema()").fetchone()[0])


class _NoDraws:
    """A source that must not be used."""

    def below(self, limit: int) -> int:
        raise AssertionError("the ledger used its source of randomness")

    def bytes(self, count: int) -> bytes:
        raise AssertionError("the ledger used its source of randomness")


class TestFailingServer:
    """A database server makes commits fail, to see one exchange drawn many times."""

    def test_a_ledger_of_devices_draws_nothing_whatever_fails(self, tmp_path: Path) -> None:
        a_ledger(tmp_path).close()
        phone: ScriptedDevice | None = None
        seen: set[str] = set()
        for attempt in range(5):
            with Ledger(place_of(tmp_path), source=_NoDraws()) as ledger:
                ledger.register(["ann"])
                phone = phone or ScriptedDevice(ledger)
                assert reserved(ledger, HALF, key="k") == ["reserved"]
                backend = ledger._engine.backend
                write = backend.commit

                def failing(commit: Any, write: Any = write) -> None:
                    seen.update(str(row) for row in _rows(commit))
                    raise LedgerBroken("the server says no")

                message = phone.sent[0] if attempt else phone.answer(ledger)
                backend.commit = failing  # type: ignore[method-assign]
                with pytest.raises(LedgerBroken, match="the server says no"):
                    ledger.receive([message])
        assert len({row.rpartition("commit=")[0] for row in seen if "ExchangeRow" in row}) == 1
        with Ledger(place_of(tmp_path)) as ledger:
            assert phone is not None
            assert ledger.receive(phone.sent)[0].outcome == "recorded"

    def test_a_simulation_whose_reservation_fails_draws_nothing(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"], kind="simulated")
        with Ledger(place_of(tmp_path), source=_NoDraws()) as ledger:

            def failing(commit: Any) -> None:
                raise LedgerBroken("the server says no")

            ledger._engine.backend.commit = failing  # type: ignore[method-assign]
            with pytest.raises(LedgerBroken, match="the server says no"):
                ledger.ask(HALF, ["no"], key="k")


def _rows(commit: Any) -> list[Any]:
    return [row for rows in commit.added.values() for row in rows]


class TestRows:
    """Somebody who can write to the database changes rows."""

    def test_two_rows_fused_into_one_are_found(self, tmp_path: Path, run: Run) -> None:
        """The line of one row is made to read like the lines of two."""
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann", "bob"])
            ledger.receive(
                [
                    ScriptedDevice(ledger, name).declined(_made_up(ledger, name))
                    for name in ("ann", "bob")
                ]
            )
            assert list(ledger.status().suspended) == [True, True]
        connection = apsw.Connection(str(place))
        _drop_triggers(connection)
        one, other = connection.execute(
            'SELECT subject, number, state, reason, "commit" FROM states ORDER BY subject'
        ).fetchall()
        fused = f'{one[3]}"]\n["states", "{other[0]}", {other[1]}, "{other[2]}", "{other[3]}'
        connection.execute("DELETE FROM states WHERE subject = ?", (other[0],))
        connection.execute("UPDATE states SET reason = ?", (fused,))
        connection.close()
        assert StateRow in TABLES
        code, out, _ = run("ledger", "verify", place)
        assert code == 1
        assert "commit 2 has another root" in out

    def test_a_reset_budget_is_found(self, tmp_path: Path, run: Run) -> None:
        """All rows of an exchange are removed, and the row of its subject is sealed again."""
        from expost.ledger.tables import SubjectRow, seal

        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            (fresh_row,) = ledger._engine.backend.scan(SubjectRow)
            ledger.reserve(WHOLE, key="k")
            ScriptedDevice(ledger).send(ledger, WHOLE)
        connection = apsw.Connection(str(place))
        _drop_triggers(connection)
        connection.execute("DELETE FROM exchanges; DELETE FROM requests")
        columns = ", ".join(f'"{name}" = ?' for name in SubjectRow._fields)
        assert fresh_row.seal == seal(fresh_row)
        connection.execute(f"UPDATE subjects SET {columns}", fresh_row)
        connection.close()
        assert run("ledger", "verify", place)[0] == 1

    def test_a_database_rewritten_as_a_whole_is_a_fork(self, tmp_path: Path) -> None:
        """Every root is right, but they are not those of the checkpoint."""
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ledger.backup(tmp_path / "backup.db")
            ledger.reserve(WHOLE, key="k")
            ScriptedDevice(ledger).send(ledger, WHOLE)
        checkpoint = Path(f"{place}.checkpoint")
        lines = checkpoint.read_bytes()
        restore(tmp_path / "backup.db", place)
        checkpoint.write_bytes(b"".join(lines.splitlines(keepends=True)[:2]))
        with Ledger(place) as ledger:  # the attacker writes as many commits as there were
            ledger.reserve(OTHER, key="other")
            ScriptedDevice(ledger).send(ledger, OTHER)
            assert ledger.verify().good
        checkpoint.write_bytes(lines)
        with pytest.raises(LedgerBehind, match="the database is a fork"):
            Ledger(place)


def _made_up(ledger: Ledger, name: str) -> dict[str, Any]:
    return {
        "ledger": ledger.policy.content_id, "subject": name, "sequence": 1, "previous": "0" * 64,
        "key": "k", "ticket": "0" * 64,
    }  # fmt: skip


def _drop_triggers(connection: apsw.Connection) -> None:
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")


class TestRollbacks:
    """A backup is restored, by accident or on purpose."""

    def test_a_subject_that_was_suspended_after_the_backup_stays_suspended(
        self, tmp_path: Path
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann", "bob"])
            ledger.backup(tmp_path / "backup.db")
            ledger.register(["eve"])
            for name in ("ann", "eve"):
                ledger.receive([ScriptedDevice(ledger, name).message(_made_up(ledger, name))])
        put_back(tmp_path)
        with Ledger(place_of(tmp_path)) as ledger:
            eve = ScriptedDevice(ledger, "eve")
            for name in ("ann", "bob", "eve"):  # eve's registration comes back with her device
                ScriptedDevice(ledger, name).sync(ledger)
            assert dict(zip(ledger.subjects, ledger.status().states, strict=True)) == {
                "ann": "suspended", "bob": "active", "eve": "suspended",
            }  # fmt: skip
            for name in ("ann", "eve"):
                with pytest.raises(xp.InvalidInput, match="a restored backup lost what it reveal"):
                    ledger.resolve([name])
                assert reserved(ledger, OTHER, [name]) == ["suspended"]
            assert eve.sync(ledger)["state"] == "suspended"
            assert ledger.register(["eve"]) == 0
            assert ledger.verify().good

    def test_a_resolved_subject_has_what_it_revealed_counted(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ledger.reserve(HALF, key="k")
            ann = ScriptedDevice(ledger)
            reservation = ann.reservation(ledger)
            ledger.receive([ann.message(reservation, head="0" * 64)])
            ledger.backup(tmp_path / "backup.db")
            ledger.resolve(["ann"])
            ann.sync(ledger)
        put_back(tmp_path)
        with Ledger(place_of(tmp_path)) as ledger:
            # The resolution is forgotten, and neither the suspension nor the extra is.
            assert ledger.status().states == ("suspended",)
            ledger.resolve(["ann"])
            ann.sync(ledger)
            assert ledger.status().states == ("active",)
            assert ledger.status().remaining[0] == pytest.approx(0.5)
            ledger.receive([ann.declined(reservation)])
            assert reserved(ledger, WHOLE, key="large") == ["refused"]
            assert ledger.verify().good

    def test_a_simulated_reservation_in_a_backup_is_not_drawn_twice(self, tmp_path: Path) -> None:
        """The backup is made after the reservation and before the answer."""
        steps: list[str] = []
        ledger = a_ledger(tmp_path)
        ledger.register(["ann"], kind="simulated")

        def step(name: str) -> None:
            steps.append(name)
            if steps.count("checkpointed") == 1 and name == "checkpointed":
                ledger._engine.backend.backup(tmp_path / "backup.db")

        ledger._engine._on_step = step
        first = ledger.ask(WHOLE, ["no"], key="k").responses
        ledger.close()
        assert first != (None,)
        put_back(tmp_path)
        with Ledger(place_of(tmp_path)) as ledger:
            for key in ("k", "other"):
                with pytest.raises(xp.InvalidInput, match=r"unconfirmed|has to be confirmed"):
                    ledger.ask(WHOLE, ["no"], key=key)
            assert len(ledger.transcript("ann")) == 0

    def test_a_kind_cannot_be_changed_by_registering_again(self, tmp_path: Path) -> None:
        """A simulated subject would not need the device that knows what was spent."""
        with a_ledger(tmp_path) as ledger:
            ledger.backup(tmp_path / "backup.db")
            ledger.register(["ann"])
            ledger.reserve(WHOLE, key="k")
            ann = ScriptedDevice(ledger)
            ann.send(ledger, WHOLE)
        put_back(tmp_path)
        with Ledger(place_of(tmp_path)) as ledger:
            for kind in ("simulated", "imported"):
                with pytest.raises(
                    xp.InvalidInput, match='"ann" was registered as device before a backup was'
                ):
                    ledger.register(["ann"], kind=kind)
            assert ledger.register(["ann"]) == 1
            assert reserved(ledger, WHOLE, key="again") == ["unconfirmed"]
            ann.catch_up(ledger)
            assert reserved(ledger, WHOLE, key="again") == ["refused"]
            assert ledger.verify().good

    def test_database_and_checkpoint_put_back_together_are_noticed_by_a_ticket(
        self, tmp_path: Path
    ) -> None:
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann", "bob"])
            ledger.backup(tmp_path / "backup.db")
            lines = Path(f"{place}.checkpoint").read_bytes()
            ledger.reserve(WHOLE, key="k")
            ann, bob = ScriptedDevice(ledger, "ann"), ScriptedDevice(ledger, "bob")
            ann.send(ledger, WHOLE)
        restore(tmp_path / "backup.db", place)
        Path(f"{place}.checkpoint").write_bytes(lines)
        with Ledger(place) as ledger:
            assert reserved(ledger, QUARTER, key="k") == ["reserved"] * 2
            answer = ann.catch_up(ledger)
            assert (answer["confirmed"], answer["reservation"]) == (1, None)
            assert ledger.audit().marks[0].startswith("rollback at commit")
            assert ledger.audit().two_outcomes == (("ann", "k"),)
            # Others may have lost something too, so all devices confirm.
            assert ledger.status(["bob"]).states == ("unconfirmed",)
            assert bob.sync(ledger)["state"] == "active"
            assert reserved(ledger, WHOLE, ["ann"], key="more") == ["refused"]
            assert ledger.verify().good

    def test_an_interrupted_recovery_is_repeated(self, tmp_path: Path) -> None:
        """The database has the recovery, and the checkpoint does not."""
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ledger.backup(tmp_path / "backup.db")
            ledger.register(["eve"], kind="imported")
            ledger.reserve(WHOLE, ["ann"], key="k")
            ann = ScriptedDevice(ledger)
            ann.send(ledger, WHOLE)
            ledger.receive([ann.message(_made_up(ledger, "ann"), OTHER)])
        for lost in range(3):
            restore(tmp_path / "backup.db", place)
            checkpoint = Path(f"{place}.checkpoint")
            lines = checkpoint.read_bytes()
            for _ in range(lost):
                Ledger.recover(place)
                checkpoint.write_bytes(lines)
                with pytest.raises(LedgerBehind):
                    Ledger(place)
            found = Ledger.recover(place)
            assert found.suspended == ("ann",)
            with Ledger(place) as ledger:
                assert ledger.status(["ann"]).states == ("suspended",)
                with pytest.raises(xp.InvalidInput, match="registered as imported"):
                    ledger.register(["eve"])
                assert ledger.verify().good
            checkpoint.write_bytes(lines)

    @pytest.mark.parametrize("line", [1, 2])
    def test_a_damaged_line_of_the_checkpoint_hides_nothing_from_a_recovery(
        self, tmp_path: Path, line: int
    ) -> None:
        place = place_of(tmp_path)
        with a_ledger(tmp_path) as ledger:
            ledger.backup(tmp_path / "backup.db")
            for name in ("ann", "bob", "carl", "dora", "eve"):
                ledger.register([name])
        checkpoint = Path(f"{place}.checkpoint")
        lines = checkpoint.read_bytes().splitlines(keepends=True)
        lines[line] = lines[line].replace(b"registered", b"suspended ")
        checkpoint.write_bytes(b"".join(lines))
        restore(tmp_path / "backup.db", place)
        with pytest.raises(LedgerDamaged, match=f"line {line + 1} of the checkpoint"):
            Ledger.recover(place)

    def test_a_stale_sync_gives_no_second_budget(self, tmp_path: Path) -> None:
        """An old request is sent again after a rollback, and confirms what the device is past."""
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ann = ScriptedDevice(ledger)
            stale = ann.request()
            ledger.backup(tmp_path / "backup.db")
            ledger.reserve(WHOLE, key="k")
            ann.send(ledger, WHOLE)
        put_back(tmp_path)
        with Ledger(place_of(tmp_path)) as ledger:
            ledger.sync([stale])
            ledger.reserve(WHOLE, key="again")
            answer = ann.sync(ledger)
            assert answer["reservation"] is None  # the device is at 1, and this would be number 1
            assert ann.catch_up(ledger)["confirmed"] == 1
            assert reserved(ledger, OTHER, key="more") == ["refused"]
            assert ledger.status().loss.upper[0] == pytest.approx(1)
            assert ledger.verify().good


class TestJunk:
    """A cheating device hides behind junk and repeats."""

    def cheating(self, ledger: Ledger, names: list[Any]) -> list[str]:
        """Return second answers of some subjects, which have answered already."""
        ledger.register(names)
        ledger.reserve(HALF, names, key="k")
        second = []
        for name in names:
            phone = ScriptedDevice(ledger, name)
            reservation = phone.reservation(ledger)
            ledger.receive([phone.message(reservation, response="yes")])
            second.append(phone.message(reservation, response="no"))
        return second

    def test_a_message_that_another_sender_has_sent_first_still_counts(
        self, tmp_path: Path
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            (second,) = self.cheating(ledger, ["ann"])
            ledger.register(["bob"])
            ledger.sync([ScriptedDevice(ledger, "bob").request([second])])
            assert ledger.status(["ann"]).states == ("active",)
            ledger.receive([second])
            assert ledger.status(["ann"]).states == ("suspended",)
            assert ledger.audit().extras == (("ann", HALF.content_id, "no"),)
            assert ledger.verify().good

    def test_a_message_that_came_before_its_subject_was_registered_still_counts(
        self, tmp_path: Path
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            forged = ScriptedDevice(ledger, "eve").message(_made_up(ledger, "eve"))
            ledger.receive([forged])
            ledger.register(["eve"])
            ledger.receive([forged])
            assert ledger.status().states == ("suspended",)
            assert ledger.verify().good

    def test_messages_about_strangers_do_not_make_a_call_look_large(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            second = self.cheating(ledger, ["ann", "bob", "carl"])
            strangers = [
                ScriptedDevice(ledger, name).message(_made_up(ledger, name))
                for name in (f"stranger {number}" for number in range(150))
            ]
            ledger.receive([*strangers, *second])
            assert ledger.status().states == ("suspended",) * 3
            assert ledger.verify().good

    def test_repeats_do_not_make_a_call_look_large(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            second = self.cheating(ledger, ["ann", "bob", "carl"])
            ledger.register(range(150))
            ledger.reserve(HALF, range(150), key="k")
            messages = [ScriptedDevice(ledger, number).answer(ledger) for number in range(150)]
            ledger.receive(messages)
            ledger.receive([*messages, *second])
            assert ledger.status(["ann", "bob", "carl"]).states == ("suspended",) * 3
            assert ledger.verify().good


def test_a_query_that_got_the_number_of_another_is_decided_about_again(tmp_path: Path) -> None:
    """The first query was accepted in a call that failed, so its number was free again."""
    with a_ledger(tmp_path) as ledger:
        ledger.register(["old"], kind="simulated")
        ledger.backup(tmp_path / "backup.db")
        ledger.register(["lost"])
    put_back(tmp_path)
    with Ledger(place_of(tmp_path), source=InsecureSource(1)) as ledger:
        ledger.register(["new"], kind="simulated")
        with pytest.raises(xp.InvalidInput, match="row 2: 'old' is unconfirmed"):
            ledger.ask(OTHER, ["no", "no"], ["new", "old"])
        assert ledger.queries == {}
        too_much = xp.randomized_response(epsilon=3)
        assert not ledger.ask(too_much, ["no"], ["new"]).answered.any()
        assert ledger.ask(OTHER, ["no"], ["new"]).answered.all()
        assert ledger.verify().good


def test_no_tool_can_change_rows_while_the_triggers_are_there(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"])
        ledger.reserve(HALF, key="k")
        ScriptedDevice(ledger).send(ledger)
    connection = apsw.Connection(str(place_of(tmp_path)))
    tables = [table.name for table in TABLES.values()]
    with_rows = [
        name
        for name in ("study", *tables)
        if connection.execute(f"SELECT count(*) FROM {name}").fetchall() != [(0,)]
    ]
    assert {"study", "commits", "subjects", "exchanges", "requests"} <= {*with_rows}
    for name in with_rows:
        with pytest.raises(apsw.ConstraintError, match="never"):
            connection.execute(f"DELETE FROM {name}")
    for statement in (
        "UPDATE exchanges SET response = 2",
        "UPDATE subjects SET sequence = 0",
        "UPDATE subjects SET kind = 'imported'",
        "UPDATE study SET document = '{}'",
    ):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(statement)
    with suppress(apsw.Error):
        connection.close()
