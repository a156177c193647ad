"""A ledger that may be read and not written: on a read-only medium, or as another user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import expost as xp
from expost.ledger.checkpoint import CheckpointFile
from support.users import without_privileges

Run = Callable[..., tuple[int, str, str]]

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.5")
READING = {
    "status": ["status", "study.db", "--each"],
    "verify": ["verify", "study.db"],
    "audit": ["audit", "study.db"],
    "export": ["export", "study.db", "-o", "../out/export.jsonl"],
    "answers": ["answers", "study.db", "-o", "../out/a.csv", "--queries", "../out/q.json"],
    "transcript": ["transcript", "study.db", "ann", "-o", "../out/ann.json"],
    "report": ["report", "study.db", "-o", "../out/page.html", "--date", "today"],
}
WRITING = {
    "register": ["register", "study.db", "eve"],
    "reserve": ["reserve", "study.db", "--query", "smokes", "--key", "k"],
    "ask": ["ask", "study.db", "--query", "smokes", "--key", "k", "--values", "../out/values.csv"],
    "end": ["end", "study.db"],
    "recover": ["recover", "study.db", "--lost"],
    "recover everybody": ["recover", "study.db", "--everybody"],
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may enter, with a folder for outputs and one for temporary files."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        for part in ("study", "out", "tmp"):
            (base / part).mkdir()
        for part in ("out", "tmp"):
            (base / part).chmod(0o777)
        monkeypatch.chdir(base / "study")
        monkeypatch.setattr(tempfile, "tempdir", str(base / "tmp"))
        monkeypatch.setattr("expost.cli.progress._PATIENCE", float("inf"))
        yield base / "study"
        (base / "study").chmod(0o755)


def started(place: str = "study.db") -> xp.Ledger:
    guard = xp.BayesianFilter(epsilon=1)
    ledger = xp.Ledger.create(place, DOMAIN, filter=guard, queries={"smokes": QUERY})
    ledger.register(["ann", "bob"])
    ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 1")
    return ledger


def left_behind(suffixes: tuple[str, ...]) -> None:
    """The files of a ledger whose process was killed: its last commits are in the log only."""
    Path("../tmp/killed").mkdir()
    with started("../tmp/killed/study.db"):
        for suffix in ("", ".checkpoint", *suffixes):
            shutil.copyfile(f"../tmp/killed/study.db{suffix}", f"study.db{suffix}")
    shutil.rmtree("../tmp/killed")


STATES: dict[str, Callable[[], None]] = {
    "closed": lambda: started().close(),
    "with a log and its index": lambda: left_behind(("-wal", "-shm")),
    "with a log": lambda: left_behind(("-wal",)),
}


def make_read_only(folder: Path) -> dict[str, bytes]:
    """Take all rights to write away, and return what is there."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def run_writable(run: Run, folder: Path, command: list[str]) -> tuple[int, str, str]:
    """Run a command on a copy of the ledger that can be written; this imports all it needs."""
    copy = folder.parent / "writable"
    shutil.copytree(folder, copy)
    for file in (copy, *copy.iterdir()):
        file.chmod(0o700)
    os.chdir(copy)
    try:
        return run("ledger", *command)
    finally:
        os.chdir(folder)


def outputs(folder: Path) -> dict[str, bytes]:
    found = contents(folder.parent / "out")
    for name in found:
        (folder.parent / "out" / name).unlink()
    return found


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_a_ledger_that_cannot_be_written_is_read(
    run: Run, folder: Path, state: Callable[[], None], command: list[str]
) -> None:
    state()
    before = make_read_only(folder)
    expected = run_writable(run, folder, command), outputs(folder)
    with without_privileges():
        found = run("ledger", *command)
    assert found == expected[0]
    assert found[::2] == (0, "")
    assert outputs(folder) == expected[1]
    assert contents(folder) == before
    assert not list((folder.parent / "tmp").iterdir())


