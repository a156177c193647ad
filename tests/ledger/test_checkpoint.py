"""The checkpoint: a line for every commit, outside the database, before anything leaves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.ledger import (
    CheckpointFile,
    Ledger,
    LedgerBehind,
    LedgerBroken,
    LedgerDamaged,
    LedgerLocked,
    Tip,
)
from expost.ledger._checkpoint import Checkpoint
from expost.ledger._sqlite import Sqlite
from support.scripted_devices import HALF, QUARTER, ScriptedDevice, a_ledger, reserved, restore
from support.unprivileged_user import without_privileges

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with three commits: a registration, a reservation and an answer."""
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann"])
        ledger.reserve(HALF, key="one")
        ScriptedDevice(ledger).send(ledger)
    return tmp_path / "study.db"


def checkpoint_of(place: Path) -> Path:
    return Path(f"{place}.checkpoint")


def lines_of(place: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line.rpartition(" ")[0])
        for line in checkpoint_of(place).read_text("utf-8").splitlines()
    ]


class TestLines:
    """What the file has in it."""

    def test_every_commit_has_a_line(self, place: Path) -> None:
        with Ledger(place) as ledger:
            tip = ledger.tip
        lines = lines_of(place)
        assert [line["commit"] for line in lines] == [0, 1, 2, 3]
        assert lines[-1]["root"] == tip.root.hex()
        assert (tip.commit_number, len(lines[1]["events"])) == (3, 1)
        assert lines[1]["events"][0].split()[::2] == ["registered", "device"]

    def test_lines_are_chained(self, place: Path) -> None:
        with Ledger(place) as ledger:
            check = ledger.policy.content_id
        for line in checkpoint_of(place).read_text("utf-8").splitlines():
            text, _, found = line.rpartition(" ")
            check = hashlib.sha256((check + text).encode()).hexdigest()[:16]
            assert found == check

    def test_names_and_responses_are_not_in_it(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["Annabelle"])
            ledger.register(["Bartholomew"], kind="imported")
            ledger.record(HALF, ["yes"], ["Bartholomew"], key="secret key")
            phone = ScriptedDevice(ledger, "Annabelle")
            ledger.reserve(HALF, ["Annabelle"], key="another key")
            ledger.receive([phone.message(phone.reservation(ledger), head="0" * 64)])
        content = checkpoint_of(tmp_path / "study.db").read_text("utf-8")
        for word in ("imported", "registered", "extra", "suspended"):
            assert word in content
        for word in ("Annabelle", "Bartholomew", "yes", "key", HALF.content_id):
            assert word not in content
        for name in ('"Annabelle"', "Annabelle"):
            assert hashlib.sha256(name.encode()).hexdigest()[:16] not in content

    def test_the_end_of_the_study_is_in_it(self, place: Path) -> None:
        with Ledger(place) as ledger:
            ledger.end()
        assert lines_of(place)[-1]["events"] == ["ended"]

    def test_reading_adds_no_line(self, place: Path) -> None:
        before = checkpoint_of(place).read_bytes()
        with Ledger(place) as ledger:
            assert ledger.verify().good
            ledger.status(), ledger.audit(), ledger.answers(), ledger.rounds()
            ledger.decide(QUARTER)
        assert checkpoint_of(place).read_bytes() == before

    def test_a_repeated_request_adds_no_line(self, place: Path) -> None:
        before = checkpoint_of(place).read_bytes()
        with Ledger(place) as ledger:
            assert reserved(ledger, HALF, key="one") == ["recorded"]
            assert ledger.register(["ann"]) == 0
        assert checkpoint_of(place).read_bytes() == before


