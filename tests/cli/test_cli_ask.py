"""``expost ask``: nothing released is lost, nothing is released unrecorded, whatever happens."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.files.durable import lock_file
from support.killed_commands import many_times, stopping_at, together

Run = Callable[..., tuple[int, str, str]]

SECRET = "the-secret-label"
DOMAIN = xp.FiniteSet(["a", "b", SECRET])
QUERY = {"kind": "randomized_response", "epsilon": "0.5"}
BLIND = {"kind": "channel", "responses": ["x", "y"], "probabilities": [["1/2", "1/2"]] * 3}
COMMAND = [sys.executable, "-c", "from expost.cli.main import main; main()"]


class Files:
    """A transcript, a query and a secret in a directory."""

    def __init__(self, directory: Path, budget: str = "2") -> None:
        self.directory = directory
        self.transcript = directory / "subject.json"
        self.query = directory / "query.json"
        self.secret = directory / "secret.json"
        xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=budget)).save(self.transcript)
        self.query.write_text(json.dumps(QUERY))
        self.secret.write_text(json.dumps(SECRET))
        self.secret.chmod(0o600)

    @property
    def arguments(self) -> list[str]:
        return [
            "ask", str(self.transcript), "--query", str(self.query), "--secret", str(self.secret),
        ]  # fmt: skip

    @property
    def recorded(self) -> list[object]:
        return [exchange.response for exchange in xp.load_transcript(self.transcript).exchanges]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def printed(out: str) -> list[str]:
    return re.findall(r"^response +(.+)$", out, re.MULTILINE)


def test_a_response_is_printed_and_recorded(run: Run, files: Files) -> None:
    code, out, err = run(*files.arguments)
    assert (code, err) == (0, "")
    assert printed(out) == files.recorded
    code, out, err = run(*files.arguments, "--json")
    assert (code, err) == (0, "")
    expected = {"answered": True, "response": files.recorded[-1], "exchanges": 2}
    assert json.loads(out) == expected


def test_a_refusal_is_one_line_with_the_numbers_and_changes_nothing(
    run: Run, tmp_path: Path
) -> None:
    files = Files(tmp_path, budget="0.4")
    before = files.transcript.read_bytes(), files.transcript.stat()
    code, out, err = run(*files.arguments)
    assert (code, out) == (1, "")
    assert err == (
        "expost: query refused: loss is 0 and could reach 0.5, over the budget of 0.4. "
        "The same query with epsilon at most 0.4 would be accepted.\n"
    )
    code, out, err = run(*files.arguments, "--json")
    result = json.loads(out)
    assert code == 1
    assert err.count("\n") == 1
    assert (result["answered"], result["undecided"], result["budget"]) == (False, False, 0.4)
    assert result["largest_epsilon"] == "0.4"
    assert (files.transcript.read_bytes(), files.transcript.stat()) == before


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (SECRET, "secret.json: not a value in JSON; write"),
        ('{"x": "the-secret-label", "x": 1}', "secret.json: a name appears twice (not shown"),
        ("34 the-secret-label", "secret.json: not a value in JSON; write"),
        ("null", "secret.json: not a value in JSON; write"),
        (b"\xffthe-secret-label", "secret.json: is not UTF-8 text"),
        ('"not the-secret-label"', "the value is outside the domain (and is not shown here)"),
        ('["the-secret-label"]', "the value is outside the domain (and is not shown here)"),
        ("true", "the value is outside the domain (and is not shown here)"),
        ("[" * 100_000, "secret.json: not a value in JSON; write"),
    ],
)
def test_a_bad_secret_is_one_line_that_does_not_show_it(
    run: Run, files: Files, secret: str | bytes, message: str
) -> None:
    content = secret if isinstance(secret, bytes) else secret.encode()
    files.secret.write_bytes(content)
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert err.replace(f"{files.directory}/", "").startswith(f"expost: {message}")
    assert err.count("\n") == 1
    assert SECRET not in err
    assert files.recorded == []


def test_coordinates_are_an_object_or_a_list(run: Run, files: Files) -> None:
    filter_ = xp.BayesianFilter(epsilon=2)
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    query = xp.logistic({"age": 0.1, "sex": 1}, intercept=-5, epsilon="0.5")
    files.query.write_text(json.dumps({"kind": "logistic", **query.tree(), "epsilon": "0.5"}))
    xp.Transcript(box, filter_).save(files.transcript, overwrite=True)
    for secret in ({"sex": 1, "age": 34.5}, [34.5, 1]):
        files.secret.write_text(json.dumps(secret))
        assert run(*files.arguments, "--gap", "0.1", "--nodes", "50")[0] == 0
    files.secret.write_text(json.dumps({"sex": 0.5, "age": 34.5}))
    assert run(*files.arguments)[0] == 2
    assert len(files.recorded) == 2
    points = xp.FiniteSet([{"age": 34, "sex": 0}, {"age": 52, "sex": 1}])
    xp.Transcript(points, filter_).save(files.transcript, overwrite=True)
    files.query.write_text(json.dumps(QUERY))
    files.secret.write_text(json.dumps({"sex": 1, "age": 52}))
    code, out, _ = run(*files.arguments)
    assert code == 0
    assert printed(out)[0] in {"age=34, sex=0", "age=52, sex=1"}


def test_a_value_on_the_prompt_is_not_echoed(files: Files) -> None:
    files.query.write_text(json.dumps(BLIND))  # whose responses cannot look like the secret
    arguments = files.arguments[:-2]
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    shown = b""
    while b": " not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, json.dumps(SECRET).encode() + b"\n")
    try:
        while chunk := os.read(terminal, 1000):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.close(terminal)
    assert process.wait() == 0
    assert "as JSON (not echoed): " in shown.decode()
    assert printed(shown.decode().replace("\r", "")) == files.recorded
    assert SECRET.encode() not in shown


def test_without_a_terminal_there_is_no_prompt(files: Files) -> None:
    result = subprocess.run(
        [*COMMAND, *files.arguments[:-2]],
        input=json.dumps(SECRET), capture_output=True, text=True, start_new_session=True,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "expost: secret: stdin is not a terminal; use --secret FILE\n"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o444])
def test_a_secret_that_others_may_read_gets_a_warning(run: Run, files: Files, mode: int) -> None:
    files.secret.chmod(mode)
    code, out, err = run(*files.arguments)
    assert code == 0
    assert printed(out) == files.recorded
    warning = f"{files.secret} is readable by others; run chmod 600 {files.secret}"
    assert err == f"expost: warning: {warning}\n"


def test_a_secret_is_never_an_argument(run: Run, files: Files) -> None:
    for value in (json.dumps(SECRET), json.dumps({"hours": SECRET}), SECRET):
        code, out, err = run(*files.arguments[:-1], value)
        assert (code, out) == (2, "")
        assert err == (
            "expost: --secret: no such file (name not shown, in case it is the value itself)\n"
        )
    assert files.recorded == []


def test_what_cannot_be_written_is_not_released(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", full)
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert err == f"expost: cannot write: no space left: {files.arguments[1]}\n"
    assert files.recorded == []


def killed(files: Files, step: int, done: bool) -> tuple[int | None, list[str], list[str]]:
    """How an ask ended that was to be killed at a step, what it printed, and its steps."""
    out, log = files.directory / "out", files.directory / "log"
    for file in (out, log):
        file.write_text("")
    (code,) = together((stopping_at, (step, done, out, log, files.arguments)))
    assert SECRET not in out.with_suffix(".err").read_text("utf-8")
    return code, printed(out.read_text("utf-8")), log.read_text("utf-8").split()


def test_the_order_is_lock_record_durably_release(files: Files) -> None:
    files.query.write_text(json.dumps(BLIND))
    code, released, steps = killed(files, 0, done=False)
    assert code == 0
    assert released == files.recorded
    assert steps == [
        "open", "open", "open", "open",  # the transcript, the query, the secret, the transcript
        "open", "flock",
        "open", "flock", "fsync", "replace", "fchmod",
        "open", "fsync", "close",
        "echo", "echo",
    ]  # fmt: skip


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_killing_it_at_any_step_loses_nothing_and_releases_nothing_unrecorded(
    tmp_path: Path, done: bool
) -> None:
    outcomes = []
    for step in count(1):
        directory = tmp_path / str(step)
        directory.mkdir()
        files = Files(directory)
        xp.load_transcript(files.transcript).add(xp.randomized_response(epsilon="0.5"), "a").save(
            files.transcript
        )
        code, released, steps = killed(files, step, done)
        recorded = files.recorded
        assert recorded[0] == "a"
        assert len(recorded) in (1, 2)
        assert released in ([], recorded[1:])
        assert xp.load_transcript(files.transcript).domain == DOMAIN
        if code == 0:
            break
        assert code == -signal.SIGKILL
        outcomes.append((steps[-1], len(recorded) - 1, len(released)))
        # The next one finds neither a lock that is held nor what was never released.
        assert together((many_times, (1, directory / "next", files.arguments))) == [0]
        assert files.recorded[: len(recorded)] == recorded
        assert len(files.recorded) == len(recorded) + 1
        assert [file.name for file in directory.iterdir() if file.name[0] == "."] == []
    before = 9 if done else 10
    assert [recorded for _, recorded, _ in outcomes] == [0] * before + [1] * (16 - before)
    assert [released for *_, released in outcomes][:14] == [0] * 14


def test_many_processes_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path, budget="3")
    outs = [tmp_path / f"out{i}" for i in range(8)]
    ended = together(*((many_times, (6, out, files.arguments)) for out in outs))
    assert ended == [0] * 8
    released = [response for out in outs for response in printed(out.read_text("utf-8"))]
    assert sorted(released) == sorted(map(str, files.recorded))
    assert len(released) >= 6
    refused = sum(out.with_suffix(".err").read_text("utf-8").count("query refused") for out in outs)
    assert len(released) + refused == 48
    assert xp.realized_loss(xp.load_transcript(files.transcript)).upper <= 3


def test_whoever_waits_for_another_process_is_told_so(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("expost.files.durable._PATIENCE", "expost.cli._outputs._PATIENCE"):
        monkeypatch.setattr(patience, 0.01)
    with ExitStack() as held:
        held.enter_context(lock_file(files.transcript))
        threading.Timer(0.2, held.pop_all().close).start()
        code, out, err = run(*files.arguments)
    assert code == 0
    assert printed(out) == files.recorded
    assert err == f"waiting for another process to let go of {files.transcript}\n"


def test_hard_links_are_refused_in_one_line(run: Run, files: Files) -> None:
    (files.directory / "link.json").hardlink_to(files.transcript)
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"expost: {files.transcript}: has 2 names (hard links), and each would")
    assert err.count("\n") == 1
    assert files.recorded == []


def test_links_to_one_file_share_its_budget(run: Run, files: Files) -> None:
    link = files.directory / "link.json"
    link.symlink_to(files.transcript.name)
    assert run("ask", link, *files.arguments[2:])[0] == 0
    assert link.is_symlink()
    assert len(files.recorded) == 1


def test_who_may_read_a_transcript_does_not_change(run: Run, files: Files) -> None:
    files.transcript.chmod(0o640)
    assert run(*files.arguments)[0] == 0
    assert files.transcript.stat().st_mode & 0o777 == 0o640


def test_a_directory_that_cannot_be_written_is_one_line(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr("os.open", refuse)
    code, out, err = run(*files.arguments)
    assert (code, out) == (2, "")
    assert err == f"expost: {files.transcript}: cannot be locked: Permission denied\n"
