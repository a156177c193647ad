"""Files that are replaced as a whole, by one process at a time."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

import expost as xp
from expost.durable import locked, replace


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
        synced.append((kind, (tmp_path / "file").read_text()))

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
            with locked(target):
                known = int(target.read_text())
                time.sleep(0.0005)
                replace(target, str(known + 1).__str__, tmp_path / "temporary")

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() == "120"


def test_a_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "file"):
            _ = 1 // 0


def test_a_system_without_locks_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(xp.InvalidInput, match="cannot be locked: this system has no flock"):
        locked(tmp_path / "file").__enter__()


def test_a_disk_without_locks_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(xp.InvalidInput, match="cannot be locked: No locks available"):
        locked(tmp_path / "file").__enter__()