class TestOrder:
    """The database commit, then the line, and only then does anything leave."""

    @pytest.fixture
    def stepped(self, place: Path) -> Iterator[tuple[Ledger, list[Any]]]:
        """A ledger that notes, at every step, which commits others could see."""
        seen: list[Any] = []

        def step(name: str) -> None:
            reader = apsw.Connection(str(place))
            ((commits,),) = reader.execute("SELECT max(number) FROM commits").fetchall()
            reader.close()
            seen.append((name, commits, lines_of(place)[-1]["commit"]))

        store = CheckpointFile(checkpoint_of(place))
        with Ledger.on_backend(Sqlite.open(place), store, on_step=step) as ledger:
            yield ledger, seen

    def test_a_line_follows_its_commit(self, stepped: tuple[Ledger, list[Any]]) -> None:
        ledger, seen = stepped
        assert reserved(ledger, QUARTER, key="two") == ["reserved"]
        assert seen == [("prepared", 3, 3), ("committed", 4, 3), ("checkpointed", 4, 4)]

    def test_both_are_synchronized_before_the_call_returns(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synchronized = []

        def fdatasync(file: int) -> None:
            synchronized.append(os.readlink(f"/proc/self/fd/{file}"))

        monkeypatch.setattr(os, "fdatasync", fdatasync)
        with Ledger(place) as ledger:
            ledger.reserve(QUARTER, key="two")
            assert synchronized == [str(checkpoint_of(place))]
            backend = ledger._engine.backend
            assert isinstance(backend, Sqlite)
            assert backend._connection.pragma("synchronous") >= 2

    @pytest.mark.parametrize("at", ["prepared", "committed", "checkpointed"])
    def test_whatever_step_fails_the_key_has_one_outcome(self, place: Path, at: str) -> None:
        def step(name: str) -> None:
            if name == at:
                raise RuntimeError("the power is gone")

        store = CheckpointFile(checkpoint_of(place))
        with Ledger.on_backend(Sqlite.open(place), store, on_step=step) as ledger:
            with pytest.raises(RuntimeError):
                ledger.reserve(QUARTER, key="two")
            with pytest.raises(
                LedgerBroken, match="an earlier write failed; open the ledger again"
            ):
                ledger.status()
            with pytest.raises(
                LedgerBroken, match="an earlier write failed; open the ledger again"
            ):
                ledger.reserve(QUARTER, key="two")
        with Ledger(place) as ledger:
            commits = 3 if at == "prepared" else 4
            assert ledger.tip.commit_number == commits
            assert lines_of(place)[-1]["commit"] == commits  # before anything is shown
            assert reserved(ledger, QUARTER, key="two") == ["reserved"]
            assert ledger.tip.commit_number == 4
            assert ledger.verify().good

    def test_a_reader_writes_the_line_that_a_killed_writer_did_not(self, place: Path) -> None:
        checkpoint = checkpoint_of(place)
        content = checkpoint.read_bytes()
        checkpoint.write_bytes(content[: content.rstrip(b"\n").rfind(b"\n") + 1])
        assert lines_of(place)[-1]["commit"] == 2
        with Ledger(place) as ledger:
            assert ledger.status().exchanges.tolist() == [1]
            assert checkpoint.read_bytes() == content
        # The lock was released again.
        with Ledger(place) as one, Ledger(place) as other:
            other.reserve(QUARTER, key="two")
            assert one.tip == other.tip

    def test_a_line_that_cannot_be_written_lets_nothing_leave(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> int:
            raise OSError(28, "No space left on device")

        with Ledger(place) as ledger:
            with monkeypatch.context() as patch:
                patch.setattr(os, "pwrite", full)
                with pytest.raises(
                    LedgerBroken, match=r"could not be written .No space left on device"
                ):
                    ledger.reserve(QUARTER, key="two")
            with pytest.raises(LedgerBroken, match="open the ledger again"):
                ledger.reserve(QUARTER, key="two")
        with Ledger(place) as ledger:
            assert reserved(ledger, QUARTER, key="two") == ["reserved"]


class TestDamage:
    """Lines that are torn, changed or missing."""

    @pytest.mark.parametrize("cut", [1, 2, 20, 100])
    def test_a_torn_last_line_means_that_the_database_is_complete(
        self, place: Path, cut: int
    ) -> None:
        """A crash came while the line was written, which is after the commit."""
        content = checkpoint_of(place).read_bytes()
        checkpoint_of(place).write_bytes(content[:-cut])
        with Ledger(place) as ledger:
            assert ledger.tip.commit_number == 3
            assert ledger.verify().good
        assert checkpoint_of(place).read_bytes() == content

    def test_a_torn_line_after_an_old_database_is_a_rollback(self, place: Path) -> None:
        """The line was begun, so its commit was in the database."""
        with Ledger(place) as ledger:
            ledger.backup(place.with_name("backup.db"))
            ledger.reserve(QUARTER, key="two")
        content = checkpoint_of(place).read_bytes()
        checkpoint_of(place).write_bytes(content[:-5])
        restore(place.with_name("backup.db"), place)
        with pytest.raises(LedgerBehind, match="older copy: 3 of more than 3 commits"):
            Ledger(place)

    @pytest.mark.parametrize("line", [0, 1, 2])
    def test_a_changed_line_in_the_middle_does_not_stop_a_good_database(
        self, place: Path, line: int
    ) -> None:
        """Only a recovery needs old lines, and reports the damage then."""
        lines = checkpoint_of(place).read_bytes().splitlines(keepends=True)
        lines[line] = lines[line].replace(b"root", b"toor")
        checkpoint_of(place).write_bytes(b"".join(lines))
        with Ledger(place) as ledger:
            assert ledger.verify().good
        checkpoint = Checkpoint(CheckpointFile(checkpoint_of(place)), ledger.policy.content_id)
        with pytest.raises(LedgerDamaged, match=f"line {line + 1} of the checkpoint"):
            list(checkpoint.lines())

    def test_lines_that_are_damaged_at_the_end_stop_the_ledger(self, place: Path) -> None:
        lines = checkpoint_of(place).read_bytes().splitlines(keepends=True)
        for number in (2, 3):
            lines[number] = lines[number].replace(b"root", b"toor")
        checkpoint_of(place).write_bytes(b"".join(lines))
        with pytest.raises(LedgerDamaged, match="is damaged at its end"):
            Ledger(place)

    @pytest.mark.parametrize("content", [None, b""])
    def test_a_missing_checkpoint_stops_the_ledger(
        self, place: Path, content: bytes | None
    ) -> None:
        checkpoint_of(place).unlink()
        if content is not None:
            checkpoint_of(place).write_bytes(content)
        with pytest.raises(
            LedgerBehind, match="is missing or empty, so a rollback could go unnoticed"
        ):
            Ledger(place)
        with pytest.raises(xp.InvalidInput, match="is missing; name the file if it is elsewhere"):
            Ledger.recover(place)
        Ledger.recover(place, lost=True)
        with Ledger(place) as ledger:
            assert ledger.status().states == ("unconfirmed",)
            assert ledger.verify().good

    def test_a_checkpoint_elsewhere_is_named(self, place: Path, tmp_path: Path) -> None:
        moved = tmp_path / "elsewhere"
        os.rename(checkpoint_of(place), moved)
        os.rename(f"{checkpoint_of(place)}.key", f"{moved}.key")
        with pytest.raises(LedgerBehind):
            Ledger(place)
        with Ledger(place, checkpoint=moved) as ledger:
            assert reserved(ledger, QUARTER, key="two") == ["reserved"]

    def test_the_checkpoint_of_another_ledger_is_refused(self, place: Path, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        with a_ledger(tmp_path / "other") as other:
            for number in range(4):
                other.register([number])
        with pytest.raises((LedgerBehind, LedgerDamaged)):
            Ledger(place, checkpoint=tmp_path / "other" / "study.db.checkpoint")

    def test_a_missing_ticket_key_stops_writing_and_not_reading(self, place: Path) -> None:
        Path(f"{checkpoint_of(place)}.key").unlink()
        with Ledger(place) as ledger:
            assert ledger.verify().good
            with pytest.raises(LedgerBehind, match="the ticket key of the ledger, is missing"):
                ledger.reserve(QUARTER, key="two")
        with pytest.raises(xp.InvalidInput, match=r"the ticket key .* is missing; restore it"):
            Ledger.recover(place)
        Ledger.recover(place, lost=True)
        with Ledger(place) as ledger:
            assert reserved(ledger, QUARTER, key="two") == ["unconfirmed"]

    def test_a_damaged_ticket_key_is_damage(self, place: Path) -> None:
        Path(f"{checkpoint_of(place)}.key").write_text("not a key", "utf-8")
        with (
            Ledger(place) as ledger,
            pytest.raises(LedgerDamaged, match="does not hold a ticket key"),
        ):
            ledger.reserve(QUARTER, key="two")


class TestRunningWriter:
    """The file is changed under a process that writes."""

    @pytest.fixture
    def writer(self, place: Path) -> Iterator[Ledger]:
        with Ledger(place) as ledger:
            ledger.reserve(QUARTER, key="claim")
            yield ledger

    def refused(self, writer: Ledger, line: str) -> None:
        with pytest.raises(LedgerBroken, match=line):
            writer.register(["bob"])
        with pytest.raises(LedgerBroken, match="an earlier write failed"):
            writer.status()

    def test_a_replaced_file_stops_it(self, writer: Ledger, place: Path, tmp_path: Path) -> None:
        shutil.copyfile(checkpoint_of(place), tmp_path / "copy")
        os.replace(tmp_path / "copy", checkpoint_of(place))
        self.refused(writer, "was replaced or removed")

    def test_a_removed_file_stops_it(self, writer: Ledger, place: Path) -> None:
        checkpoint_of(place).unlink()
        self.refused(writer, "was replaced or removed|was changed by another process")

    def test_a_hard_link_stops_it(self, writer: Ledger, place: Path, tmp_path: Path) -> None:
        os.link(checkpoint_of(place), tmp_path / "second")
        self.refused(writer, "has 2 names")

    def test_a_file_that_another_process_changed_stops_it(
        self, writer: Ledger, place: Path
    ) -> None:
        with checkpoint_of(place).open("ab") as file:
            file.write(b"more\n")
        self.refused(writer, "was changed by another process")

    def test_a_file_that_was_cut_off_stops_it(self, writer: Ledger, place: Path) -> None:
        os.truncate(checkpoint_of(place), 100)
        self.refused(writer, "was changed by another process")


WRITER = """
import sys
import expost as xp
with xp.Ledger(sys.argv[1]) as ledger:
    ledger.register(["from another process"])
    print("claimed", flush=True)
    sys.stdin.read()
"""


class TestLock:
    """One process writes, and any number of them read."""

    def test_a_second_process_reads_and_does_not_write(self, place: Path) -> None:
        command = [sys.executable, "-c", WRITER, str(place)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"claimed\n"
            with Ledger(place) as ledger:
                assert ledger.subjects == ("ann", "from another process")
                assert ledger.verify().good
                assert ledger.decide(QUARTER).accepted.tolist() == [True, True]
                before = ledger.tip
                for write in (
                    lambda: ledger.register(["bob"]),
                    lambda: ledger.reserve(QUARTER),
                    lambda: ledger.receive([b"junk"]),
                    lambda: ledger.sync([b"junk"]),
                    ledger.end,
                ):
                    with pytest.raises(LedgerLocked, match="another process is writing to this"):
                        write()
                assert ledger.tip == before
                other.communicate()
                # The other process is gone, so this one becomes the writer.
                assert ledger.register(["bob"]) == 1
                assert ledger.verify().good

    def test_a_writer_that_is_killed_leaves_no_lock(self, place: Path) -> None:
        command = [sys.executable, "-c", WRITER, str(place)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"claimed\n"
            other.kill()
            other.communicate()
        with Ledger(place) as ledger:
            assert ledger.register(["bob"]) == 1
            assert ledger.subjects == ("ann", "from another process", "bob")
            assert ledger.verify().good

    def test_reading_takes_no_lock(self, place: Path) -> None:
        with Ledger(place) as one, Ledger(place) as other:
            assert one.status().exchanges.tolist() == [1]
            other.reserve(QUARTER, key="two")
            assert one.status().reserved.tolist() == [True]
            assert one.verify().good

    def test_a_writer_without_its_lock_is_fenced_off_by_the_epoch(self, place: Path) -> None:
        """A file system whose locks do not work lets two processes claim the checkpoint."""

        class Unlocked(CheckpointFile):
            def claim(self, *, create: bool = False) -> None:
                self._file = os.open(self.path, os.O_RDWR)

        first = Ledger.on_backend(Sqlite.open(place), Unlocked(checkpoint_of(place)))
        second = Ledger.on_backend(Sqlite.open(place), Unlocked(checkpoint_of(place)))
        with first, second:
            assert first.register(["bob"]) == 1
            assert second.register(["carl"]) == 1
            with pytest.raises(LedgerBroken, match="another process has taken over this ledger"):
                first.register(["dora"])
            assert second.register(["eve"]) == 1
            assert second.subjects == ("ann", "bob", "carl", "eve")
            assert second.verify().good


class TestFiles:
    """Permissions, and media that cannot be written."""

    def test_all_files_are_for_their_owner_only(self, tmp_path: Path) -> None:
        old = os.umask(0)
        try:
            with a_ledger(tmp_path) as ledger:
                ledger.register(["ann"])
                ledger.backup(tmp_path / "backup.db")
                modes = {
                    file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()
                }
        finally:
            os.umask(old)
        assert {"study.db", "study.db.checkpoint", "study.db.checkpoint.key", "backup.db"} <= {
            *modes
        }
        assert set(modes.values()) == {0o600}

    def test_ticket_keys_are_random(self, tmp_path: Path) -> None:
        keys = set()
        for number in range(3):
            folder = tmp_path / str(number)
            folder.mkdir()
            a_ledger(folder).close()
            keys.add((folder / "study.db.checkpoint.key").read_text("utf-8"))
        assert len(keys) == 3
        assert {len(bytes.fromhex(key)) for key in keys} == {32}

    def test_a_checkpoint_is_never_overwritten(self, place: Path) -> None:
        place.unlink()
        with pytest.raises(xp.InvalidInput, match="already exists; checkpoints are never overwr"):
            a_ledger(place.parent)

    def test_a_backup_is_never_overwritten(self, place: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine", "utf-8")
        with Ledger(place) as ledger:
            with pytest.raises(xp.InvalidInput, match="already exists"):
                ledger.backup(tmp_path / "file")
            assert (tmp_path / "file").read_text("utf-8") == "mine"
            with pytest.raises(xp.InvalidInput, match="cannot be created: No such file or dir"):
                ledger.backup(tmp_path / "no" / "file")

    def test_a_backup_is_a_complete_ledger(self, place: Path, tmp_path: Path) -> None:
        with Ledger(place) as ledger:
            ledger.reserve(QUARTER, key="two")
            ledger.backup(tmp_path / "backup.db")
            tip = ledger.tip
        with Ledger(tmp_path / "backup.db", checkpoint=checkpoint_of(place)) as copy:
            assert copy.tip == tip
            assert copy.verify().good


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, with a ledger, and a folder for temporary files."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        for part, mode in (("study", 0o755), ("tmp", 0o777)):
            (base / part).mkdir()
            (base / part).chmod(mode)
        yield base / "study"
        (base / "study").chmod(0o755)


def started(folder: Path, suffixes: tuple[str, ...] | None) -> None:
    """Make a ledger; with suffixes, the files that a killed process leaves."""
    (folder.parent / "killed").mkdir()
    with a_ledger(folder.parent / "killed") as ledger:
        ledger.register(["ann"])
        ledger.reserve(HALF, key="one")
        ScriptedDevice(ledger).send(ledger)
        assert ledger.audit().good  # which imports everything that only root may be able to read
        if suffixes is None:
            ledger.close()
        for suffix in ("", ".checkpoint", ".checkpoint.key", *(suffixes or ())):
            shutil.copyfile(
                folder.parent / "killed" / f"study.db{suffix}", folder / f"study.db{suffix}"
            )
    shutil.rmtree(folder.parent / "killed")


def read_only(folder: Path) -> dict[str, bytes]:
    """Take all rights to write away, and return what is there."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


class TestReadOnly:
    """A ledger on a read-only medium, or of another user."""

    @pytest.mark.parametrize(
        "suffixes", [None, ("-wal", "-shm"), ("-wal",)], ids=["closed", "log and index", "log"]
    )
    def test_it_is_read_and_verified_and_nothing_changes(
        self,
        folder: Path,
        suffixes: tuple[str, ...] | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "tmp"))
        started(folder, suffixes)
        before = read_only(folder)
        with without_privileges(), Ledger(folder / "study.db") as ledger:
            assert ledger.tip.commit_number == 3
            assert ledger.verify().good
            assert ledger.status().exchanges.tolist() == [1]
            assert ledger.audit().good
            assert len(ledger.transcript("ann")) == 1
            ledger.export(folder.parent / "tmp" / "export.jsonl")
            for write in (
                lambda: ledger.register(["bob"]),
                lambda: ledger.reserve(HALF, key="two"),
                ledger.end,
            ):
                with pytest.raises(xp.InvalidInput) as error:
                    write()
                assert "cannot be" in str(error.value)
                assert "\n" not in str(error.value)
        assert contents(folder) == before
        assert [file.name for file in (folder.parent / "tmp").iterdir()] == ["export.jsonl"]

    def test_a_commit_without_its_line_is_shown(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No process can write the line, and no answer can leave because of it."""
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "tmp"))
        started(folder, None)
        checkpoint = folder / "study.db.checkpoint"
        checkpoint.write_bytes(b"".join(checkpoint.read_bytes().splitlines(keepends=True)[:-1]))
        read_only(folder)
        with without_privileges(), Ledger(folder / "study.db") as ledger:
            assert ledger.tip.commit_number == 3

    def test_an_older_copy_is_noticed(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "tmp"))
        started(folder, None)
        with Ledger(folder / "study.db") as ledger:
            ledger.backup(folder.parent / "backup.db")
            ledger.register(["bob"])
        restore(folder.parent / "backup.db", folder / "study.db")
        read_only(folder)
        with without_privileges(), pytest.raises(LedgerBehind, match="is an older copy"):
            Ledger(folder / "study.db")

    def test_an_auditor_reads_a_ledger_while_its_owner_continues(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "tmp"))
        started(folder, None)
        with Ledger(folder / "study.db") as owner:
            owner.register(["bob"])
            for suffix in ("", "-wal", "-shm", ".checkpoint"):
                Path(f"{folder}/study.db{suffix}").chmod(0o444)
            with without_privileges(), Ledger(folder / "study.db") as auditor:
                tip = auditor.tip
                assert auditor.verify().good
            assert tip == owner.tip
            owner.register(["carl"])
            with without_privileges(), Ledger(folder / "study.db") as auditor:
                assert auditor.tip == owner.tip

    @pytest.mark.parametrize("suffix", ["", ".checkpoint"])
    def test_a_file_that_cannot_be_read_is_one_line(
        self, folder: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "tmp"))
        started(folder, None)
        read_only(folder)
        Path(f"{folder}/study.db{suffix}").chmod(0)
        with without_privileges(), pytest.raises(xp.InvalidInput) as error:
            Ledger(folder / "study.db")
        assert str(error.value) == f"{folder}/study.db{suffix}: cannot be read: Permission denied"


class TestFile:
    """The store of the checkpoint by itself."""

    def test_long_files_are_read_from_their_end(self, tmp_path: Path) -> None:
        """Lines are longer than what is read at once, and there are many."""
        store = CheckpointFile(tmp_path / "checkpoint")
        checkpoint = Checkpoint(store, "policy")
        checkpoint.claim(create=True)
        tips = [Tip(number, bytes([number]) * 32) for number in range(12)]
        for tip in tips:
            checkpoint.append(tip, [f"registered {number:016x} device" for number in range(4000)])
        checkpoint.close()
        again = Checkpoint(store, "policy")
        last = again.tail().last
        assert last is not None
        assert last.tip == tips[-1]
        assert [line.tip for line in again.lines()] == tips
        assert all(again.covers(tip) for tip in tips)
        assert not again.covers(Tip(3, b"x" * 32))
        other = Checkpoint(store, "another policy")
        with pytest.raises(LedgerDamaged, match="line 1 of the checkpoint"):
            list(other.lines())

    def test_events_of_any_text_are_read_back(self, tmp_path: Path) -> None:
        checkpoint = Checkpoint(CheckpointFile(tmp_path / "checkpoint"), "policy")
        checkpoint.claim(create=True)
        events = ['a "quote"', "a\nnewline", "größe", "} 0123456789abcdef"]
        checkpoint.append(Tip(0, b"r" * 32), events)
        checkpoint.close()
        assert [line.events for line in checkpoint.lines()] == [events]
