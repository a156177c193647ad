"""``expost next``, and ``ask`` where attributes change: no step is lost, and none is told."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import expost as xp
from support.killed_commands import many_times, stopping_at, together

Run = Callable[..., tuple[int, str, str]]

SECRET = "the-secret-label"
PERSON = xp.Attributes(
    region=["north", "south"], smokes=xp.changing(["no", "yes", SECRET], times=2)
)
QUERY = {"kind": "randomized_response", "epsilon": "40", "about": ["smokes"]}
COMMAND = [sys.executable, "-c", "from expost.cli.main import main; main()"]


class Files:
    """A transcript, a history with its first record, and what is new at the next step."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.transcript = directory / "subject.json"
        self.history = directory / "history.jsonl"
        self.changes = directory / "changes.json"
        xp.Transcript(PERSON, xp.BayesianFilter(epsilon=300)).save(self.transcript)
        self.history.write_text('{"region": "north", "smokes": "no"}\n')
        self.history.chmod(0o600)
        self.changed({"smokes": SECRET})

    def changed(self, what: object) -> None:
        self.changes.write_text(json.dumps(what))
        self.changes.chmod(0o600)

    def query(self, step: int) -> Path:
        path = self.directory / f"query{step}.json"
        path.write_text(json.dumps({**QUERY, "at": step}))
        return path

    @property
    def next(self) -> list[str]:
        return ["next", str(self.transcript), "--secret", str(self.history)]

    def ask(self, step: int) -> list[str]:
        secret = ["--secret", str(self.history)]
        return ["ask", str(self.transcript), "--query", str(self.query(step)), *secret]

    @property
    def arguments(self) -> list[str]:
        return [*self.next, "--changes", str(self.changes)]

    @property
    def steps(self) -> int:
        return self.history.read_text("utf-8").count("\n")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_history_is_made_gone_on_with_and_answered_from(run: Run, files: Files) -> None:
    files.history.unlink()
    files.changed({"region": "south", "smokes": "no"})
    assert run(*files.arguments) == (0, "step  1\n", "")
    assert stat.S_IMODE(files.history.stat().st_mode) == 0o600
    files.changed({"smokes": "yes"})
    assert run(*files.arguments) == (0, "step  2\n", "")
    files.changed({})
    assert run(*files.arguments, "--json") == (0, '{\n  "step": 3\n}\n', "")
    for step, answer in ((3, "yes"), (1, "no")):
        code, out, err = run(*files.ask(step), "--json")
        assert (code, json.loads(out)["response"], err) == (0, answer, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ('{"smokes": "the-secret-labels"}', "the value of smokes is outside the domain (and"),
        ('{"region": "the-secret-label"}', "region: this attribute does not change"),
        ('{"the-secret-label": 1}', "unknown attribute (name not shown"),
        ('["the-secret-label"]', "must be the attributes that changed, not list"),
        ("the-secret-label", "changes.json: not a value in JSON; write"),
        ('{"smokes": "yes", "smokes": "the-secret-label"}', "changes.json: a name appears twice ("),
    ],
)
def test_a_bad_change_is_one_line_that_does_not_show_it(
    run: Run, files: Files, changes: str, message: str
) -> None:
    files.changes.write_text(changes)
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert err.replace(f"{files.directory}/", "").startswith(f"expost: {message}")
    assert err.count("\n") == 1
    assert SECRET not in err
    assert files.steps == 1


def test_what_cannot_be_asked_is_one_line(run: Run, files: Files) -> None:
    code, out, err = run(*files.ask(2))
    assert (code, out, err) == (
        2,
        "",
        "expost: at: step 2 is in the future; the history is at step 1\n",
    )
    code, out, err = run(*files.ask(1)[:-2])
    assert (code, out) == (2, "")
    assert err.startswith("expost: the domain has attributes that change; pass a history")
    missing = files.directory / "missing"
    code, out, err = run(*files.ask(1)[:-1], missing)
    assert (code, out) == (2, "")
    assert err.startswith(
        "expost: --secret: no such file (name not shown, in case it is the value itself)"
    )


def test_what_next_did_not_make_is_not_written_to(run: Run, files: Files) -> None:
    first = files.history.rename(files.directory / "first.json")  # it looks just like a history
    copy = first.read_bytes()
    code, out, err = run(*files.next[:-1], first, "--changes", files.changes)
    assert (code, out) == (2, "")
    assert err.startswith("expost: --secret: expected a history, a file whose name ends in .jsonl")
    assert first.read_bytes() == copy


