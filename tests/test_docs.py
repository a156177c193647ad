"""Every example in README and docs is run."""

from __future__ import annotations

import csv
import doctest
import itertools
import json
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from expost.answers import queries_from_json
from expost.files.reading import parse
from expost.filters import FILTERS
from expost.queries import FAMILIES, query_from_json
from expost.sampling import InsecureSource
from expost.transcript import Transcript

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    fences = FENCE.finditer(page.read_text(encoding="utf-8"))
    return [fence["body"] for fence in fences if fence["language"] == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_do_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("expost.queries.FAMILIES", FAMILIES.copy())  # a page may add to them
    monkeypatch.setattr("expost.filters.FILTERS", FILTERS.copy())
    source = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(test, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_shows_can_be_read(page: Path) -> None:
    for block in blocks(page, "json"):
        shown = json.loads(block)
        if "exchanges" in shown and "version" in shown:
            assert Transcript.from_json(block).exchanges is not None
        elif "queries" in shown and "version" in shown:
            assert queries_from_json(block)[1]
        elif "kind" in shown:
            assert query_from_json(parse(block)).kind == shown["kind"]


SHOWN = re.compile(
    r"`(?P<name>\w+\.(?:json|csv))`[^`]*```(?:json|text)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^\$ (?P<line>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["using.md", "replay.md", "knowledge.md", "clients.md", "compare.md", "records.md"]
)
def test_the_commands_of_a_page_print_what_it_says(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., tuple[int, str, str]],
) -> None:
    path = ROOT / "docs" / "guide" / page
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("expost.session.session.SystemSource", partial(InsecureSource, 2))
    for shown in SHOWN.finditer(path.read_text(encoding="utf-8")):
        Path(shown["name"]).write_text(shown["body"], encoding="utf-8")
        Path(shown["name"]).chmod(0o600)  # as the page says of the secret
    code = None
    for command in COMMAND.finditer("".join(blocks(path, "console"))):
        if command["line"] == "echo $?":
            out, err = f"{code}\n", ""
        else:
            program, *arguments = shlex.split(command["line"])
            assert program == "expost"
            code, out, err = run(*arguments)
        assert out + err == command["output"], command["line"]
    assert code is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_different_questions_on_a_page_are_different_queries(page: Path) -> None:
    """Two names for one query would let answers about different things cancel."""
    for block in blocks(page, "json"):
        shown = json.loads(block)
        if "queries" in shown and "version" in shown:
            asked = [{**query, "epsilon": None} for query in shown["queries"].values()]
            assert all(first != other for first, other in itertools.combinations(asked, 2))


def test_the_example_of_many_subjects_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str, str]]
) -> None:
    page = (ROOT / "docs" / "guide" / "command_line.md").read_text(encoding="utf-8")
    section = page.partition("### Many subjects")[2].partition("## decide")[0]
    monkeypatch.chdir(tmp_path)
    for shown in SHOWN.finditer(section):
        Path(shown["name"]).write_text(shown["body"], encoding="utf-8")
    console = next(fence["body"] for fence in FENCE.finditer(section) if "cat " in fence["body"])
    asked, read = COMMAND.finditer(console)
    assert run(*shlex.split(asked["line"])[1:]) == (0, asked["output"], "")
    written = Path(read["line"].removeprefix("cat ")).read_text(encoding="utf-8")
    rows, page_rows = (list(csv.reader(text.splitlines())) for text in (written, read["output"]))
    assert len(rows) == len(page_rows) == 3
    for row, page_row in zip(rows, page_rows, strict=True):
        assert row[:1] + row[3:] == page_row[:1] + page_row[3:]
    for row, page_row in zip(rows[1:], page_rows[1:], strict=True):
        # Another C library may give other last digits.
        ends, page_ends = ([float(end) for end in each[1:3]] for each in (row, page_row))
        assert ends == pytest.approx(page_ends, abs=1e-9)


def test_there_are_examples() -> None:
    assert sum(len(blocks(page, "pycon")) for page in PAGES) > 10
