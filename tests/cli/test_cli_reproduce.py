"""``expost reproduce`` from the command line."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from expost.cli.reproduce import command_of
from expost.errors import InvalidInput

Run = Callable[..., tuple[int, str, str]]


def test_it_says_where_the_report_is(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "here"
    code, text, err = run("reproduce", "examples", "--out", str(out))
    assert (code, err) == (0, "")
    assert text == f"The report is in {out / 'report.html'}, its numbers in results.json.\n"
    assert (out / "report.html").exists()


def test_json_is_what_the_file_of_results_holds(run: Run, tmp_path: Path) -> None:
    options = ("--runs", "1", "--jobs", "1", "--seed", "4", "--out", str(tmp_path))
    code, text, _ = run("reproduce", "linear", *options, "--json")
    assert code == 0
    assert json.loads(text) == json.loads((tmp_path / "results.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["results.json", "report.html"])
def test_what_cannot_be_written_leaves_the_earlier_file_whole(
    run: Run, tmp_path: Path, name: str
) -> None:
    assert run("reproduce", "examples", "--out", str(tmp_path))[0] == 0
    before = (tmp_path / name).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) - 1, limits[1]))  # as on a full disk
    try:
        code, _, err = run("reproduce", "examples", "--out", str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / name).read_bytes() == before
    assert (code, err) == (2, f"expost: cannot write: File too large: {tmp_path / name}\n")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("arguments", [[], ["linear", "--runs", "2"]])
def test_without_a_checkout_one_line_says_where_the_experiments_are(
    tmp_path: Path, arguments: list[str]
) -> None:
    command = command_of(tmp_path)
    with pytest.raises(InvalidInput) as error:
        command.main(arguments, standalone_mode=False)
    assert str(error.value) == (
        "the experiments are not part of the installed package; get the repository, run "
        "make setup there, and repeat the command with its .venv/bin/expost"
    )
    assert "Needs a checkout" in command.get_help(click.Context(command))