@pytest.mark.parametrize("command", WRITING.values(), ids=WRITING)
def test_a_command_that_writes_is_refused_in_one_line(
    run: Run, folder: Path, command: list[str]
) -> None:
    started().close()
    before = make_read_only(folder)
    values = folder.parent / "out" / "values.csv"
    values.write_text("subject,value\nann,yes\nbob,no\n")
    values.chmod(0o644)
    assert run_writable(run, folder, command)[0] == 0
    with without_privileges():
        code, out, err = run("ledger", *command)
    line = "expost: the ledger cannot be changed: this process may not write to its file and its"
    assert (code, out, err.splitlines()[-1]) == (2, "", f"{line} folder")
    assert contents(folder) == before


def test_an_answer_that_was_recorded_is_repeated_without_a_right_to_write(folder: Path) -> None:
    with started() as ledger:
        first = ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 1").responses
    make_read_only(folder)
    with without_privileges(), xp.Ledger("study.db") as ledger:
        again = ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 1").responses
        with pytest.raises(xp.InvalidInput, match="the ledger cannot be changed"):
            ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 2")
    assert list(again) == list(first)


def test_an_auditor_reads_a_ledger_that_its_owner_continues(folder: Path) -> None:
    with started() as owner:
        for suffix in ("", "-wal", "-shm"):  # which the owner has open already
            Path(f"study.db{suffix}").chmod(0o444)
        with without_privileges():
            auditor = xp.Ledger("study.db")
        with auditor:
            owner.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 2")
            assert auditor.verify().good
            assert auditor.tip.commits == owner.tip.commits - 1
        with without_privileges(), xp.Ledger("study.db") as auditor:
            assert auditor.verify().good
            assert auditor.tip == owner.tip


def test_a_log_that_another_user_left_behind_does_not_prevent_reading(folder: Path) -> None:
    left_behind(("-wal",))
    Path("study.db-wal").chmod(0o444)
    Path("study.db").chmod(0o666)
    folder.chmod(0o777)
    before = contents(folder)
    with without_privileges(), xp.Ledger("study.db") as ledger:
        assert ledger.verify().good
        assert ledger.tip.commits == 3
    assert contents(folder) == before


def test_an_older_copy_is_still_noticed_without_a_right_to_write(run: Run, folder: Path) -> None:
    with started() as ledger:
        ledger.close()
        shutil.copyfile("study.db", "older.db")
    with xp.Ledger("study.db") as ledger:
        ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="week 2")
    run("ledger", "verify", "study.db")  # imports everything
    shutil.move("older.db", "study.db")
    make_read_only(folder)
    with without_privileges():
        code, out, err = run("ledger", "verify", "study.db")
    assert (code, out) == (1, "")
    assert "it is an older copy" in err


@pytest.mark.parametrize("suffix", ["", ".checkpoint"])
def test_a_file_that_cannot_be_read_is_one_line(run: Run, folder: Path, suffix: str) -> None:
    started().close()
    run("ledger", "verify", "study.db")  # imports everything
    make_read_only(folder)
    Path(f"study.db{suffix}").chmod(0)
    with without_privileges():
        code, out, err = run("ledger", "verify", "study.db")
    assert (code, out) == (2, "")
    assert err == f"expost: {err.split(': ')[1]}: cannot be read: Permission denied\n"
    assert err.split(": ")[1].endswith(f"study.db{suffix}")


def test_another_file_that_cannot_be_written_is_no_ledger(run: Run, folder: Path) -> None:
    started("other.db").close()
    run("ledger", "verify", "other.db")  # imports everything
    Path("study.db").write_text("subject,query,response\n" * 500, encoding="utf-8")
    make_read_only(folder)
    with without_privileges():
        code, out, err = run("ledger", "verify", "study.db")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "study.db: the database cannot be read" in err
    assert not list((folder.parent / "tmp").iterdir())


def test_a_medium_that_cannot_be_synchronized_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optical discs refuse to synchronize a file."""
    started().close()
    place = Path("study.db.checkpoint")
    make_read_only(folder)

    def refuse(_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(xp.InvalidInput):
        CheckpointFile(place).read()
    with without_privileges(), xp.Ledger("study.db") as ledger:
        assert ledger.verify().good