def test_a_record_is_never_an_argument_or_the_name_of_a_file(run: Run, files: Files) -> None:
    record = json.dumps({"region": "north", "smokes": SECRET})
    before = sorted(os.listdir(files.directory))
    for option, reason in [
        ([*files.next[:-1], record], "--secret: is a value, not the name of a file (not shown)"),
        ([*files.next, "--changes", record], "--changes: no such file (name not shown"),
    ]:
        code, out, err = run(*option)
        assert (code, out) == (2, "")
        assert err.startswith(f"expost: {reason}")
        assert SECRET not in err
    assert sorted(os.listdir(files.directory)) == before


def test_a_history_behind_its_transcript_is_refused_and_not_begun_again(
    run: Run, files: Files
) -> None:
    before = files.history.read_bytes()
    assert run(*files.arguments)[0] == run(*files.ask(2))[0] == 0
    files.history.write_bytes(before)
    behind = "its transcript: it ends at step {}, but a query was about step 2. Use the latest"
    for arguments in (files.arguments, files.ask(1)):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert behind.format(1) in err
    files.history.unlink()
    files.changed({"region": "south", "smokes": "no"})
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert behind.format(0) in err
    assert not files.history.exists()


def test_who_else_may_read_or_write_the_history(run: Run, files: Files) -> None:
    files.history.chmod(0o640)
    code, _, err = run(*files.ask(1))
    warning = f"{files.history} is readable by others; run chmod 600 {files.history}"
    assert (code, err) == (0, f"expost: warning: {warning}\n")
    files.history.chmod(0o602)
    for arguments in (files.arguments, files.ask(1)):
        code, out, err = run(*arguments)
        refusal = f"is writable by others; run chmod 600 {files.history}"
        assert (code, out, err) == (2, "", f"expost: {files.history}: {refusal}\n")


def test_where_nothing_changes_there_is_no_next_step(run: Run, files: Files) -> None:
    xp.Transcript(xp.FiniteSet(["a", SECRET]), xp.BayesianFilter(1)).save(
        files.transcript, overwrite=True
    )
    for _ in range(2):
        code, out, err = run(*files.arguments)
        assert (code, out) == (2, "")
        assert "nothing changes on this domain; give the value and no history" in err
        files.history.unlink(missing_ok=True)


def test_what_changed_is_not_echoed_on_the_prompt(files: Files) -> None:
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *files.next], stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    shown = b""
    while b": " not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, json.dumps({"smokes": SECRET}).encode() + b"\n")
    try:
        while chunk := os.read(terminal, 1000):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.close(terminal)
    assert process.wait() == 0
    assert shown.decode().startswith("What changed, as JSON (not echoed): ")
    assert "step  2" in shown.decode()
    assert SECRET not in shown.decode()
    assert files.steps == 2


def killed(files: Files, step: int, done: bool) -> tuple[int | None, str, list[str]]:
    """How it ended when it was to be killed at a step, what it printed, and its steps."""
    out, log = files.directory / "out", files.directory / "log"
    for file in (out, log):
        file.write_text("")
    (code,) = together((stopping_at, (step, done, out, log, files.arguments)))
    assert SECRET not in out.with_suffix(".err").read_text("utf-8")
    return code, out.read_text("utf-8"), log.read_text("utf-8").split()


def test_the_order_is_lock_write_sync_tell(files: Files) -> None:
    code, out, steps = killed(files, 0, done=False)
    assert (code, out) == (0, "step  2\n")
    assert steps == [
        "open", "open", "open",  # the transcript, a look at the history, the transcript
        "open", "flock", "fsync", "open", "fsync", "close",  # what is there, on the disk for good
        "open",  # what changed
        "open", "flock", "ftruncate", "pwrite", "fsync", "open", "fsync", "close",
        "echo",
    ]  # fmt: skip


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_killing_it_at_any_step_tells_of_no_step_that_is_not_kept(
    tmp_path: Path, done: bool
) -> None:
    for step in count(10):  # where it goes on from what is there
        directory = tmp_path / str(step)
        directory.mkdir()
        files = Files(directory)
        code, out, steps = killed(files, step, done)
        assert out in ("", "step  2\n")
        assert out == "" or files.steps == 2
        if code == 0:
            break
        assert code == -signal.SIGKILL
        written = steps.index("pwrite") < len(steps) - (not done) if "pwrite" in steps else False
        assert files.steps == 1 + written
        # The next one finds neither a lock that is held nor half a step.
        assert together((many_times, (1, directory / "next", files.arguments))) == [0]
        assert (directory / "next").read_text("utf-8") == f"step  {2 + written}\n"
    assert step == 20
