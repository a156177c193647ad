"""Files that are replaced as a whole, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import expost as xp
from expost.files.durable import lock_file, replace


@pytest.fixture
def target(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_text("old")
    return file


def test_a_file_is_made_or_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    target, temporary = tmp_path / "file", tmp_path / "temporary"
    for text in ("one", "zwei ε"):
        replace(target, text.__str__, temporary)
        assert target.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_not_recorded_yet_is_for_nobody_else_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, temporary = tmp_path / "file", tmp_path / "temporary"
    target.write_text("old")
    target.chmod(0o644)
    modes = []
    real = os.replace

    def spy(source: Path, destination: Path) -> None:
        modes.append(source.stat().st_mode & 0o777)
        real(source, destination)

    monkeypatch.setattr("os.replace", spy)
    replace(target, lambda: "new", temporary)
    assert modes == [0o600]
    assert target.stat().st_mode & 0o777 == 0o644


def test_the_file_and_then_its_name_are_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, str]] = []

    def spy(descriptor: int) -> None:
        kind = "directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"
        synced.append((kind, (tmp_path / "file").read_text("utf-8")))

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr("os.fsync", spy)
    replace(tmp_path / "file", lambda: "new", tmp_path / "temporary")
    assert synced == [("file", "old"), ("directory", "new")]


def test_an_error_names_the_file_that_the_user_knows(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        replace(target, lambda: "text", target.with_name("temporary"))
    assert caught.value.filename == str(target)


def test_one_holds_a_file_at_a_time_and_whoever_waited_sees_what_it_became(tmp_path: Path) -> None:
    target = tmp_path / "count"
    target.write_text("0")

    def count() -> None:
        for _ in range(20):
            with lock_file(target) as held:
                known = int(held.read())
                time.sleep(0.0005)
                replace(target, str(known + 1).__str__, tmp_path / uuid.uuid4().hex, held)

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text("utf-8") == "120"


def test_a_lock_is_let_go_after_an_error(target: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), lock_file(target):
            _ = 1 // 0


def test_a_system_without_locks_is_told_so(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(xp.InvalidInput, match="cannot be locked: this system has no flock"):
        lock_file(target).__enter__()


def test_a_disk_without_locks_is_told_so(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(xp.InvalidInput, match="cannot be locked: No locks available"):
        lock_file(target).__enter__()


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(xp.InvalidInput, match="would have 4 bytes, and at most"):
        replace(tmp_path / "file", lambda: "four", tmp_path / "temporary", most=3)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(xp.InvalidInput, match="cannot be replaced: not a regular file"):
        replace(pipe, lambda: "new", tmp_path / "temporary")
    assert pipe.is_fifo()


def test_what_another_program_put_there_meanwhile_is_not_replaced(target: Path) -> None:
    temporary = target.with_name("temporary")
    with lock_file(target) as held:
        other = target.with_name("other")
        other.write_text("by another program")
        other.rename(target)
        with pytest.raises(xp.InvalidInput, match="was replaced by another program while it was"):
            replace(target, lambda: "new", temporary, held)
    assert target.read_text("utf-8") == "by another program"
    assert not temporary.exists()


def test_the_lock_goes_over_to_the_new_file(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = []
    real = os.fchmod

    def spy(descriptor: int, mode: int) -> None:
        # The new file has its name by now, and not yet its mode.
        with target.open("r+b") as newcomer:
            try:
                fcntl.flock(newcomer, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free.append(True)
            except BlockingIOError:
                free.append(False)
        real(descriptor, mode)

    monkeypatch.setattr("os.fchmod", spy)
    with lock_file(target) as held:
        replace(target, lambda: "new", target.with_name("temporary"), held)
    assert free == [False]


def test_a_file_with_several_names_is_not_locked(target: Path) -> None:
    target.with_name("other name").hardlink_to(target)
    with pytest.raises(xp.InvalidInput, match=r"has 2 names \(hard links\)"):
        lock_file(target).__enter__()


def test_a_link_is_not_followed_to_a_lock(target: Path) -> None:
    link = target.with_name("link")
    link.symlink_to(target)
    with pytest.raises(xp.InvalidInput, match="cannot be locked: Too many levels of symbolic"):
        lock_file(link).__enter__()


def test_waiting_for_longer_than_that_is_told_once(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.files.durable._PATIENCE", 0.02)
    told: list[str] = []

    def wait() -> None:
        with lock_file(target, lambda: told.append("waiting")):
            told.append("locked")

    for held_for, expected in [(0.1, ["waiting", "locked"]), (0.0, ["locked"])]:
        told.clear()
        thread = threading.Thread(target=wait)
        with lock_file(target):
            if held_for:
                thread.start()
                time.sleep(held_for)
        if not held_for:
            thread.start()
        thread.join()
        time.sleep(0.04)
        assert told == expected


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")


@needs_root
def test_owner_group_and_mode_stay(target: Path) -> None:
    os.chown(target, 4321, 1234)
    target.chmod(0o640)
    replace(target, lambda: "new", target.with_name("temporary"))
    status = target.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (4321, 1234, 0o640)


@needs_root
@pytest.mark.parametrize(("owner", "group", "what"), [(4321, 0, "owner"), (0, 1234, "group")])
def test_a_file_whose_owner_cannot_be_kept_is_not_replaced(
    target: Path, monkeypatch: pytest.MonkeyPatch, owner: int, group: int, what: str
) -> None:
    os.chown(target, owner, group)

    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.chown", refuse)
    with pytest.raises(xp.InvalidInput, match=f"cannot be replaced: its {what} would change"):
        replace(target, lambda: "new", target.with_name("temporary"))
    assert target.read_text("utf-8") == "old"
    assert os.listdir(target.parent) == [target.name]
