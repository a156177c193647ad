"""Every page of the docs is followed from top to bottom, as by a reader, and does what it says."""

from __future__ import annotations

import doctest
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from expost.answers import queries_from_json
from expost.cli.commands import group
from expost.files.reading import parse
from expost.filters import FILTERS
from expost.queries import FAMILIES, query_from_json
from expost.sampling import InsecureSource
from expost.transcript import Transcript

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(page for part in ("docs", "examples") for page in (ROOT / part).rglob("*.md")),
    ]
)
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`(?P<name>[\w-]+\.(?:json|csv))`[^`]*$")
COMMAND = re.compile(r"^\$ (?P<line>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
NUMBER = re.compile(r"(-?\d+\.\d+(?:e[-+]?\d+)?)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# These take minutes. That such commands work is shown elsewhere; here only that they can be given.
SLOW = {
    "expost reproduce",  # tests/cli/test_cli_reproduce.py
    "expost reproduce --quick",
    "expost reproduce linear --runs 50 --out reproduced",
    "python -m examples.health.train",  # tests/test_training.py
    "python -m examples.health.train --data heart.csv --data sleep.csv",
}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
Run = Callable[..., tuple[int, str, str]]


def fences(page: Path) -> Iterator[tuple[str, str, str]]:
    """Language and body of each block of a page, and the name if it shows a file."""
    text, end = page.read_text(encoding="utf-8"), 0
    for fence in FENCE.finditer(text):
        named = FILE.search(text[end : fence.start()])
        is_file = named and fence["language"] in ("json", "text")
        yield fence["language"], fence["body"], named["name"] if named and is_file else ""
        end = fence.end()


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body, _ in fences(page) if kind == language]


class Reader:
    """Somebody who does what a page says, in an empty directory."""

    def __init__(self, page: Path, run: Run) -> None:
        self.page, self.run = page, run
        self.names: dict[str, Any] = {}
        self.code = 0
        self.r_code = ""

    def follow(self) -> None:
        printed = ""
        for language, body, file in fences(self.page):
            if language == "r":
                printed = self.r(body)
            elif language == "text" and printed:
                assert_same(body, printed, "R")
                printed = ""
            elif file:
                Path(file).write_text(body, encoding="utf-8")
                Path(file).chmod(0o600)  # as the pages say of a secret
            elif language == "pycon":
                self.python(body)
            elif language == "console":
                for command in COMMAND.finditer(body):
                    self.command(command["line"], command["output"])

    def python(self, source: str) -> None:
        test = doctest.DocTestParser().get_doctest(source, {}, self.page.name, str(self.page), 0)
        test.globs = self.names
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        result = runner.run(test, out=report.append, clear_globs=False)
        assert result.failed == 0, "".join(report)

    def r(self, source: str) -> str:
        """Run R, after the code above it on the page; return what this part prints."""
        mark = "-- from here --"
        Path("page.R").write_text(f'{self.r_code}cat("{mark}\\n")\n{source}', encoding="utf-8")
        self.r_code += source
        programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            ["Rscript", "page.R"], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": programs},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.partition(f"{mark}\n")[2]

    def command(self, line: str, shown: str) -> None:
        program, *arguments = shlex.split(line.replace("\\\n", ""))
        if program == "make":
            assert f"\n{arguments[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), line
        elif line.startswith("python -m pip install "):
            self.can_be_installed(arguments[3:])
        elif line == ". .venv/bin/activate":
            pass  # as it is where the tests run
        elif line in SLOW:
            if program == "expost":
                command = group.get_command(click.Context(group), arguments[0])
                assert command is not None, line
                command.make_context(arguments[0], arguments[1:])
        else:
            assert_same(shown, self.printed(program, arguments), line)
            assert shown or self.code == 0, line

    def printed(self, program: str, arguments: list[str]) -> str:
        if program == "cat":
            return Path(*arguments).read_text(encoding="utf-8")
        if program == "echo":
            assert arguments == ["$?"]
            return f"{self.code}\n"
        if program == "python":
            done = subprocess.run(
                [sys.executable, *arguments], capture_output=True, text=True, check=False
            )
            self.code = done.returncode
            return done.stdout + done.stderr
        assert program == "expost"
        self.code, out, err = self.run(*arguments)
        return out + err

    def can_be_installed(self, what: list[str]) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        needed = [re.split(r"\W", each, maxsplit=1)[0] for each in project["dependencies"]]
        for each in what:
            name, *extras = re.split(r"[\[\],]", each.removesuffix("]"))
            assert name in ("--no-deps", "/path/to/the/clone", project["name"], *needed)
            assert set(extras) <= set(project["optional-dependencies"])


def assert_same(shown: str, printed: str, line: str) -> None:
    """The same text, where a page shows any; last digits depend on the C library."""
    if not shown:
        return
    there, here = NUMBER.split(shown), NUMBER.split(printed)
    assert there[::2] == here[::2], f"{line}\n{printed}"
    numbers = ([float(number) for number in parts[1::2]] for parts in (here, there))
    assert next(numbers) == pytest.approx(next(numbers), rel=1e-9, abs=1e-9), line


@every_page
def test_whoever_follows_a_page_gets_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    if blocks(page, "r") and "EXPOST_R" not in os.environ:
        pytest.skip("needs R: make test-r follows this page")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("expost.queries.FAMILIES", FAMILIES.copy())  # a page may add to them
    monkeypatch.setattr("expost.filters.FILTERS", FILTERS.copy())
    for module in ("session._session", "ledger._ledger"):
        monkeypatch.setattr(f"expost.{module}.SystemSource", partial(InsecureSource, 2))
    # On a busy machine a command may take a second, and would say how far it is.
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", float("inf"))
    Reader(page, run).follow()


@every_page
def test_the_files_that_a_page_shows_can_be_read(page: Path) -> None:
    for block in blocks(page, "json"):
        shown = json.loads(block)
        if "exchanges" in shown and "version" in shown:
            assert Transcript.from_json(block).exchanges is not None
        elif "queries" in shown and "version" in shown:
            assert queries_from_json(block)[1]
        elif "kind" in shown:
            assert query_from_json(parse(block)).kind == shown["kind"]


@every_page
def test_different_questions_on_a_page_are_different_queries(page: Path) -> None:
    """Two names for one query would let answers about different things cancel."""
    for block in blocks(page, "json"):
        shown = json.loads(block)
        if "queries" in shown and "version" in shown:
            asked = [{**query, "epsilon": None} for query in shown["queries"].values()]
            assert all(first != other for first, other in itertools.combinations(asked, 2))


def test_a_page_that_says_something_wrong_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for wrong in (
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```console\n$ expost --version\nexpost 99\n```\n",
        "```console\n$ expost loss nothing.json\n```\n",
        "```console\n$ make a-cake\n```\n",
        "```console\n$ python -m pip install 'expost[cake]'\n```\n",
        "This is `a.csv`:\n\n```text\n1.5\n```\n\n```console\n$ cat a.csv\n1.50001\n```\n",
    ):
        page.write_text(wrong, encoding="utf-8")
        with pytest.raises(AssertionError):
            Reader(page, run).follow()


def test_there_are_examples() -> None:
    assert sum(len(blocks(page, "pycon")) for page in PAGES) > 10
