"""The commands, the unit and the Containerfile of the page about deployment work as written.

No image can be built in a test: the Containerfile is linted, and its commands run in an environment
of their own.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click
import pytest

import expost as xp
from expost.cli.commands import group
from expost.device import device

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text("utf-8")
CONTAINERFILE = ROOT / "Containerfile"
EXPOST = "/opt/expost/bin/expost"


def block(language: str, containing: str) -> str:
    """The code block of the page that contains something."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = (body for body in blocks if containing in body)
    return str(found)


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(block("ini", "[Service]"))
    return parser


def container(instruction: str) -> list[str]:
    """The words of an instruction of the Containerfile, in its JSON form."""
    (line,) = re.findall(
        rf"^{instruction} (\[.*\])$", CONTAINERFILE.read_text("utf-8"), re.MULTILINE
    )
    return [str(word) for word in json.loads(line)]


def commands() -> Iterator[list[str]]:
    """The arguments of every expost command on the page, in the unit and in the image."""
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    for line in text.replace("\\\n", "").splitlines():
        words = shlex.split(line)
        if EXPOST in words:
            yield words[words.index(EXPOST) + 1 :]
        if words[:2] == ["podman", "run"] and words[-1] != "expost":
            yield words[words.index("expost") + 1 :]
    yield unit()["Service"]["ExecStart"].split()[1:]
    yield container("CMD")


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_a_command_has_these_arguments(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mapped = [
        str(tmp_path / Path(word).name) if word.startswith("/") else word for word in arguments
    ]
    for name in ("queries.json", "study.db"):
        Path(name).write_text("{}", "utf-8")
    command: click.Command = group
    while isinstance(command, click.Group):
        name, *mapped = mapped
        found = command.get_command(click.Context(command), name)
        assert found is not None, name
        command = found
    command.make_context(None, mapped)


def test_the_containerfile_has_no_faults() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert program is not None
    subprocess.run([program, CONTAINERFILE], check=True)
    assert container("ENTRYPOINT") == ["expost"]
    (version,) = re.findall(r"uv==(\S+)", CONTAINERFILE.read_text("utf-8"))
    assert f"UV_VERSION := {version}\n" in (ROOT / "Makefile").read_text("utf-8")


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd")
    file = tmp_path / "expost.service"
    command = tmp_path / "expost"  # the path of the interpreter may have a space
    command.symlink_to(sys.executable)
    text = block("ini", "[Service]").replace(EXPOST, str(command))
    file.write_text(text.replace("User=expost\n", ""), "utf-8")
    done = subprocess.run([program, "verify", file], capture_output=True, text=True, check=False)
    assert "expost.service" not in done.stderr, done.stderr


def test_a_proxy_waits_longer_than_the_longest_answer_takes() -> None:
    nginx = block("nginx", "server {")
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s", nginx)
    assert int(seconds) >= device.PATIENCE >= 30 + 20
    assert "client_max_body_size 4m;" in nginx
    assert "max_size 4MiB" in block("text", "collector.example {")


@contextmanager
def serving(arguments: list[str]) -> Iterator[IO[str]]:
    """Run a server on a free port until it is stopped, which must succeed."""
    with subprocess.Popen(
        [*arguments, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0


def install_as_in_the_image(folder: Path) -> list[str]:
    """Follow the first stage of the Containerfile; return the program that it installs."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("needs uv")
    source, text = folder / "source", CONTAINERFILE.read_text("utf-8").replace("\\\n", "")
    source.mkdir()
    for copied in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE):
        for name in copied.split():
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, source / name)
    (words,) = re.findall("^RUN UV_PROJECT_ENVIRONMENT=/opt/expost uv (.*)$", text, re.MULTILINE)
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")
    environment = {name: entry for name, entry in os.environ.items() if name not in ours}
    environment["UV_PROJECT_ENVIRONMENT"] = str(folder / "installed")
    python = ["--python", sys.executable]
    subprocess.run([uv, *words.split(), *python], cwd=source, env=environment, check=True)
    return [str(folder / "installed" / "bin" / "expost")]


@pytest.mark.parametrize("where", ["systemd", "container"])
def test_the_steps_lead_from_nothing_through_a_restore_to_a_study(
    where: str, tmp_path: Path
) -> None:
    """Create, serve, check, back up, restore and recover with the commands of the page."""
    folders = {"/var/lib/expost": tmp_path, "/srv/checkpoint": tmp_path / "other disk"}
    folders |= {"/data": tmp_path, "/checkpoint": tmp_path / "other disk"}
    (tmp_path / "other disk").mkdir()
    podman = where == "container"
    program = [sys.executable, "-m", "expost"]
    if podman:
        program = install_as_in_the_image(tmp_path)

    def mapped(words: list[str]) -> list[str]:
        parts = [(Path(word), word) for word in words]
        return [
            str(folders[str(path.parent)] / path.name) if str(path.parent) in folders else word
            for path, word in parts
        ]

    def run(words: list[str]) -> None:
        subprocess.run([*program, *mapped(words)], cwd=tmp_path, check=True, capture_output=True)

    query = {"kind": "randomized_response", "epsilon": "0.5"}
    document = {"version": 1, "domain": {"values": ["no", "yes"]}, "queries": {"half": query}}
    (tmp_path / "queries.json").write_text(json.dumps(document), "utf-8")
    creating = [words for words in commands() if words[:2] == ["ledger", "create"]]
    (create,) = (
        words for words in creating if ("/data/study.db" if podman else "study.db") in words
    )
    run(create)
    serve = container("CMD") if podman else unit()["Service"]["ExecStart"].split()[1:]
    serve = [*program, *mapped(serve), *(["--host", "127.0.0.1"] if podman else [])]
    with serving(serve) as printed:
        token, url = (printed.readline().split()[-1] for _ in range(2))
        if podman:
            check = [
                word.replace(":8321", f":{url.rpartition(':')[2]}")
                for word in container("HEALTHCHECK CMD")
            ]
            subprocess.run([sys.executable, *check[1:]], check=True)
        else:
            with xp.Collector(url, token) as administrator:
                administrator.make_token("auditor")
    (backup,) = (words for words in commands() if words[:2] == ["ledger", "backup"])
    run(backup)
    with serving(serve) as printed:  # a commit after the backup
        url = printed.readline().split()[-1]
        with xp.Collector(url, token) as administrator:
            registrar = xp.Collector(url, administrator.make_token("registrar"))
            assert registrar.register(["ann"]) == 1
            registrar.close()
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"study.db{suffix}").unlink(missing_ok=True)
    shutil.copyfile(tmp_path / "BACKUP.db", tmp_path / "study.db")
    (recover,) = re.findall(r"`expost (ledger recover .*?)`", PAGE)
    run(recover.split())
    with serving(serve) as printed:
        url = printed.readline().split()[-1]
        with xp.Collector(url, token) as administrator:
            assert administrator.policy().study == ""
